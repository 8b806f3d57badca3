package comm

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// round has each member of a confirmation contribute and receive the sum.
func round(members []*Confirmation) (ids []wire.ContextID, over bool, err error) {
	var all Proposal
	for _, c := range members {
		all = all.Combine(c.Propose())
	}
	for _, c := range members {
		id, o, e := c.Decide(all)
		ids, over, err = append(ids, id), o, e
	}
	return ids, over, err
}

func world(n byte) (w [16]byte) {
	w[3] = n
	return w
}

func TestConfirmation(t *testing.T) {
	a, b := NewContexts(0), NewContexts(0)
	a.SetWorld(world('a'), PrivateBits)
	b.SetWorld(world('b'), PrivateBits)
	members := []*Confirmation{a.Confirm(true), b.Confirm(true)}
	if _, over, err := round(members); over || err != nil {
		t.Fatalf("over after the first round, %v", err)
	}
	ids, over, err := round(members)
	if !over || err != nil || ids[0] != ids[1] || ids[0] < WideLimit || ids[0]%4 != 0 || ids[0] >= lastContext {
		t.Fatalf("%x, over %v, %v", ids, over, err)
	}
	if a.Claim(ids[0]) || b.Claim(ids[0]) || a.Claimed() != 1 {
		t.Error("the ID is not claimed by both")
	}
	a.Release(ids[0])
	if a.Claimed() != 0 || !a.Claim(ids[0]) {
		t.Error("the ID is not released")
	}
}

// A member that uses the ID already makes the others give it up, and draw again.
func TestConfirmationOfAnIDInUse(t *testing.T) {
	a, b := NewContexts(0), NewContexts(1)
	members := []*Confirmation{a.Confirm(true), b.Confirm(false)}
	_, _, _ = round(members)
	taken := members[0].id
	if !b.Claim(taken) {
		t.Fatal("the ID is claimed before it is confirmed")
	}
	if _, over, err := round(members); over || err != nil {
		t.Fatalf("over although b uses the ID, %v", err)
	}
	if a.Claimed() != 0 || b.Claimed() != 1 {
		t.Errorf("%d and %d IDs are claimed", a.Claimed(), b.Claimed())
	}
	if ids, over, err := round(members); !over || err != nil || ids[0] == taken || ids[0] != ids[1] {
		t.Errorf("%x, over %v, %v; %x is in use", ids, over, err, taken)
	}
}

func TestConfirmationsThatComeToNothing(t *testing.T) {
	a := NewContexts(0)
	a.SetWorld(world('a'), 1)
	var err error
	var over bool
	for range 10 { // there are only two IDs
		members := []*Confirmation{a.Confirm(true)}
		for over = false; !over; {
			_, over, err = round(members)
		}
	}
	if !errors.Is(err, ErrContexts) || a.Claimed() != 2 {
		t.Errorf("%v with %d of 2 IDs claimed", err, a.Claimed())
	}
	if _, over, err := round([]*Confirmation{a.Confirm(false)}); !over || !errors.Is(err, ErrContexts) {
		t.Errorf("without a leader: over %v, %v", over, err)
	}
	c := a.Confirm(true)
	c.Withdraw() // nothing is claimed yet
	b := NewContexts(1)
	c = b.Confirm(true)
	_, _, _ = c.Decide(c.Propose())
	c.Propose()
	c.Withdraw()
	if b.Claimed() != 0 {
		t.Error("an ID is claimed after its confirmation was given up")
	}
}

// No process ever uses an ID for two communicators, in whatever order the members of
// agreements take their steps, in a space so small that IDs clash.
func TestConfirmationsClash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]Contexts, 6)
		for i := range all {
			all[i] = NewContexts(Proc(i / 3)) // ranks 0 and 1 of three worlds
			all[i].SetWorld(world(byte(i%3)), 5)
		}
		var open []*agreement
		used := make([]map[wire.ContextID]bool, len(all))
		for i := range used {
			used[i] = map[wire.ContextID]bool{}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(open) < 4 && rapid.Bool().Draw(t, "begin") {
				members := rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "members")[:rapid.IntRange(2, 6).Draw(t, "size")]
				open = append(open, newAgreement(all, members))
			}
			if len(open) == 0 {
				continue
			}
			k := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			x := open[k]
			if !x.step(t, rapid.IntRange(0, len(x.members)-1).Draw(t, "who"), used) {
				continue
			}
			open = append(open[:k], open[k+1:]...)
		}
	})
}

// agreement is a confirmation of several members that take their steps in any order.
type agreement struct {
	members     []int
	parts       []*Confirmation
	said, heard map[int]bool
	sum         Proposal
	ids         []wire.ContextID
}

func newAgreement(all []Contexts, members []int) *agreement {
	x := &agreement{members: members, said: map[int]bool{}, heard: map[int]bool{}}
	for i, m := range members {
		x.parts = append(x.parts, all[m].Confirm(i < 2))
	}
	return x
}

// step takes member i's next step, if it can take one, and reports whether the agreement is
// over.
func (x *agreement) step(t *rapid.T, i int, used []map[wire.ContextID]bool) (over bool) {
	switch n := len(x.members); {
	case !x.said[i]:
		x.said[i] = true
		x.sum = x.sum.Combine(x.parts[i].Propose())
	case len(x.said) == n && !x.heard[i]:
		x.heard[i] = true
		id, over, err := x.parts[i].Decide(x.sum)
		if err != nil {
			t.Fatal(err)
		}
		if over {
			if m := x.members[i]; used[m][id] {
				t.Fatalf("process %d uses ID %x twice", m, id)
			} else {
				used[m][id] = true
			}
			if x.ids = append(x.ids, id); x.ids[0] != id {
				t.Fatalf("members have IDs %x", x.ids)
			}
		}
		if len(x.heard) == n {
			x.said, x.heard, x.sum = map[int]bool{}, map[int]bool{}, Proposal{}
			return over
		}
	}
	return false
}
