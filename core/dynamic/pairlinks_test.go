package dynamic

import "testing"

// TestTies has two nodes make a link for a pair, of which the first is prior, in every
// order of what can happen: they end with one link, or both without.
func TestTies(t *testing.T) {
	type step func(a, b *PairLinks[int]) bool
	is := func(v Verdict) func(Verdict) bool { return func(w Verdict) bool { return v == w } }
	arrives := func(at, prior bool, ok func(Verdict) bool) step { // at b, or at a
		return func(a, b *PairLinks[int]) bool {
			if at {
				return ok(b.Arrive(1, prior))
			}
			return ok(a.Arrive(1, prior))
		}
	}
	one := func(f func(*PairLinks[int], int) bool, want bool) step {
		return func(a, _ *PairLinks[int]) bool { return f(a, 1) == want }
	}
	two := func(f func(*PairLinks[int], int) bool, want bool) step {
		return func(_, b *PairLinks[int]) bool { return f(b, 1) == want }
	}
	want, made, lost, overdue := (*PairLinks[int]).Request, (*PairLinks[int]).Made, (*PairLinks[int]).LostTie, (*PairLinks[int]).Overdue
	giveUp, fail, drop, use := (*PairLinks[int]).GiveUp, (*PairLinks[int]).Fail, (*PairLinks[int]).Drop, (*PairLinks[int]).UsedByPeer
	ended := func(a, _ *PairLinks[int]) bool { a.planned(1); return true }
	for name, c := range map[string]struct {
		steps []step
		a, b  PairState
	}{
		"one dials": {[]step{one(want, true), one(want, false), arrives(true, true, is(Accepted)), one(made, true), two(want, false)}, Linked, Linked},
		"both dial, the prior one is first": {[]step{
			one(want, true), two(want, true), arrives(true, true, is(Accepted)), arrives(false, false, is(TieLost)), two(lost, false), one(made, true),
		}, Linked, Linked},
		"both dial, the other is first": {[]step{
			one(want, true), two(want, true), arrives(false, false, is(TieLost)), two(lost, true), arrives(true, true, is(Accepted)), two(overdue, false), one(made, true),
		}, Linked, Linked},
		"the prior one gives up": {[]step{
			one(want, true), two(want, true), arrives(false, false, is(TieLost)), two(lost, true), one(giveUp, true), two(overdue, true), arrives(false, false, is(NotAllowed)), two(giveUp, true),
		}, Refused, Refused},
		"the prior one fails, and is found the next time": {[]step{
			one(want, true), two(want, true), arrives(false, false, is(TieLost)), two(lost, true), one(fail, true), two(overdue, true), arrives(false, false, is(Accepted)), two(made, true), one(want, false),
		}, Linked, Linked},
		"a link that comes while another is dialled": {[]step{
			two(want, true), one(want, true), arrives(true, true, is(Accepted)), two(made, false), two(giveUp, false), two(fail, false), one(made, true),
		}, Linked, Linked},
		"again": {[]step{
			one(want, true), arrives(true, true, is(Accepted)), one(made, true), one(drop, true), ended, one(want, true), arrives(true, true, is(StillLinked)), two(drop, true), two(drop, false), arrives(true, true, is(Accepted)), one(use, true),
		}, Linked, Linked},
		"used before the last one is forgotten": {[]step{
			one(want, true), one(made, true), one(use, false), one(drop, true), one(use, true),
		}, Linked, Unlinked},
	} {
		var a, b PairLinks[int]
		for i, s := range c.steps {
			if !s(&a, &b) {
				t.Errorf("%s: step %d: the nodes are at %d and %d", name, i+1, a.State(1), b.State(1))
			}
		}
		if a.State(1) != c.a || b.State(1) != c.b {
			t.Errorf("%s: the nodes end at %d and %d, want %d and %d", name, a.State(1), b.State(1), c.a, c.b)
		}
	}
}

// TestTiesForgetWhoIsUnlinked: pairs without a link cost nothing.
func TestTiesForgetWhoIsUnlinked(t *testing.T) {
	var x PairLinks[string]
	x.Request("a")
	x.Fail("a")
	x.Request("b")
	x.Made("b")
	x.Drop("b")
	x.Request("c")
	if x.Len() != 1 {
		t.Errorf("%d pairs are kept, want 1", x.Len())
	}
	for k, p := range x.All() {
		if k != "c" || p != Dialling {
			t.Errorf("%s is at %d", k, p)
		}
	}
}
