package construct

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// next begins another round of an agreement, if one is needed: where the members are of
// several worlds and one of them was busy, all of them have to confirm the private
// context ID. x.all and x.side are of the first round once the agreement is over, with the
// ID in x.all.
func (x *agreement) next() bool {
	if x.confirm == nil {
		if !x.Wide || !Unconfirmed(&x.All, x.Side) {
			return false
		}
		x.first, x.firstSide = x.All, x.Side
		x.confirm = x.p.Comms.Contexts.Confirm(x.leads())
	} else if x.heardAll() {
		return false
	}
	x.All, x.Side, x.told, x.in = x.confirm.Say(), 0, false, nil
	x.start()
	return true
}

// Unconfirmed tells whether members have agreed on a private context ID.
func Unconfirmed(all *comm.Proposal, side uint32) bool {
	return all.Busy && all.Fault == 0 && inOneVoice(all.Flags|side) == nil
}

// heardAll ends a round of confirming, and tells whether it was the last.
func (x *agreement) heardAll() bool {
	sum := x.All
	sum.Flags |= x.Side
	if sum.Fault != 0 || x.Err != nil {
		x.confirm.Withdraw()
		x.first.Fault = max(x.first.Fault, sum.Fault)
		x.All, x.Side = x.first, x.firstSide
		return true
	}
	id, over, err := x.confirm.Hear(sum)
	if over {
		x.All, x.Side = x.first, x.firstSide
		x.All.Private = id
		if err != nil {
			x.fail(err)
		}
	}
	return over
}

// confirm is next for what the members of c have come to in an assembly, which was
// the constructor number seq. The process is locked.
func confirm(c *proc.Comm, seq uint32, v *Verdict, fault error) error {
	if !c.Wide() || fault != nil || !Unconfirmed(&v.Proposal, 0) {
		return fault
	}
	x := Agreement(c, seq)
	x.All, x.ends = v.Proposal, func() {}
	x.next()
	x.p.Background.Dispatch(x)
	x.Wait()
	v.Proposal = x.All
	return x.Err
}

// Release takes a context ID back that is of no communicator here. The process is
// locked.
func Release(p *proc.Process, context wire.ContextID) {
	if context >= comm.WideLimit {
		p.Comms.Contexts.Release(context)
	}
}
