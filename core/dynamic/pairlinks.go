package dynamic

import (
	"iter"
	"maps"
)

// PairState is the state of the link between a proc of a node and another proc.
type PairState uint8

// The states.
const (
	Unlinked PairState = iota
	Dialling           // this node dials
	Yielding           // this node dialled, but waits for the link of the other end, which is prior
	Linked
	Refused // given up for good: the pair's packets go by the agents
)

// PairLinks decide which link a pair of procs has, for one of their nodes. Both ends may dial at
// the same time: then the link of the prior end is used, which both ends know, and the other end
// waits for it. With two links messages could overtake each other, which MPI forbids (MPI-4.1, 3.5).
// K identifies a pair: a proc of the node and another one. The zero value is ready.
type PairLinks[K comparable] struct {
	states map[K]PairState
	plans  map[K]uint64 // the plan of each pair whose DialPlan has not had its last step
	last   uint64       // number of plans so far
}

// State returns the state of a pair, Unlinked for a pair that was never asked for.
func (t *PairLinks[K]) State(x K) PairState { return t.states[x] }

// All yields the pairs that are not Unlinked, in any order.
func (t *PairLinks[K]) All() iter.Seq2[K, PairState] { return maps.All(t.states) }

// Len returns the number of pairs that are not Unlinked.
func (t *PairLinks[K]) Len() int { return len(t.states) }

// Request is called for a proc that asks for a link. It returns true if the node has to dial: a
// DialPlan for the pair follows. It returns false if there is a link, or one is being made, or was
// refused. A plan may still dial though the pair is Unlinked, if the other end's link has come and is
// lost since. That plan goes on; a second one would make a second link.
func (t *PairLinks[K]) Request(x K) bool {
	if !t.move(x, Dialling, Unlinked) {
		return false
	}
	if _, runs := t.plans[x]; runs {
		return false
	}
	if t.plans == nil {
		t.plans = make(map[K]uint64)
	}
	t.last++
	t.plans[x] = t.last
	return true
}

// planned records that the pair's DialPlan has had its last step.
func (t *PairLinks[K]) planned(x K) { delete(t.plans, x) }

// Stop records that the pair's DialPlan was given up before its last step. A link that has come
// meanwhile stays.
func (t *PairLinks[K]) Stop(x K) {
	t.move(x, Unlinked, Dialling, Yielding)
	t.planned(x)
}

// Made records that the link which was dialled is made. It returns false if the other end's link is
// used instead.
func (t *PairLinks[K]) Made(x K) bool { return t.move(x, Linked, Dialling) }

// UsedByPeer records that the link which was dialled is made, and that the other end uses it
// already. It returns false if the pair still has its last link, which both ends are about to
// close; then call it again later.
func (t *PairLinks[K]) UsedByPeer(x K) bool { return t.move(x, Linked, Dialling, Yielding, Unlinked) }

// LostTie records that the other end dials too, and is prior. It returns true if the caller has to
// wait for that end's link, and to call Overdue after the wait; false if the link has come.
func (t *PairLinks[K]) LostTie(x K) bool { return t.move(x, Yielding, Dialling) }

// Overdue records that the wait for the other end's link is over. It returns true if the link has
// not come: the other end may have given up, so dial again.
func (t *PairLinks[K]) Overdue(x K) bool { return t.move(x, Dialling, Yielding) }

// GiveUp records that no link can be made. It returns true if there is none: the pair sends by its
// agents from now on, and a link of the other end is refused too. It returns false if the other
// end's link has come.
func (t *PairLinks[K]) GiveUp(x K) bool { return t.move(x, Refused, Dialling) }

// Fail is like GiveUp, but the pair may ask for a link again.
func (t *PairLinks[K]) Fail(x K) bool { return t.move(x, Unlinked, Dialling) }

// Drop records that the pair's link is closed or broken; the pair may ask for another one.
func (t *PairLinks[K]) Drop(x K) bool { return t.move(x, Unlinked, Linked) }

// Forget removes a pair of which one proc has ended.
func (t *PairLinks[K]) Forget(x K) {
	delete(t.states, x)
	t.planned(x)
}

// Arrive returns the verdict about a link that the other end has made: Accepted, TieLost,
// StillLinked if the pair has one, or NotAllowed after GiveUp. Both procs of a pair send by the
// link or both by the agents: if only one proc used the link, the end of the link could overtake
// its packets, and the other proc would take it for the end of its peer.
func (t *PairLinks[K]) Arrive(x K, prior bool) Verdict {
	if t.states[x] == Yielding { // its plan only waits for this link, and does nothing any more
		t.planned(x)
	}
	free := []PairState{Unlinked, Yielding}
	if prior {
		free = append(free, Dialling)
	}
	switch {
	case t.move(x, Linked, free...):
		return Accepted
	case t.states[x] == Refused:
		return NotAllowed
	case t.states[x] == Linked:
		return StillLinked
	}
	return TieLost
}

// move changes a pair's state to to if it is one of from, and reports whether it was.
func (t *PairLinks[K]) move(x K, to PairState, from ...PairState) bool {
	for _, f := range from {
		if t.states[x] != f {
			continue
		}
		if t.states == nil {
			t.states = make(map[K]PairState)
		}
		if t.states[x] = to; to == Unlinked {
			delete(t.states, x)
		}
		return true
	}
	return false
}
