package message

import (
	"math"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func TestBuffers(t *testing.T) {
	var p buffers
	for _, n := range []int{0, 1, 63, 64, 65, 4000, 65536, 65537, 1<<maxClass + 1} {
		b := p.get(n)
		if len(b) != n {
			t.Fatalf("got %d bytes instead of %d", len(b), n)
		}
		p.put(b)
		if c := p.get(n); n > 0 && n <= 65537 && !same(b, c) {
			t.Errorf("%d bytes are not used again", n)
		}
	}
}

func TestBuffersKeepLimitedMemory(t *testing.T) {
	var p buffers
	var got [][]byte
	for range 40 {
		got = append(got, p.get(1<<20))
	}
	for _, b := range got {
		p.put(b)
	}
	if p.kept != maxPooled {
		t.Errorf("%d bytes are kept", p.kept)
	}
	for range maxPooled >> 20 {
		p.get(1 << 20)
	}
	if p.kept != 0 {
		t.Errorf("%d bytes are left", p.kept)
	}
}

func TestIDs(t *testing.T) {
	table := ids{first: 1000}
	a, b := new(Request), new(Request)
	table.add(a)
	table.add(b)
	if a.id != 1000 || b.id != 1001 || table.find(1000) != a || table.find(1001) != b {
		t.Fatalf("ids %d and %d", a.id, b.id)
	}
	old := a.id
	table.drop(a)
	table.drop(a) // has none any more
	if table.find(old) != nil || a.id != 0 {
		t.Fatal("found after drop")
	}
	table.add(a)
	if a.id == old || table.find(old) != nil || table.find(a.id) != a {
		t.Fatalf("id %d is used again, too early", old)
	}
	for _, id := range []wire.RequestID{0, 999, 1002, math.MaxUint64, 1 << 63, a.id + 1<<32} {
		if r := table.find(id); r != nil {
			t.Errorf("id %d finds a request", id)
		}
	}
}

func TestFIFO(t *testing.T) {
	var f fifo[int]
	next, want := 0, 0
	for round := range 50 {
		for range round % 13 {
			f.push(next)
			next++
		}
		for i := range f.len {
			if *f.at(i) != want+i {
				t.Fatalf("element %d is %d", i, *f.at(i))
			}
		}
		for range round % 11 {
			if f.len > 0 {
				if got := f.pop(); got != want {
					t.Fatalf("got %d, want %d", got, want)
				}
				want++
			}
		}
	}
	f.clear()
	if f.len != 0 {
		t.Error("not empty")
	}
}
