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
	want("nobody has it", s.Repair("a", id[:], 7, false), NoSuchLink)
	want("nobody has it", s.CheckResume("a", again, false), UnknownLink)

	a := s.Add("a", id, true)
	want("the last link's proc", s.Repair("a", other[:], 7, false), NoSuchLink)
	want("it is lost", s.Repair("a", id[:], 7, false), Redial)
	want("dialling", s.Repair("a", id[:], 7, false), NoRepair)
	a.Busy = false
	want("it is lost once more", s.Repair("a", id[:], 7, false), Redial)
	want("who dials is not dialled", s.CheckResume("a", again, false), UnknownLink)
	want("the other end has lost it", s.CheckResume("a", told, false), Accepted)

	b := s.Add("b", id, false)
	want("the other end should dial", s.Repair("b", id[:], 7, false), TellPeer)
	want("it dials", s.CheckResume("b", again, false), Accepted)
	want("who is dialled is not told", s.CheckResume("b", told, false), UnknownLink)
	want("another link", s.CheckResume("b", Hello{ResumableID: other, Resumes: true}, false), UnknownLink)
	want("the proc has left", s.CheckResume("b", again, true), Leaving)

	b.Busy = false
	want("given up", s.Repair("b", id[:], 7, true), NoRepair)
	want("given up", s.Repair("b", id[:], 7, false), NoRepair)
	want("given up", s.CheckResume("b", again, false), UnknownLink)

	c := s.Add("b", other, true)
	s.Remove("b", b)
	want("not the last one", s.Get("b"), c)
	s.Remove("b", c)
	want("dismissed", s.Get("b"), (*ResumableLink)(nil))
}

// TestLostAgainDuringARepair: a link that the other end has resumed, and that is lost again while this
// end still tells it of the first loss, is repaired after that.
func TestLostAgainDuringARepair(t *testing.T) {
	for what, c := range map[string]struct {
		during func(*ResumableLinks[int], *ResumableLink)
		v      Verdict
		next   Repair
	}{
		"it is lost again":                {func(s *ResumableLinks[int], l *ResumableLink) { l.Resumes++; s.Repair(1, l.ID[:], 9, false) }, Accepted, TellPeer},
		"the same loss is reported twice": {func(s *ResumableLinks[int], l *ResumableLink) { s.Repair(1, l.ID[:], 8, false) }, Accepted, NoRepair},
		"the first was reported late":     {func(s *ResumableLinks[int], l *ResumableLink) { s.Repair(1, l.ID[:], 9, false) }, Accepted, TellPeer},
		"it is resumed":                   {func(_ *ResumableLinks[int], l *ResumableLink) { l.Resumes++ }, Accepted, NoRepair},
		"and given up": {func(s *ResumableLinks[int], l *ResumableLink) {
			l.Resumes++
			s.Repair(1, l.ID[:], 9, false)
			s.Repair(1, l.ID[:], 9, true)
		}, Accepted, NoRepair},
		"the other end has left MPI": {func(s *ResumableLinks[int], l *ResumableLink) { l.Resumes++; s.Repair(1, l.ID[:], 9, false) }, Leaving, NoRepair},
	} {
		var s ResumableLinks[int]
		l := s.Add(1, ResumableID{1}, false)
		if s.Repair(1, l.ID[:], 8, false) != TellPeer {
			t.Fatalf("%s: it is not repaired", what)
		}
		c.during(&s, l)
		if next, _ := l.Next(); next != NoRepair {
			t.Errorf("%s: two repairs at once", what)
		}
		l.Repaired(TellPeer, false, c.v)
		next, epoch := l.Next()
		if next != c.next || l.Busy != (next != NoRepair) || next != NoRepair && epoch != 9 {
			t.Errorf("%s: then %v of epoch %d", what, next, epoch)
		}
		if next, _ := l.Next(); next != NoRepair {
			t.Errorf("%s: it is repaired twice", what)
		}
	}
	var m Moves
	var s ResumableLinks[int]
	l := s.Add(1, ResumableID{1}, false)
	m.Break(l)
	l.Resumes++
	s.Repair(1, l.ID[:], 9, false)
	m.Asked(l, true)
	if next, epoch := l.Next(); next != TellPeer || epoch != 9 {
		t.Errorf("after an order to leave a plugin: %v", next)
	}
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
