package startup

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// TestCollectionBounds: one client cannot fill the memory while the others
// have not come.
func TestCollectionBounds(t *testing.T) {
	k := newCollection(2)
	for i := range MaxLabels {
		if err := k.submit(0, wire.Label(i+1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.submit(0, MaxLabels+1, nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("label %d: %v", MaxLabels+1, err)
	}

	k = newCollection(2)
	block := make([]byte, MaxSubmission)
	for i := range MaxPending / MaxSubmission {
		if err := k.submit(0, wire.Label(i+1), block); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.submit(0, 100, []byte{0}); !errors.Is(err, ErrTooLong) {
		t.Errorf("a byte more than %d: %v", MaxPending, err)
	}
	if err := k.submit(1, 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, b, ok := k.next(); !ok || len(b) != wire.CommandSize+wire.AnswerSize+MaxSubmission {
		t.Fatal("label 1 is not answered")
	}
	if err := k.submit(0, 100, []byte{0}); err != nil {
		t.Errorf("what was answered still counts: %v", err)
	}
}

// TestCollectionAnswerBound: the answer to one label has a limit too.
func TestCollectionAnswerBound(t *testing.T) {
	k := newCollection(wire.MaxClients)
	block := make([]byte, MaxSubmission)
	var err error
	c := wire.ClientRank(0)
	for ; err == nil && c < wire.MaxClients; c++ {
		err = k.submit(c, 1, block)
	}
	if !errors.Is(err, ErrTooLong) || int(c) != MaxAnswer/MaxSubmission+1 {
		t.Errorf("client %d: %v", c, err)
	}
}

// TestCollectionOrder: labels are answered in ascending order, signed, when
// nobody can add to them any more.
func TestCollectionOrder(t *testing.T) {
	k := newCollection(2)
	for _, l := range []wire.Label{-5, 3, 7} {
		k.submit(0, l, []byte{byte(l)})
	}
	if _, _, _, ok := k.next(); ok {
		t.Fatal("client 1 may still send all of them")
	}
	k.submit(1, 3, []byte{33})
	for _, want := range []struct {
		label wire.Label
		mask  wire.ClientMask
	}{{-5, 1}, {3, 3}} {
		if l, m, _, ok := k.next(); !ok || l != want.label || m != want.mask {
			t.Fatalf("%v %v %v, want %v", l, m, ok, want)
		}
	}
	if l, _, _, ok := k.next(); ok {
		t.Fatalf("%v is not complete", l)
	}
	k.done(1)
	if l, m, _, ok := k.next(); !ok || l != 7 || m != 1 {
		t.Fatalf("%v %v %v", l, m, ok)
	}
	if k.allDone() {
		t.Error("client 0 is not done")
	}
}
