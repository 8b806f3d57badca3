package construct

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// derives is the name of all constructors of Derive where members call different ones.
const derives = "a topology or a window"

// Derive makes a communicator of a part of c, with a context on which all members of c agree. All
// of them call it (MPI-4.1, 7.4.2); those with a nil group get nil. bad is why this member cannot
// take part: then no member gets a communicator.
func Derive(c *proc.Comm, s comm.Spec, bad error) (*proc.Comm, error) {
	return deriveBy(c, collective.ConstructorDerive, derives, s, bad)
}

// deriveBy is Derive for the kind of constructor that does is; name is for the error if members
// call different ones.
func deriveBy(c *proc.Comm, does uint32, name string, s comm.Spec, bad error) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if err := collective.CheckConstructor(c, name); err != nil {
		return nil, err
	}
	n := comm.IntraContexts
	if c.State().Local != nil {
		n = comm.InterContexts
	}
	context, err := newContext(c, does, n, bad)
	if err != nil {
		return nil, err
	}
	if s.Group == nil {
		c.Process().Lock()
		defer c.Process().Unlock()
		Release(c.Process(), context)
		return nil, nil
	}
	return NewInheriting(c, s, context)
}

// NewInheriting makes the communicator that s describes, with a context on which its members have
// agreed, and the error handler of c.
func NewInheriting(c *proc.Comm, s comm.Spec, context wire.ContextID) (*proc.Comm, error) {
	s.Context = context
	d, err := c.Process().Comms.NewComm(s)
	if err != nil {
		return nil, err
	}
	d.Inherit(c)
	return d, nil
}

// inOneVoice returns an error if members have called different constructors.
func inOneVoice(flags uint32) error {
	if bits.OnesCount32(flags&collective.ConstructorMask) > 1 {
		return fmt.Errorf("%w: they call different constructors", coll.ErrMismatch)
	}
	return nil
}

// newContext agrees with the members of c on n context IDs in a row, and returns the first.
func newContext(c *proc.Comm, does uint32, n int, bad error) (wire.ContextID, error) {
	p := c.Process()
	onBoard := near(c)
	p.Lock()
	defer p.Unlock()
	if onBoard {
		return agreeNear(c, does, bad, comm.Choice{}, nil)
	}
	if !AllRunImpi(c) {
		return foreignContext(c, n, bad)
	}
	x := Agreement(c, c.Ordinal())
	x.Propose(does, bad, func() {})
	x.Wait()
	return x.Conclude(n, bad)
}

// Propose begins an agreement, and calls ends when it is over. bad is why this member cannot make
// the communicator.
func (x *agreement) Propose(flags uint32, bad error, ends func()) {
	mine := comm.Proposal{ContextUse: x.p.Comms.Contexts.BeginAgreement(x.leads()), Fault: FaultCode(bad), Flags: flags}
	x.Begin(mine, ends)
}

// Conclude returns the first of n context IDs, when the agreement is over.
func (x *agreement) Conclude(n int, bad error) (wire.ContextID, error) {
	v := AssemblyResult{Proposal: x.All}
	v.Flags |= x.Side
	return Conclude(x.p, x.Mine, v, n, bad, x.Err)
}

// reasons are the errors that members tell each other if they cannot make a communicator. The index
// of an error is what is sent; 1 stands for all other errors.
var reasons = [...]error{1: proc.ErrElsewhere, comm.ErrComm, comm.ErrGroup, comm.ErrRank, proc.ErrTag, proc.ErrArg, comm.ErrContexts, coll.ErrMismatch,
	dynamic.ErrPort, proc.ErrCall, proc.ErrUnreachable, proc.ErrAlone, message.ErrPeerDown, proc.ErrInfoValue, proc.ErrPeerGone, proc.ErrProcFailed}

// FaultCode returns the index of err in reasons; 0 for nil.
func FaultCode(err error) uint32 {
	if err == nil {
		return 0
	}
	if errors.Is(err, proc.ErrProcFailed) { // which is the error of a peer that is down, too
		return uint32(len(reasons) - 1)
	}
	for code, f := range reasons {
		if f != nil && errors.Is(err, f) {
			return uint32(code)
		}
	}
	return 1
}

// FailedElsewhere returns the error for members that could have made the communicator, if another
// one has failed with code.
func FailedElsewhere(code uint32) error {
	if code <= 1 || code >= uint32(len(reasons)) {
		return proc.ErrElsewhere
	}
	return fmt.Errorf("told by another member: %w", reasons[code])
}

// AllRunImpi reports whether all members of c, on both sides, run this library.
func AllRunImpi(c *proc.Comm) bool {
	if !c.Process().Worlds.SomeForeign() { // the usual case: the masters of c are not needed
		return true
	}
	return GroupRunsImpi(c.Process(), c.Masters()) && (c.State().Local == nil || GroupRunsImpi(c.Process(), comm.NewMasters(c.Remote(), c.Process().Worlds.Clients())))
}

// GroupRunsImpi reports whether the members of the group of m run this library.
func GroupRunsImpi(p *proc.Process, m *comm.Masters) bool {
	own := p.Worlds.Clients().Of(comm.Proc(p.Job.Rank))
	for n := range m.Count() {
		if client := m.Client(n); client != own && p.Worlds.ForeignClient(client) {
			return false
		}
	}
	return true
}
