package dynamic

import "testing"

func TestLostLinks(t *testing.T) {
	var s ResumableLinks[string]
	id, other := ResumableID{1}, ResumableID{2}
	again := Hello{ResumableID: id, Resumes: true}
	told := Hello{ResumableID: id, Lost: true}
	want := func(step string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
	}
	want("nobody has it", s.Repair("a", id[:], false), NoSuchLink)
	want("nobody has it", s.CheckResume("a", again, false), UnknownLink)

	a := s.Add("a", id, true)
	want("the last link's proc", s.Repair("a", other[:], false), NoSuchLink)
	want("it is lost", s.Repair("a", id[:], false), Redial)
	want("dialling", s.Repair("a", id[:], false), NoRepair)
	a.Busy = false
	want("it is lost once more", s.Repair("a", id[:], false), Redial)
	want("who dials is not dialled", s.CheckResume("a", again, false), UnknownLink)
	want("the other end has lost it", s.CheckResume("a", told, false), Accepted)

	b := s.Add("b", id, false)
	want("the other end should dial", s.Repair("b", id[:], false), TellPeer)
	want("it dials", s.CheckResume("b", again, false), Accepted)
	want("who is dialled is not told", s.CheckResume("b", told, false), UnknownLink)
	want("another link", s.CheckResume("b", Hello{ResumableID: other, Resumes: true}, false), UnknownLink)
	want("the proc has left", s.CheckResume("b", again, true), Leaving)

	b.Busy = false
	want("given up", s.Repair("b", id[:], true), NoRepair)
	want("given up", s.Repair("b", id[:], false), NoRepair)
	want("given up", s.CheckResume("b", again, false), UnknownLink)

	c := s.Add("b", other, true)
	s.Remove("b", b)
	want("not the last one", s.Get("b"), c)
	s.Remove("b", c)
	want("dismissed", s.Get("b"), (*ResumableLink)(nil))
}

// TestSessionThatIsBeingMade: the other end may have a link, and lose it, before this node knows
// that it is made.
func TestSessionThatIsBeingMade(t *testing.T) {
	var s ResumableLinks[int]
	var pairs PairLinks[int]
	if s.Begin(1, ResumableID{1}, &pairs) != nil {
		t.Error("a link is begun that nobody wants")
	}
	pairs.Request(1)
	state := s.Begin(1, ResumableID{1}, &pairs)
	if v := s.CheckResume(1, Hello{ResumableID: ResumableID{1}, Lost: true}, false); v != Accepted || !state.Making {
		t.Errorf("the other end hears %v", v)
	}
	if s.Add(1, ResumableID{1}, true); s.Get(1).Making {
		t.Error("it is not made")
	}
	if s.Remove(1, state); s.Get(1) == nil {
		t.Error("what was begun takes the link with it")
	}
}
