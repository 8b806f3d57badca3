package mpi

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// derive makes a communicator of a part of c, with the context that all members
// of c agree on. All of them call it; it gives nil to those whose group is nil.
// bad is why the caller cannot take part in it: then nobody gets anything.
func (c *Comm) derive(s comm.Spec, bad error) (*Comm, error) { return c.deriveBy(doesDerive, s, bad) }

// deriveBy is derive for a constructor of the kind.
func (c *Comm) deriveBy(does uint32, s comm.Spec, bad error) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.announce(announced[does]); err != nil {
		return nil, err
	}
	n := comm.IntraContexts
	if c.local != nil {
		n = comm.InterContexts
	}
	context, err := c.newContext(does, n, bad)
	if err != nil {
		return nil, err
	}
	if s.Group == nil {
		c.p.lock()
		defer c.p.unlock()
		c.p.release(context)
		return nil, nil
	}
	return c.adopt(s, context)
}

// adopt makes a communicator that inherits from c.
func (c *Comm) adopt(s comm.Spec, context wire.ContextID) (*Comm, error) {
	s.Context = context
	d, err := c.p.newComm(s)
	if err != nil {
		return nil, err
	}
	d.inherit(c)
	return d, nil
}

// inOneVoice is an error unless all members have called the same constructor.
func inOneVoice(flags uint32) error {
	if bits.OnesCount32(flags&doesAll) > 1 {
		return fmt.Errorf("%w: they call different constructors", coll.ErrMismatch)
	}
	return nil
}

// newContext agrees with the members of c on the first of n contexts.
func (c *Comm) newContext(does uint32, n int, bad error) (wire.ContextID, error) {
	p := c.p
	p.lock()
	defer p.unlock()
	if !c.ours() {
		return c.foreignContext(n, bad)
	}
	x := c.agreement(c.ordinal())
	x.propose(does, bad, func() {})
	x.wait()
	return x.settle(n, bad)
}

// propose begins an agreement. bad is why this member cannot make the communicator.
func (x *agreement) propose(flags uint32, bad error, ends func()) {
	mine := comm.Proposal{Offer: x.p.contexts.Offer(x.leads()), Fault: faultCode(bad), Flags: flags}
	x.begin(mine, ends)
}

// settle gives the first of n contexts that the agreement has come to, once it is over.
func (x *agreement) settle(n int, bad error) (wire.ContextID, error) {
	v := verdict{Proposal: x.all}
	v.Flags |= x.side
	return x.p.conclude(x.mine, v, n, bad, x.err)
}

// reasons are what members tell each other of when they cannot make a
// communicator. Their numbers travel; one has what it cannot be told apart.
var reasons = [...]error{1: ErrElsewhere, comm.ErrComm, comm.ErrGroup, comm.ErrRank, ErrTag, ErrArg, comm.ErrContexts, coll.ErrMismatch,
	dynamic.ErrPort, ErrCall, ErrUnreachable, ErrAlone, message.ErrPeerDown, ErrInfoValue, ErrPeerGone}

func faultCode(err error) uint32 {
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

// elsewhere is the error of members that could have made the communicator.
func elsewhere(code uint32) error {
	if code <= 1 || code >= uint32(len(reasons)) {
		return ErrElsewhere
	}
	return fmt.Errorf("told by another member: %w", reasons[code])
}

// ours tells whether all members of c, on both sides, run this library: those of
// other sites do if the node says nothing else, and data to them is not external32.
func (c *Comm) ours() bool {
	return c.p.ours(c.Masters()) && (c.local == nil || c.p.ours(comm.NewMasters(c.Remote(), c.p.clients())))
}

// ours tells whether the members that the masters are of run this library.
func (p *process) ours(m *comm.Masters) bool {
	own := p.clients().Of(comm.Proc(p.job.Rank))
	for n := range m.Count() {
		if client := m.Client(n); client != own && p.foreignClient(client) {
			return false
		}
	}
	return true
}
