package spawn

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
)

// transactionOf is a transaction of one command for each part.
func transactionOf(parts int) *Transaction {
	var commands []Command
	var plan []*PlacedPart
	for i := range parts {
		c := Command{Number: i, Path: "p", Procs: 2}
		commands = append(commands, c)
		plan = append(plan, &PlacedPart{Part: Part{Commands: []Command{c}}})
	}
	t := NewTransaction(commands)
	t.SetPlan(plan)
	return t
}

// TestTransaction has parts at this site (0 and 1, 4 and 5) and at another one (2, 3), of which one
// has no procs: those at this site that follow each other are one client, each of the others is
// one, and the transaction succeeds with the last of them.
func TestTransaction(t *testing.T) {
	a := transactionOf(6)
	for _, i := range []int{0, 1, 4, 5} {
		a.plan[i].Hosts = []int{i}
	}
	var begins []bool
	for p, ok := a.Next(); ok; p, ok = a.Next() {
		n := 2 - len(begins)%2
		if len(begins) == 4 {
			n = 0
		}
		begins = append(begins, a.Answered(p, Reply{Granted: []int{n}}))
	}
	if !slices.Equal(begins, []bool{true, true, true, true, false, true}) {
		t.Errorf("%v", begins)
	}
	for i, want := range []wire.ClientRank{0, 0, 1, 2, 3} {
		if got := a.Parts[i].NewClient; got != want {
			t.Errorf("part %d is of client %d, not %d", i, got, want)
		}
	}
	if r := a.Begin(); r != nil {
		t.Error(r)
	}
	for range 4 {
		if a.PartInInit() {
			t.Error("started before all procs are in Init")
		}
	}
	if !a.PartInInit() || a.Refuse(Refuse(-1, "too late")) || a.Refusal() != nil {
		t.Errorf("not started: %v", a.Refusal())
	}
	ok, no := int(mpierr.Success), int(mpierr.Spawn)
	if got := a.Codes(); !slices.Equal(got, []int{ok, ok, ok, no, ok, ok, ok, no, no, no, ok, no}) {
		t.Errorf("codes %v", got)
	}
}

// TestTransactionRefused: after a refusal nothing is asked for, kept, begun or successful, and the
// first reason counts.
func TestTransactionRefused(t *testing.T) {
	a := transactionOf(2)
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
	if a.Begin() != first || a.PartInInit() {
		t.Error("it begins")
	}
	if got := a.Codes(); got[0] != int(mpierr.Other) || got[2] != int(mpierr.Spawn) {
		t.Errorf("codes %v", got)
	}
}

// TestTransactionOfNobody: a transaction for which no site has room does not begin.
func TestTransactionOfNobody(t *testing.T) {
	a := transactionOf(1)
	p, _ := a.Next()
	if a.Answered(p, Reply{Granted: []int{0}}) || a.Begin() == nil {
		t.Error("it begins")
	}
}

// TestEnd: whoever can hear that a world ends hears it once, from its spawner or its server.
func TestEnd(t *testing.T) {
	for _, x := range []struct {
		here, inInit, tells bool
	}{{true, false, true}, {true, true, true}, {false, false, true}, {false, true, false}} {
		if got := TellsPart(x.here, x.inInit); got != x.tells {
			t.Errorf("part here %t, in Init %t: told %t", x.here, x.inInit, got)
		}
	}
	if !EndsServer(0) || EndsServer(1) || EndsServer(2) {
		t.Error("the server is ended by whoever has no part of the world")
	}
}
