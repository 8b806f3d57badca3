package board

import (
	"errors"
	"testing"
	"unsafe"
)

// What is lent is where the member has said, until the others have read it.
func TestLend(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	long := []byte(pattern(roomSize+1, 1))
	for i := range uint64(3 * entries) {
		turn := NewTurn(i)
		p.Begin(turn)
		q.Begin(turn)
		if w := p.Vacant(turn, LendSize); !w.Over() {
			t.Fatalf("operation %d: no room though all was read", i)
		}
		p.LendOut(turn, 7, long)
		if _, err := q.Look(0, turn, 7, len(long)); !isMismatch(err) {
			t.Fatalf("what is lent was found on the board: %v", err)
		}
		if _, err := q.Lent(0, turn, 7, len(long)-1); !isMismatch(err) {
			t.Fatalf("another length: %v", err)
		}
		addr, err := q.Lent(0, turn, 7, len(long))
		if err != nil || addr != uint64(uintptr(unsafe.Pointer(&long[0]))) {
			t.Fatalf("operation %d: it is lent at %#x: %v", i, addr, err)
		}
		w := p.Taken(Member(1), turn)
		if w.Over() {
			t.Fatal("returned while it is read")
		}
		if !q.End() || !w.Over() {
			t.Fatal("not returned by End")
		}
	}
}

func isMismatch(err error) bool {
	var m *Mismatch
	return errors.As(err, &m) && m.What == 7 && m.WantWhat == 7
}

func TestOffers(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	want := Offer{Process: 5, Addr: 1 << 40, Key: [2]uint64{1, 2}}
	p.Begin(NewTurn(0))
	p.PostOffer(NewTurn(0), 9, want)
	if err := q.TakeOffer(0, NewTurn(0), 9); err != nil || q.Offers[0] != want {
		t.Errorf("got %+v: %v", q.Offers[0], err)
	}
	if err := q.TakeOffer(0, NewTurn(1), 9); !errors.Is(err, ErrBoard) {
		t.Errorf("of another operation: %v", err)
	}
}
