package dynamic

import "testing"

// TestWorldLinks has a proc with name 5 in its world, and others below and above it.
func TestWorldLinks(t *testing.T) {
	own := WorldProc{World: WorldID{5}}
	low, high := WorldPair{own, WorldProc{World: WorldID{1}}}, WorldPair{own, WorldProc{World: WorldID{9}}}
	type links = WorldLinks[string, string]
	ask := func(x WorldPair, dial bool) func(*links) bool {
		return func(s *links) bool { return s.Ask(x, "secret") == dial }
	}
	arrive := func(x WorldPair, want Verdict) func(*links) bool {
		return func(s *links) bool { return s.Arrive(x) == want }
	}
	give := func(x WorldPair, want string) func(*links) bool {
		return func(s *links) bool { s.SetLink(x, "tcp"); return s.LinkOf(x) == want }
	}
	broke := func(x WorldPair, again bool) func(*links) bool {
		return func(s *links) bool { what, ok := s.LostBeforeUse(x); return ok == again && (what == "secret") == again }
	}
	do := func(f func(*links)) func(*links) bool { return func(s *links) bool { f(s); return true } }
	drop := func(x WorldPair) func(*links) bool { return do(func(s *links) { s.Drop(x) }) }
	for name, steps := range map[string][]func(*links) bool{
		"asked once, and again when it failed": {ask(low, true), ask(low, false), do(func(s *links) { s.Pairs.Fail(low); s.SetNoLink(low) }), ask(low, true)},
		"it is there":                          {arrive(low, Accepted), give(low, "tcp"), ask(low, false), broke(low, false)},
		"anew":                                 {arrive(low, Accepted), give(low, "tcp"), arrive(low, StillLinked), drop(low), arrive(low, Accepted), drop(low), ask(low, true)},
		"the lower one's link is used":         {ask(low, true), ask(high, true), arrive(low, Accepted), arrive(high, TieLost)},
		"broke, and nobody has asked":          {arrive(low, Accepted), broke(low, false), arrive(low, Accepted)},
		"broke, and the proc has heard of none meanwhile": {arrive(low, Accepted), ask(low, false), do(func(s *links) { s.SetNoLink(low) }), broke(low, false)},
		"broke, and it is asked for":                      {arrive(low, Accepted), ask(low, false), broke(low, true), ask(low, true)},
		"broke after it was asked first":                  {ask(low, true), arrive(low, Accepted), broke(low, true)},
		"given after it was dropped":                      {arrive(low, Accepted), drop(low), give(low, ""), ask(low, true)},
		"who is no more":                                  {arrive(low, Accepted), give(low, "tcp"), ask(high, true), do(func(s *links) { s.ForgetProc(own) }), broke(low, false), broke(high, false), ask(low, true), ask(high, true)},
		"another one is no more":                          {ask(low, true), do(func(s *links) { s.ForgetProc(low.Peer) }), ask(low, false)},
	} {
		var s links
		for i, step := range steps {
			if !step(&s) {
				t.Errorf("%s: step %d", name, i)
			}
		}
	}
	if low.Reversed().Reversed() != low || low.Reversed().Local != low.Peer {
		t.Error(low.Reversed())
	}
}
