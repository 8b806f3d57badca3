package construct

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// next begins another round of an agreement, if one is needed: if the members are of several worlds
// and one of them was busy, all have to confirm the private context ID. When the agreement is over,
// x.All and x.Side are those of the first round, with the ID in x.All.
func (x *agreement) next() bool {
	if x.confirm == nil {
		if !x.Wide || !NeedsConfirmation(&x.All, x.Side) {
			return false
		}
		x.first, x.firstSide = x.All, x.Side
		x.confirm = x.p.Comms.Contexts.Confirm(x.leads())
	} else if x.heardAll() {
		return false
	}
	x.All, x.Side, x.told, x.in = x.confirm.Propose(), 0, false, nil
	x.start()
	return true
}

// NeedsConfirmation reports whether the members have agreed on a private context ID, which they have to
// confirm.
func NeedsConfirmation(all *comm.Proposal, side uint32) bool {
	return all.Busy && all.Fault == 0 && inOneVoice(all.Flags|side) == nil
}

// heardAll ends a round of confirming, and reports whether it was the last.
func (x *agreement) heardAll() bool {
	sum := x.All
	sum.Flags |= x.Side
	if sum.Fault != 0 || x.Err != nil {
		x.confirm.Withdraw()
		x.first.Fault = max(x.first.Fault, sum.Fault)
		x.All, x.Side = x.first, x.firstSide
		return true
	}
	id, over, err := x.confirm.Decide(sum)
	if over {
		x.All, x.Side = x.first, x.firstSide
		x.All.Private = id
		if err != nil {
			x.fail(err)
		}
	}
	return over
}

// confirm is next after an assembly, for constructor number seq. The process is locked.
func confirm(c *proc.Comm, seq uint32, v *AssemblyResult, fault error) error {
	if !c.Wide() || fault != nil || !NeedsConfirmation(&v.Proposal, 0) {
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

// Release releases a context ID that no communicator has here. The process is locked.
func Release(p *proc.Process, context wire.ContextID) {
	if context >= comm.WideLimit {
		p.Comms.Contexts.Release(context)
	}
}
