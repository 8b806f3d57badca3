package spawn

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// attemptOf is an attempt of one command for each part.
func attemptOf(parts int) *Attempt {
	var commands []Command
	var plan []*Placed
	for i := range parts {
		c := Command{Number: i, Path: "p", Procs: 2}
		commands = append(commands, c)
		plan = append(plan, &Placed{Part: Part{Commands: []Command{c}}})
	}
	t := NewAttempt(commands)
	t.Follow(plan)
	return t
}

// TestAttempt has three parts, one of which has no procs: the others are clients in a row, and the
// attempt succeeds with the last of them.
func TestAttempt(t *testing.T) {
	a := attemptOf(3)
	replies := []Reply{{Granted: []int{2}, Clients: 2}, {Granted: []int{0}}, {Granted: []int{1}}}
	var begins []bool
	for p, ok := a.Next(); ok; p, ok = a.Next() {
		if p.Most != MaxParts/3 {
			t.Errorf("a part may be on %d hosts", p.Most)
		}
		begins = append(begins, a.Answered(p, replies[len(begins)]))
	}
	if !slices.Equal(begins, []bool{true, false, true}) || a.Clients() != 3 || a.Parts[1].First != 2 {
		t.Errorf("%v, %d clients, the second part is client %d", begins, a.Clients(), a.Parts[1].First)
	}
	if r := a.Begin(); r != nil {
		t.Error(r)
	}
	if a.InInit() {
		t.Error("started before all procs are in Init")
	}
	if !a.InInit() || a.Refuse(Refuse(-1, "too late")) || a.Refusal() != nil {
		t.Errorf("not started: %v", a.Refusal())
	}
	ok, no := int(mpierr.Success), int(mpierr.Spawn)
	if got := a.Codes(); !slices.Equal(got, []int{ok, ok, no, no, ok, no}) {
		t.Errorf("codes %v", got)
	}
}

// TestAttemptRefused: after a refusal nothing is asked for, kept, begun or successful, and the first
// reason counts.
func TestAttemptRefused(t *testing.T) {
	a := attemptOf(2)
	p, _ := a.Next()
	first := Refuse(1, "first")
	if !a.Refuse(first) || a.Refuse(Refuse(-1, "second")) || a.Refusal() != first {
		t.Errorf("refused by %v", a.Refusal())
	}
	if a.Answered(p, Reply{Granted: []int{2}}) {
		t.Error("a part is kept")
	}
	if p, ok := a.Next(); ok {
		t.Errorf("%v is asked for", p)
	}
	if a.Begin() != first || a.InInit() {
		t.Error("it begins")
	}
	if got := a.Codes(); got[0] != int(mpierr.Other) || got[2] != int(mpierr.Spawn) {
		t.Errorf("codes %v", got)
	}
}

// TestAttemptOfNobody: an attempt for which no site has room does not begin.
func TestAttemptOfNobody(t *testing.T) {
	a := attemptOf(1)
	p, _ := a.Next()
	if a.Answered(p, Reply{Granted: []int{0}}) || a.Begin() == nil {
		t.Error("it begins")
	}
}
