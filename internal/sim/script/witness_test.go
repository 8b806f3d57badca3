package script

import (
	"errors"
	"testing"
)

// begun is an Env that knows only how far its ranks have come.
type begun struct {
	Env
	steps []int
}

func (b begun) Begun(rank int) int { return b.steps[rank] }

func TestNobodyPassesABarrierEarly(t *testing.T) {
	g := &group{members: []int{2, 0}}
	for _, c := range []struct {
		steps []int
		ok    bool
	}{
		{[]int{5, 0, 5}, true}, // rank 1 is no member
		{[]int{9, 0, 5}, true},
		{[]int{4, 9, 5}, false},
		{[]int{5, 9, 0}, false},
	} {
		r := &runner{env: begun{steps: c.steps}, step: 4}
		if err := r.gathered(g); c.ok != (err == nil) || err != nil && !errors.Is(err, ErrMismatch) {
			t.Errorf("steps %v: %v", c.steps, err)
		}
	}
	if err := (&runner{step: 4}).gathered(g); err != nil {
		t.Errorf("without a witness: %v", err)
	}
}

func TestNoSynchronousSendEndsEarly(t *testing.T) {
	m := func(id, from int, any bool, mode Mode) Message {
		return Message{ID: id, From: from, To: 2, Comm: World, Tag: 1, AnySource: any, Kind: Uint8, Len: 1, Cap: 1, Mode: mode}
	}
	start := func(id int, s Side) Step { return Start{Req{id, s}, false} }
	wait := func(rank, id int, s Side) Step { return Wait{rank, HowWait, []Req{{id, s}}} }
	program := func(any bool, mode Mode) *Program {
		return &Program{Procs: 3, Messages: []Message{m(1, 0, any, mode), m(2, 1, any, mode)}, Steps: []Step{
			start(1, SendSide), start(2, SendSide), start(1, RecvSide), start(2, RecvSide),
			wait(0, 1, SendSide), wait(1, 2, SendSide), wait(2, 1, RecvSide), wait(2, 2, RecvSide),
		}}
	}
	for _, c := range []struct {
		what  string
		any   bool
		mode  Mode
		begun int // by the receiver
		ok    bool
	}{
		{"its receive is started", false, Synchronous, 4, true},
		{"another receive is started", false, Synchronous, 3, false},
		{"standard mode", false, Standard, 0, true},
		{"any receive may get it", true, Synchronous, 3, true},
		{"no receive is started", true, Synchronous, 2, false},
	} {
		a, err := check(program(c.any, c.mode))
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{a: a, env: begun{steps: []int{9, 9, c.begun}}}
		if err := r.matched(a.byID[2].m); c.ok != (err == nil) || err != nil && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
