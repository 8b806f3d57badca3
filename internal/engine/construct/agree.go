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

// Derive makes a communicator of a part of c, with the context that all members
// of c agree on. All of them call it; it gives nil to those whose group is nil.
// bad is why the caller cannot take part in it: then nobody gets anything.
func Derive(c *proc.Comm, s comm.Spec, bad error) (*proc.Comm, error) {
	return deriveBy(c, collective.DoesDerive, s, bad)
}

// deriveBy is derive for a constructor of the kind.
func deriveBy(c *proc.Comm, does uint32, s comm.Spec, bad error) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if err := collective.Announce(c, collective.Announced[does]); err != nil {
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
	return Adopt(c, s, context)
}

// Adopt makes a communicator that inherits from c.
func Adopt(c *proc.Comm, s comm.Spec, context wire.ContextID) (*proc.Comm, error) {
	s.Context = context
	d, err := c.Process().Comms.NewComm(s)
	if err != nil {
		return nil, err
	}
	d.Inherit(c)
	return d, nil
}

// inOneVoice is an error unless all members have called the same constructor.
func inOneVoice(flags uint32) error {
	if bits.OnesCount32(flags&collective.DoesAll) > 1 {
		return fmt.Errorf("%w: they call different constructors", coll.ErrMismatch)
	}
	return nil
}

// newContext agrees with the members of c on the first of n contexts.
func newContext(c *proc.Comm, does uint32, n int, bad error) (wire.ContextID, error) {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	if !Ours(c) {
		return foreignContext(c, n, bad)
	}
	x := Agreement(c, c.Ordinal())
	x.Propose(does, bad, func() {})
	x.Wait()
	return x.Settle(n, bad)
}

// Propose begins an agreement. bad is why this member cannot make the communicator.
func (x *agreement) Propose(flags uint32, bad error, ends func()) {
	mine := comm.Proposal{Offer: x.p.Comms.Contexts.Offer(x.leads()), Fault: FaultCode(bad), Flags: flags}
	x.Begin(mine, ends)
}

// Settle gives the first of n contexts that the agreement has come to, once it is over.
func (x *agreement) Settle(n int, bad error) (wire.ContextID, error) {
	v := Verdict{Proposal: x.All}
	v.Flags |= x.Side
	return Conclude(x.p, x.Mine, v, n, bad, x.Err)
}

// reasons are what members tell each other of when they cannot make a
// communicator. Their numbers travel; one has what it cannot be told apart.
var reasons = [...]error{1: proc.ErrElsewhere, comm.ErrComm, comm.ErrGroup, comm.ErrRank, proc.ErrTag, proc.ErrArg, comm.ErrContexts, coll.ErrMismatch,
	dynamic.ErrPort, proc.ErrCall, proc.ErrUnreachable, proc.ErrAlone, message.ErrPeerDown, proc.ErrInfoValue, proc.ErrPeerGone}

// FaultCode is the number by which err travels; 0 is none.
func FaultCode(err error) uint32 {
	if err == nil {
		return 0
	}
	for code, f := range reasons {
		if f != nil && errors.Is(err, f) {
			return uint32(code)
		}
	}
	return 1
}

// Elsewhere is the error of members that could have made the communicator.
func Elsewhere(code uint32) error {
	if code <= 1 || code >= uint32(len(reasons)) {
		return proc.ErrElsewhere
	}
	return fmt.Errorf("told by another member: %w", reasons[code])
}

// Ours tells whether all members of c, on both sides, run this library: those of
// other sites do if the node says nothing else, and data to them is not external32.
func Ours(c *proc.Comm) bool {
	return OursAmong(c.Process(), c.Masters()) && (c.State().Local == nil || OursAmong(c.Process(), comm.NewMasters(c.Remote(), c.Process().Worlds.Clients())))
}

// OursAmong tells whether the members that the masters are of run this library.
func OursAmong(p *proc.Process, m *comm.Masters) bool {
	own := p.Worlds.Clients().Of(comm.Proc(p.Job.Rank))
	for n := range m.Count() {
		if client := m.Client(n); client != own && p.Worlds.ForeignClient(client) {
			return false
		}
	}
	return true
}
