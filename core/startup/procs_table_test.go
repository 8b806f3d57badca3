package startup

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

// twoHosts are procs in three runs, of which the middle one has offsets, with two cards.
func twoHosts() Procs {
	a, b := wire.HostID{15: 1}, wire.HostID{15: 2}
	return ListProcs(
		ProcInfo{ID: wire.Proc{Host: b, PID: 5}, Card: []byte("b")}, ProcInfo{ID: wire.Proc{Host: b, PID: 6}, Card: []byte("b")},
		ProcInfo{ID: wire.Proc{Host: a, PID: 10}, Host: 1, Card: []byte("a")}, ProcInfo{ID: wire.Proc{Host: a, PID: 11}, Host: 1, Card: []byte("a")},
		ProcInfo{ID: wire.Proc{Host: a, PID: 20}, Host: 1, Card: []byte("a")},
		ProcInfo{ID: wire.Proc{Host: b, PID: 9}, Host: 2, Client: 1},
	)
}

func TestBadProcTables(t *testing.T) {
	const runs, cards, offsets = 3, 2, 3
	le := binary.NativeEndian
	put64 := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { le.PutUint64(b[at:], v); return b }
	}
	put32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { le.PutUint32(b[at:], v); return b }
	}
	var r procRun
	field := func(run int, at uintptr) int { return tableHeader + run*runSize + int(at) }
	order := tableHeader + runs*runSize
	ends := order + 4*runs
	for name, spoil := range map[string]func(b []byte) []byte{
		"nothing":          func([]byte) []byte { return nil },
		"another file":     func(b []byte) []byte { b[0]++; return b },
		"cut":              func(b []byte) []byte { return b[:len(b)-1] },
		"long":             func(b []byte) []byte { return append(b, 0) },
		"not aligned":      func(b []byte) []byte { return append(make([]byte, 1, len(b)+9), b...)[1:] },
		"no procs":         put64(8, 0),
		"fewer procs":      put64(8, 5),
		"more procs":       put64(8, 7),
		"huge":             put64(8, MaxProcs+1),
		"no runs":          put64(16, 0),
		"more runs":        put64(16, 4),
		"overflow":         put64(16, runs+1<<61),
		"more cards":       put64(24, 4),
		"more offsets":     put64(32, 7),
		"more text":        put64(40, 1<<63),
		"first":            put32(field(0, unsafe.Offsetof(r.first)), 1),
		"empty":            put32(field(1, unsafe.Offsetof(r.n)), 0),
		"fewer in one":     put32(field(1, unsafe.Offsetof(r.n)), 2),
		"negative":         put32(field(1, unsafe.Offsetof(r.n)), 1<<31),
		"no step":          put64(field(0, unsafe.Offsetof(r.step)), 0),
		"step back":        put64(field(0, unsafe.Offsetof(r.step)), 1<<63),
		"wide":             put64(field(0, unsafe.Offsetof(r.step)), maxStep+1),
		"card":             put32(field(1, unsafe.Offsetof(r.card)), cards),
		"negative card":    put32(field(1, unsafe.Offsetof(r.card)), 1<<32-2),
		"offsets outside":  put32(field(1, unsafe.Offsetof(r.offsets)), 1),
		"offsets far out":  put32(field(1, unsafe.Offsetof(r.offsets)), 1<<31-1),
		"negative offsets": put32(field(1, unsafe.Offsetof(r.offsets)), 1<<32-2),
		"run":              put32(order+4, 1<<30),
		"negative run":     put32(order+4, 1<<32-1),
		"run twice":        put32(order, 0),
		"order of PIDs":    func(b []byte) []byte { put32(order+4, 2)(b); return put32(order+8, 0)(b) },
		"end of a card":    put32(ends+4, 3),
		"ends":             put32(ends, 3),
	} {
		p := twoHosts()
		b := p.Table()
		if p, err := OpenProcs(b); err != nil || len(p.runs) != runs || len(p.ends) != cards || len(p.offsets) != offsets {
			t.Fatalf("%+v, %v", p, err)
		}
		if p, err := OpenProcs(spoil(slices.Clone(b))); !errors.Is(err, ErrValue) || p.Len() != 0 {
			t.Errorf("%s: %d procs, %v", name, p.Len(), err)
		}
	}
}

