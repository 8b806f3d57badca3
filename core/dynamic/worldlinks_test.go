package dynamic

import (
	"testing"
	"time"
)

// TestWorldLinks has a proc with name 5 in its world, and others below and above it.
func TestWorldLinks(t *testing.T) {
	own := WorldProc{World: WorldID{5}}
	low, high := WorldPair{own, WorldProc{World: WorldID{1}}}, WorldPair{own, WorldProc{World: WorldID{9}}}
	type links = WorldLinks[string, string]
	ask := func(x WorldPair, dial bool) func(*links) bool {
		return func(s *links) bool { return s.Ask(x, "secret") == dial }
	}
	arrive := func(x WorldPair, want Verdict) func(*links) bool {
		return func(s *links) bool { return s.Arrive(x, ResumableID{}) == want }
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
		"asked once, and again when it failed": {ask(low, true), ask(low, false), do(func(s *links) { s.Pairs.Stop(low); s.SetNoLink(low) }), ask(low, true)},
		"it is there":                          {arrive(low, Accepted), give(low, "tcp"), ask(low, false), broke(low, false)},
		"anew":                                 {arrive(low, Accepted), give(low, "tcp"), arrive(low, StillLinked), drop(low), arrive(low, Accepted), drop(low), ask(low, true)},
		"the lower one's link is used":         {ask(low, true), ask(high, true), arrive(low, Accepted), arrive(high, TieLost)},
		"broke, and nobody has asked":          {arrive(low, Accepted), broke(low, false), arrive(low, Accepted)},
		"broke, and the proc has heard of none meanwhile": {arrive(low, Accepted), ask(low, false), do(func(s *links) { s.SetNoLink(low) }), broke(low, false)},
		"broke, and it is asked for":                      {arrive(low, Accepted), ask(low, false), broke(low, true), ask(low, true)},
		"broke after it was asked first":                  {ask(low, true), arrive(low, Accepted), broke(low, true), ask(low, false)},
		"and its own plan has ended":                      {ask(low, true), arrive(low, Accepted), do(func(s *links) { s.Pairs.Stop(low) }), broke(low, true), ask(low, true)},
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

// TestWorldLinksResume: a link to another world resumes as one inside a job does, until it is closed.
func TestWorldLinksResume(t *testing.T) {
	low := WorldPair{WorldProc{World: WorldID{5}}, WorldProc{World: WorldID{1}}}
	id, to := ResumableID{7}, Receiver{Known: true, InMPI: true, Allowed: true}
	again := Hello{ResumableID: id, Resumes: true}
	var s WorldLinks[string, string]
	resumes := func(want Verdict) {
		t.Helper()
		if _, v := s.ArriveAgain(time.Time{}, low, again, to, time.Second); v != want {
			t.Errorf("a further connection: %v, want %v", v, want)
		}
	}
	resumes(UnknownLink)
	for what, end := range map[string]func(){
		"closed": func() { s.Drop(low) }, "lost before use": func() { s.LostBeforeUse(low) }, "its proc has ended": func() { s.ForgetProc(low.Local) },
	} {
		if v := s.Arrive(low, id); v != Accepted {
			t.Fatalf("%s: %v", what, v)
		}
		resumes(Accepted)
		if r := s.Resumable.Repair(low, id[:], 1, false); r != TellPeer {
			t.Errorf("%s: the end that was dialled does %d", what, r)
		}
		end()
		resumes(UnknownLink)
	}
	if s.Arrive(low, ResumableID{}); s.Resumable.Get(low) != nil {
		t.Error("a link without a session resumes")
	}
}
