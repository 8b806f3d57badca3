package board

import (
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"
)

// memory is the aligned memory of a board.
func memory(tb testing.TB, procs int) []byte {
	tb.Helper()
	words := make([]uint64, Size(procs)/8)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), Size(procs))
	h, err := Header(procs)
	if err != nil {
		tb.Fatal(err)
	}
	copy(mem, h)
	return mem
}

func open(tb testing.TB, procs int) *Board {
	tb.Helper()
	b, err := Open(memory(tb, procs), procs)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestOpenRefuses(t *testing.T) {
	good := memory(t, 2)
	change := func(at int, v uint32) []byte {
		b := memory(t, 2)
		binary.NativeEndian.PutUint32(b[at:], v)
		return b
	}
	for name, mem := range map[string][]byte{
		"nothing": nil, "too short": good[:len(good)-8], "not aligned": append(good[1:len(good):len(good)], 0),
		"another board's magic": change(0, 1), "version": change(atVersion, version+1),
		"byte order": change(atOrder, 0x04030201), "number of procs": change(atProcs, 3),
	} {
		if _, err := Open(mem, 2); !errors.Is(err, ErrBoard) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, procs := range []int{-1, 0, 1, MaxProcs + 1} {
		if _, err := Header(procs); !errors.Is(err, ErrBoard) {
			t.Errorf("for %d procs: %v", procs, err)
		}
	}
	b := open(t, 2)
	for _, x := range [][3]int{{-1, 2, 0}, {Slots, 2, 0}, {0, 3, 0}, {0, 0, 0}, {0, 2, 2}, {0, 2, -1}} {
		if _, err := b.Member(x[0], x[1], x[2]); !errors.Is(err, ErrBoard) {
			t.Errorf("slot %d, %d members, member %d: %v", x[0], x[1], x[2], err)
		}
	}
}

// The parts of the memory that different members write do not overlap, and lines
// that are polled are apart.
func TestLayout(t *testing.T) {
	b := open(t, 3)
	owner := make([]uint16, Size(3))
	claim := func(who uint16, at, n int) {
		for i := at; i < at+n; i++ {
			if owner[i] != 0 {
				t.Fatalf("byte %d is of %#x and of %#x", i, owner[i], who)
			}
			owner[i] = who
		}
	}
	claim(1, 0, headerSize)
	for slot := range Slots {
		for m := range 3 {
			p, err := b.Member(slot, 3, m)
			if err != nil {
				t.Fatal(err)
			}
			who := uint16(0x100*(slot+1) + m + 1)
			if m == 0 {
				claim(who, p.base, slotHead)
			}
			if p.part(m)%line != 0 {
				t.Errorf("the part of member %d is at %d", m, p.part(m))
			}
			claim(who, p.part(m), memberSize)
			claim(who, p.area(m), areaSize)
		}
	}
}

func TestSlots(t *testing.T) {
	b := open(t, 2)
	seen := map[int]bool{0: true}
	for range Slots - 1 {
		s, ok := b.ReserveSlot()
		if !ok || seen[s] {
			t.Fatalf("slot %d, %v", s, ok)
		}
		seen[s] = true
	}
	if s, ok := b.ReserveSlot(); ok {
		t.Fatalf("slot %d of a full board", s)
	}
	p, q := pair(t, b, 5)
	p.Begin(FirstStep(0))
	post(t, p, FirstStep(0), "x")
	p.Leave()
	if s, ok := b.ReserveSlot(); ok {
		t.Fatalf("slot %d while a member has not left", s)
	}
	q.Leave()
	if s, ok := b.ReserveSlot(); !ok || s != 5 {
		t.Fatalf("after all have left: slot %d, %v", s, ok)
	}
	p, q = pair(t, b, 5)
	if w := q.Posted(SetOf(0), FirstStep(0)); w.Done() {
		t.Error("the slot still has what the last communicator wrote")
	}
	if w := p.Arrived(SetOf(1), FirstStep(0)); w.Done() {
		t.Error("somebody has arrived from the last communicator")
	}
}

func pair(tb testing.TB, b *Board, slot int) (p, q *Member) {
	tb.Helper()
	p, err := b.Member(slot, 2, 0)
	if err != nil {
		tb.Fatal(err)
	}
	if q, err = b.Member(slot, 2, 1); err != nil {
		tb.Fatal(err)
	}
	return p, q
}
