package comm

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// agreeOn has all of them agree, none of them in another agreement at the same time.
func agreeOn(t *testing.T, n int, all ...*Contexts) (id wire.ContextID, err error) {
	t.Helper()
	offers, agreed := make([]ContextUse, len(all)), ContextUse{}
	for i, a := range all {
		offers[i] = a.BeginAgreement(i == 0)
		agreed = agreed.Combine(offers[i])
	}
	for i, a := range all {
		got, e := a.Conclude(offers[i], agreed, n)
		if i > 0 && got != id {
			t.Errorf("member %d has context %d, another %d", i, got, id)
		}
		id, err = got, e
	}
	return id, err
}

func TestContexts(t *testing.T) {
	a, b := NewContexts(0), NewContexts(1)
	if a.Max() != 3 {
		t.Errorf("%d is in use at the start", a.Max())
	}
	if id, err := agreeOn(t, IntraContexts, &a); err != nil || id != 4 || a.Max() != 5 {
		t.Errorf("id %d, %v, maximum %d", id, err, a.Max())
	}
	// b has been elsewhere; the agreement moves it to the same number.
	if id, err := agreeOn(t, IntraContexts, &b, &a); err != nil || id != 6 || b.Max() != 7 || a.Max() != 7 {
		t.Errorf("id %d, %v, maxima %d and %d", id, err, a.Max(), b.Max())
	}
	if id, err := agreeOn(t, InterContexts, &b); err != nil || id != 8 || b.Max() != 11 {
		t.Errorf("intercommunicator: id %d, %v, maximum %d", id, err, b.Max())
	}
	if _, err := b.Conclude(b.BeginAgreement(true), ContextUse{Max: 5}, IntraContexts); !errors.Is(err, ErrContextRace) || b.Max() != 11 {
		t.Errorf("an ID in use was given out: %v, maximum %d", err, b.Max())
	}
}

// Running out of context IDs is an error at all members, and no ID is used again.
func TestContextsRunOut(t *testing.T) {
	a := NewContexts(0)
	if id, err := a.Conclude(a.BeginAgreement(true), ContextUse{Max: ContextLimit - InterContexts - 1}, InterContexts); err != nil || id != ContextLimit-InterContexts {
		t.Errorf("the last ID: %d, %v", uint64(id), err)
	}
	if a.Max() >= ContextLimit {
		t.Errorf("%d is a private ID", uint64(a.Max()))
	}
	for _, agreed := range []wire.ContextID{a.Max(), ContextLimit, 1<<64 - 16, 1<<64 - 1} {
		if _, err := a.Conclude(a.BeginAgreement(true), ContextUse{Max: agreed}, IntraContexts); !errors.Is(err, ErrContexts) {
			t.Errorf("beyond the last ID, agreed on %d: %v", uint64(agreed), err)
		}
	}
}

func TestPrivateContextsRunOut(t *testing.T) {
	a := NewContexts(1<<30 - 1)
	a.next = numbers - 1
	own := a.BeginAgreement(true)
	if last := own.Private + InterContexts - 1; last != WideLimit-1 {
		t.Errorf("the last private ID of one world is %x", uint64(last))
	}
	mine := a.BeginAgreement(true)
	if mine.Private != 0 || !mine.Busy {
		t.Errorf("another one: %+v", mine)
	}
	if _, err := a.Conclude(mine, mine, IntraContexts); !errors.Is(err, ErrContexts) {
		t.Errorf("no ID: %v", err)
	}
	if id, err := a.Conclude(own, own, IntraContexts); err != nil || id != 4 {
		t.Errorf("the agreement that counts: %d, %v", id, err)
	}
}

// A busy member makes all take the leader's private ID, in whatever order
// agreements end.
func TestBusyMember(t *testing.T) {
	a, b := NewContexts(7), NewContexts(8)
	first, second := a.BeginAgreement(true), a.BeginAgreement(true)
	other := b.BeginAgreement(false)
	if first.Busy || !second.Busy || !a.AgreementOpen() {
		t.Errorf("offers %+v and %+v", first, second)
	}
	agreed := other.Combine(second)
	for _, x := range []struct {
		c    *Contexts
		mine ContextUse
	}{{&b, other}, {&a, second}} {
		if id, err := x.c.Conclude(x.mine, agreed, IntraContexts); err != nil || id != second.Private || id < ContextLimit {
			t.Errorf("id %d, %v, want %d", uint64(id), err, uint64(second.Private))
		}
	}
	if b.AgreementOpen() || !a.AgreementOpen() || a.Max() != 3 || b.Max() != 3 {
		t.Errorf("held %v and %v, maxima %d and %d", a.AgreementOpen(), b.AgreementOpen(), a.Max(), b.Max())
	}
	third := a.BeginAgreement(true)
	a.Withdraw(third) // which was busy: the first still counts
	if !a.AgreementOpen() {
		t.Error("the first agreement counts no more")
	}
	a.Withdraw(first)
	if a.AgreementOpen() {
		t.Error("the first agreement still counts")
	}
}

// A private number that was not needed is offered again.
func TestPrivateNumbersAreNotWasted(t *testing.T) {
	a := NewContexts(7)
	before := a.BeginAgreement(true)
	a.Conclude(before, before, IntraContexts)
	for range 10 {
		o := a.BeginAgreement(true)
		if o.Private != before.Private {
			t.Fatalf("%d is offered after %d", uint64(o.Private), uint64(before.Private))
		}
		a.Conclude(o, o, IntraContexts)
	}
}

// TestContextsAtRandom has processes take part in many agreements at once, which
// begin and end in any order in each of them: no process ever has one ID twice.
func TestContextsAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const procs = 4
		var all [procs]Contexts
		for p := range all {
			all[p] = NewContexts(Proc(p))
		}
		used := make([]map[wire.ContextID]bool, procs)
		for p := range used {
			used[p] = map[wire.ContextID]bool{}
		}
		type agreement struct {
			members  []int
			began    int
			offers   []ContextUse
			agreed   ContextUse
			n, ended int
		}
		var open []*agreement
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) == 0 || rapid.IntRange(0, 3).Draw(t, "another") == 0 {
				members := rapid.SliceOfNDistinct(rapid.IntRange(0, procs-1), 1, procs, rapid.ID).Draw(t, "members")
				open = append(open, &agreement{
					members: members, offers: make([]ContextUse, len(members)),
					n: rapid.SampledFrom([]int{IntraContexts, InterContexts}).Draw(t, "sort"),
				})
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			x := open[i]
			if x.began < len(x.members) {
				o := all[x.members[x.began]].BeginAgreement(x.began == 0)
				x.offers[x.began], x.agreed = o, x.agreed.Combine(o)
				x.began++
				continue
			}
			p := x.members[x.ended]
			id, err := all[p].Conclude(x.offers[x.ended], x.agreed, x.n)
			if err != nil {
				t.Fatalf("proc %d: %v", p, err)
			}
			for k := range wire.ContextID(x.n) {
				if used[p][id+k] || id+k < 4 {
					t.Fatalf("proc %d has context %d twice", p, uint64(id+k))
				}
				used[p][id+k] = true
			}
			if x.ended++; x.ended == len(x.members) {
				open = append(open[:i], open[i+1:]...)
			}
		}
	})
}