// TestBadOffsets: whatever offsets say, who is found has the identity that was looked for.
func TestBadOffsets(t *testing.T) {
	for _, fill := range []byte{0, 1, 0x7f, 0x80, 0xff} {
		p := twoHosts()
		b := p.Table()
		for i := range 2 * len(p.offsets) {
			b[len(b)-len(p.text)-1-i] = fill
		}
		p, err := OpenProcs(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.All() {
			for pid := x.ID.PID - 40_000; pid < x.ID.PID+40_000; pid += 999 {
				if at, _, ok := p.Find(wire.Proc{Host: x.ID.Host, PID: pid}); ok && p.At(at).ID.PID != pid {
					t.Errorf("offsets %#x: %d was found as %v", fill, pid, p.At(at))
				}
			}
		}
	}
}

// FuzzOpenProcs reads anything as a table: whatever is accepted can be looked up and takes no
// memory, and who is found is who was looked for.
func FuzzOpenProcs(f *testing.F) {
	p := twoHosts()
	many := Procs{}
	for i := range 40 {
		many.Add(ProcInfo{ID: wire.Proc{Host: wire.HostID{15: byte(40 - i)}, PID: int64(i * i)}, Host: wire.HostRank(i), Card: []byte{byte(i)}})
	}
	for _, b := range [][]byte{p.Table(), many.Table()} {
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watchdog.Start()()
		b := make([]byte, len(data)) // aligned
		copy(b, data)
		var p Procs
		var err error
		if cost := allocs.Bytes(func() { p, err = OpenProcs(b) }); cost > allocs.MaxError {
			t.Fatalf("%d bytes took %d bytes of memory", len(b), cost)
		}
		if err != nil {
			if !errors.Is(err, ErrValue) {
				t.Fatal(err)
			}
			return
		}
		procs := 0
		for x := range p.Runs() {
			for _, i := range []int{0, 1, x.N / 2, x.N - 1} {
				r := x.First + wire.WorldRank(min(i, x.N-1))
				y := p.At(r)
				if y.ID.Host != x.ID.Host || y.Client != x.Client || string(y.Card) != string(x.Card) || p.Run(r).First != x.First {
					t.Fatalf("rank %d is %+v in %+v", r, y, x)
				}
				if at, host, ok := p.Find(y.ID); ok && (p.At(at).ID != y.ID || p.At(at).Host != host) {
					t.Fatalf("%v was found as rank %d, %+v", y.ID, at, p.At(at))
				}
			}
			procs += x.N
		}
		if procs != p.Len() {
			t.Fatalf("%d procs in runs, %d in all", procs, p.Len())
		}
	})
}

// manyRuns is a job of 4,096 hosts of 128 procs; unevenly spaced ones as those of other MPIs.
func manyRuns(even bool) (p Procs) {
	for h := range 4096 {
		for i := range 128 {
			pid := int64(1<<62 + h<<20 + i)
			if !even {
				pid += int64(7*i + i*(i+h)%7)
			}
			p.Add(ProcInfo{ID: wire.Proc{Host: wire.HostID{12: 10, 14: byte(h >> 8), 15: byte(h)}, PID: pid}, Host: wire.HostRank(h), Card: []byte{byte(h >> 8), byte(h)}})
		}
	}
	p.Index()
	return p
}

// TestLookupsAllocateNothing: packets and links look procs up.
func TestLookupsAllocateNothing(t *testing.T) {
	p := manyRuns(false)
	if n := testing.AllocsPerRun(100, func() { x := p.At(99_999); _, _, _ = p.Find(x.ID); _ = p.Run(99_999) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFind(b *testing.B) {
	for name, even := range map[string]bool{"even": true, "uneven": false} {
		p := manyRuns(even)
		var ids []wire.Proc
		for r := 0; r < p.Len(); r += 1021 {
			ids = append(ids, p.At(wire.WorldRank(r)).ID)
		}
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_, _, _ = p.Find(ids[i*7%len(ids)])
			}
		})
		b.Run(name+"/at", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_ = p.At(wire.WorldRank(i * 7919 % p.Len()))
			}
		})
	}
}
