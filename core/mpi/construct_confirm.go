package mpi

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// next begins another round of an agreement, if one is needed: where the members are of
// several worlds and one of them was busy, all of them have to confirm the private
// context ID. x.all and x.side are of the first round once the agreement is over, with the
// ID in x.all.
func (x *agreement) next() bool {
	if x.confirm == nil {
		if !x.wide || !unconfirmed(&x.all, x.side) {
			return false
		}
		x.first, x.firstSide = x.all, x.side
		x.confirm = x.p.contexts.Confirm(x.leads())
	} else if x.heardAll() {
		return false
	}
	x.all, x.side, x.told, x.in = x.confirm.Say(), 0, false, nil
	x.start()
	return true
}

// unconfirmed tells whether members have agreed on a private context ID.
func unconfirmed(all *comm.Proposal, side uint32) bool {
	return all.Busy && all.Fault == 0 && inOneVoice(all.Flags|side) == nil
}

// heardAll ends a round of confirming, and tells whether it was the last.
func (x *agreement) heardAll() bool {
	sum := x.all
	sum.Flags |= x.side
	if sum.Fault != 0 || x.err != nil {
		x.confirm.Withdraw()
		x.first.Fault = max(x.first.Fault, sum.Fault)
		x.all, x.side = x.first, x.firstSide
		return true
	}
	id, over, err := x.confirm.Hear(sum)
	if over {
		x.all, x.side = x.first, x.firstSide
		x.all.Private = id
		if err != nil {
			x.fail(err)
		}
	}
	return over
}

// confirm is next for what the members of c have come to in an assembly, which was
// the constructor number seq. The process is locked.
func (c *Comm) confirm(seq uint32, v *verdict, fault error) error {
	if !c.wide() || fault != nil || !unconfirmed(&v.Proposal, 0) {
		return fault
	}
	x := c.agreement(seq)
	x.all, x.ends = v.Proposal, func() {}
	x.next()
	x.p.dispatch(x)
	x.wait()
	v.Proposal = x.all
	return x.err
}

// release takes a context ID back that is of no communicator here. The process is
// locked.
func (p *process) release(context wire.ContextID) {
	if context >= comm.WideLimit {
		p.contexts.Release(context)
	}
}
