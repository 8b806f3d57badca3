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
		step := FirstStep(i)
		p.Begin(step)
		q.Begin(step)
		if w := p.Vacant(step, LendSize); !w.Done() {
			t.Fatalf("operation %d: no room though all was read", i)
		}
		p.PostLent(step, 7, long)
		if _, err := q.Read(0, step, 7, len(long)); !isMismatch(err) {
			t.Fatalf("what is lent was found on the board: %v", err)
		}
		if _, err := q.LentAddr(0, step, 7, len(long)-1); !isMismatch(err) {
			t.Fatalf("another length: %v", err)
		}
		addr, err := q.LentAddr(0, step, 7, len(long))
		if err != nil || addr != uint64(uintptr(unsafe.Pointer(&long[0]))) {
			t.Fatalf("operation %d: it is lent at %#x: %v", i, addr, err)
		}
		w := p.Finished(SetOf(1), step)
		if w.Done() {
			t.Fatal("returned while it is read")
		}
		if !q.End() || !w.Done() {
			t.Fatal("not returned by End")
		}
	}
}

func isMismatch(err error) bool {
	var m *Mismatch
	return errors.As(err, &m) && m.What == 7 && m.WantWhat == 7
}

func TestLentMemoryIsOffered(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	want := MemoryKey{Process: 5, Addr: 1 << 40, Cookie: [2]uint64{1, 2}}
	p.Begin(FirstStep(0))
	p.PostKey(FirstStep(0), 9, want)
	if err := q.ReadKey(0, FirstStep(0), 9); err != nil || q.Keys[0] != want {
		t.Errorf("got %+v: %v", q.Keys[0], err)
	}
	if err := q.ReadKey(0, FirstStep(1), 9); !errors.Is(err, ErrBoard) {
		t.Errorf("of another operation: %v", err)
	}
}

// Who could not read what is lent asks for it, in that operation only, and gets it in further
// steps.
func TestAsk(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	long := []byte(pattern(roomSize+1, 1))
	for i := range uint64(3 * entries) {
		step := FirstStep(i)
		p.Begin(step)
		q.Begin(step)
		p.PostLent(step, 7, long)
		q.PostLent(step, 7, long)
		if got := q.Lenders(step, 7, len(long)); got != SetOf(0) {
			t.Fatalf("lenders of the same: %b", got)
		}
		if got := q.Lenders(step, 7, len(long)+1); got != 0 {
			t.Fatalf("lenders of more: %b", got)
		}
		asks := i%3 != 0
		if asks {
			q.Ask(step, SetOf(0))
		}
		q.Done()
		p.Done()
		if w := p.Finished(SetOf(1), step); !w.Done() {
			t.Fatal("not returned by who has asked")
		}
		if got := p.Askers(step, p.Others()); (got == SetOf(1)) != asks || q.Askers(step, q.Others()) != 0 {
			t.Fatalf("operation %d: asked by %b", i, got)
		}
		for step, k := step, 0; asks && k < 2*entries+1; k++ {
			step = step.Step(2)
			p.Begin(step)
			if w := p.VacantFor(step, len(long), step, SetOf(1)); !w.Done() {
				t.Fatalf("step %d: no room though all was read", k)
			}
			copy(p.Room(step, len(long)), long)
			p.Post(step, 7, len(long))
			if w := p.VacantFor(step, len(long), step, SetOf(1)); w.Done() {
				t.Fatalf("step %d: written again before it was read", k)
			}
			q.Begin(step)
			if b, err := q.Read(0, step, 7, len(long)); err != nil || string(b) != string(long) {
				t.Fatalf("step %d: %v", k, err)
			}
			q.Done()
		}
	}
}

// Who comes after the members of a slot is not asked by them.
func TestAskLeaves(t *testing.T) {
	b := open(t, 2)
	p, q := pair(t, b, 1)
	q.Begin(FirstStep(0))
	q.Ask(FirstStep(0), SetOf(0))
	p.Leave()
	q.Leave()
	p, _ = pair(t, b, 1)
	if got := p.Askers(FirstStep(0), p.Others()); got != 0 {
		t.Errorf("asked by %b", got)
	}
}
