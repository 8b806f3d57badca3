package dynamic

import (
	"testing"
	"time"
)

func TestMoves(t *testing.T) {
	var m Moves
	now := time.Unix(7, 0)
	want := func(when string, s *ResumableLink, elsewhere bool, leave Leave, begins bool) {
		t.Helper()
		if x, begin := m.Order(now, s, elsewhere); x != leave || begin != begins {
			t.Errorf("%s: %d, %t", when, x, begin)
		}
	}
	want("not resumable", nil, true, Fixed, false)
	s := &ResumableLink{Resumes: 3}
	want("no other candidate", s, false, Waiting, false)
	if m.Moves(s) || m.Refuses(now, s, time.Minute) {
		t.Error("a link that stays moves")
	}
	want("first", s, true, Moving, true)
	m.Ordered(now, s) // by the other end, at the same time
	want("second", s, true, Moving, false)
	if !m.Moves(s) || !m.Refuses(now.Add(moveTime-1), s, time.Minute) || m.Refuses(now.Add(moveTime), s, time.Minute) || m.Refuses(now.Add(time.Second), s, 2*time.Second) {
		t.Error("the transport is not refused for a while")
	}
	s.Resumes++
	want("resumed by the same transport", s, true, Waiting, false)
	if m.Moves(s) || m.Refuses(now, s, time.Minute) {
		t.Error("a link that was resumed moves")
	}
	m.Ordered(now, s)
	if want("ordered by the other end since", s, true, Waiting, false); !m.Moves(s) || !m.Refuses(now, s, time.Minute) {
		t.Error("a link that the other end has broken does not move")
	}
	m.Forget()
	want("after an end of the drain", s, true, Moving, true)
}

func TestAskedInVain(t *testing.T) {
	now := time.Unix(7, 0)
	for _, c := range []struct {
		name      string
		heard     bool
		meanwhile func(*Moves, *ResumableLink)
		want      Breaker
	}{
		{"heard", true, func(*Moves, *ResumableLink) {}, Nobody},
		{"not heard", false, func(*Moves, *ResumableLink) {}, BreakHere},
		{"not heard, and resumed meanwhile", false, func(_ *Moves, s *ResumableLink) { s.Resumes++ }, Nobody},
		{"not heard, and the transport is used again", false, func(m *Moves, _ *ResumableLink) { m.Forget() }, Nobody},
	} {
		var m Moves
		s := &ResumableLink{}
		if _, begin := m.Order(now, s, true); !begin || m.Break(s) != AskPeer {
			t.Fatalf("%s: the other end's node is not asked", c.name)
		}
		c.meanwhile(&m, s)
		if got := m.Asked(s, c.heard); got != c.want || s.Busy {
			t.Errorf("%s: %d instead of %d, busy: %t", c.name, got, c.want, s.Busy)
		}
	}
}
