package wireup

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// manyProcs are n procs of all kinds, whose identities are in another order than their ranks.
func manyProcs(n int) []Proc {
	var all []Proc
	for r := range n {
		host := make([]byte, 16)
		host[0], host[15] = byte(n-r), byte(r/4)
		all = append(all, Proc{
			Host: host, PID: int64(r%3) - 1, Client: wire.ClientRank(r / 8), Node: wire.HostRank(r / 4), Path: paths[r%3],
			Data: []string{"native-le", "external32"}[r%2], Machine: fmt.Sprintf("machine %d", r/4)[:9*min(1, r/4)],
			Foreign: r%5 == 0, ReduceOnPointToPoint: r%7 == 0, Allows: r%2 == 0, Unexpected: int64(r) << 33,
		})
	}
	return all
}

// tableFile is the descriptor of a table.
func tableFile(t *testing.T, procs []Proc, world ...byte) int {
	t.Helper()
	f, err := ShareProcs(slices.Values(procs), world)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestTable(t *testing.T) {
	for _, n := range []int{1, 2, 33, 500} {
		procs := manyProcs(n)
		table, err := OpenProcs(tableFile(t, procs))
		if err != nil {
			t.Fatal(err)
		}
		if table.Size() != n {
			t.Fatalf("%d procs, not %d", table.Size(), n)
		}
		for r := range procs {
			if got := table.Proc(r); !reflect.DeepEqual(got, procs[r]) {
				t.Errorf("rank %d is %+v, not %+v", r, got, procs[r])
			}
			if at, ok := table.Find(procs[r].Identity()); !ok || at != r {
				t.Errorf("rank %d was found as %d, %v", r, at, ok)
			}
			if (table.Data(r) == table.Data(0)) != (procs[r].Data == procs[0].Data) {
				t.Errorf("rank %d has representation %d, rank 0 %d", r, table.Data(r), table.Data(0))
			}
		}
		if _, ok := table.Find(wire.Proc{PID: 99}); ok {
			t.Error("a proc was found that is not there")
		}
		if n := testing.AllocsPerRun(10, func() { _ = table.Proc(n - 1); _, _ = table.Find(procs[0].Identity()) }); n > 0 {
			t.Errorf("a lookup allocates %v times", n)
		}
	}
}

// TestTableIsSealed: nobody can change a table, and one that can be changed is refused.
func TestTableIsSealed(t *testing.T) {
	f, err := ShareProcs(slices.Values(manyProcs(3)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the table can be changed after it was shared")
	}
	b, err := encodeProcs(slices.Values(manyProcs(3)), nil)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("open", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, b); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenProcs(fd); !errors.Is(err, ErrMessage) {
		t.Errorf("a table without seals: %v", err)
	}
	if _, err := os.NewFile(uintptr(fd), "").Stat(); err == nil {
		t.Error("the descriptor is still open")
	}
}

// twoHosts are procs in three runs, of which the middle one has offsets.
func twoHosts() []Proc {
	a, b := make([]byte, 16), make([]byte, 16)
	b[0] = 1
	return []Proc{
		{Host: b, PID: 5, Path: PathDirect}, {Host: b, PID: 6, Path: PathDirect},
		{Host: a, PID: 10, Path: PathDirect, Machine: "m"}, {Host: a, PID: 11, Path: PathDirect, Machine: "m"}, {Host: a, PID: 20, Path: PathDirect, Machine: "m"},
		{Host: b, PID: 9, Path: PathDirect, Client: 1},
	}
}

func TestBadTables(t *testing.T) {
	const runs, record = 3, tableHeader
	field := func(run, at int) int { return record + run*tableRecord + at }
	put64 := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { order.PutUint64(b[at:], v); return b }
	}
	put32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { order.PutUint32(b[at:], v); return b }
	}
	put8 := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; return b }
	}
	sorted := record + runs*tableRecord
	for name, spoil := range map[string]func(b []byte) []byte{
		"nothing":        func([]byte) []byte { return nil },
		"another file":   put8(0, 'x'),
		"cut":            func(b []byte) []byte { return b[:len(b)-1] },
		"long":           func(b []byte) []byte { return append(b, 0) },
		"no procs":       put64(8, 0),
		"fewer procs":    put64(8, 5), // the last run begins behind them
		"huge":           put64(8, maxTable+1),
		"no runs":        put64(16, 0),
		"more runs":      put64(16, 4),
		"too many names": put64(24, 2*maxTable+1),
		"no description": put64(40, 0),
		"long names":     func(b []byte) []byte { put64(32, 1<<64-1)(b); return put64(40, 8)(b) },
		"negative":       func(b []byte) []byte { put64(40, 1<<64-1)(b); return put64(48, 9)(b) },
		"machine":        put32(field(1, atMachine), 9),
		"data":           put32(field(1, atData), 9),
		"path":           put8(field(1, atPath), byte(len(paths))),
		"unexpected":     put64(field(1, atUnexpected), 1<<63),
		"overflow":       put64(16, 3+1<<61),
		"late":           func(b []byte) []byte { put64(field(0, atSpan), 0)(b); return put32(field(0, atFirst), 1)(b) },
		"empty":          put32(field(1, atFirst), 0),
		"behind all":     put32(field(2, atFirst), 6),
		"span of one":    put64(field(2, atSpan), 1),
		"narrow":         put64(field(1, atSpan), 1),
		"wide":           put64(field(1, atSpan), 1<<63),
		"past 64 bits":   put64(field(1, atPID), 1<<63-5),
		"width 3": func(b []byte) []byte {
			put64(48, 51)(b)
			return append(put8(field(1, atWidth), 3)(b), make([]byte, 48)...)
		},
		"width 16": func(b []byte) []byte {
			put64(48, 51)(b)
			return append(put8(field(1, atWidth), 16)(b), make([]byte, 48)...)
		},
		"width 8":         put8(field(1, atWidth), 8),
		"offsets outside": put32(field(1, atOffsets), 1),
		"offsets far out": put32(field(1, atOffsets), 1<<32-1),
		"runs in ranges":  put64(field(0, atSpan), 4), // reaches the last run, which is of the same host
		"order":           put32(sorted, 0),
		"run":             put32(sorted+4, 1<<30),
		"order of PIDs":   func(b []byte) []byte { put32(sorted+4, 2)(b); return put32(sorted+8, 0)(b) },
		"name":            put32(sorted+4*runs, 1<<16),
	} {
		b, err := encodeProcs(slices.Values(twoHosts()), []byte("a job"))
		if err != nil {
			t.Fatal(err)
		}
		if table, err := newTable(b); err != nil || table.runs != runs || len(b)-table.offsets != 3 {
			t.Fatalf("%d runs, %d bytes of offsets, %v", table.runs, len(b)-table.offsets, err)
		}
		if _, err := newTable(spoil(b)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := manyProcs(3)
	twice[2].Host, twice[2].PID = twice[0].Host, twice[0].PID
	if _, err := encodeProcs(slices.Values(twice), nil); !errors.Is(err, ErrMessage) {
		t.Errorf("a proc that is there twice: %v", err)
	}
	short := manyProcs(1)
	short[0].Host = nil
	if _, err := ShareProcs(slices.Values(short), nil); err == nil {
		t.Error("a proc without a host was taken")
	}
}

// TestBadOffsets: whatever offsets say, procs have PIDs in the ranges of their runs, and who is found
// has the identity that was looked for.
func TestBadOffsets(t *testing.T) {
	for _, width := range []int{1, 2, 4, 8} {
		var procs []Proc
		for i := range 9 {
			procs = append(procs, Proc{Host: make([]byte, 16), PID: int64(i*i) << (7 * (width - 1)), Path: PathDirect})
		}
		good, err := encodeProcs(slices.Values(procs), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, fill := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := slices.Clone(good)
			table, err := newTable(b)
			if err != nil || table.runs != 1 || len(b)-table.offsets != width*len(procs) {
				t.Fatalf("%d runs, %d bytes of offsets, %v", table.runs, len(b)-table.offsets, err)
			}
			for i := table.offsets; i < len(b); i++ {
				b[i] = fill
			}
			for r := range procs {
				id := table.Identity(r)
				if id.PID < procs[0].PID || id.PID > procs[8].PID {
					t.Errorf("offsets of %d bytes %#x: rank %d has PID %d", width, fill, r, id.PID)
				}
				if at, ok := table.Find(id); ok && table.Identity(at) != id {
					t.Errorf("offsets of %d bytes %#x: %v was found as rank %d, which is %v", width, fill, id, at, table.Identity(at))
				}
			}
		}
	}
}

// TestWidths: offsets take as many bytes as the largest one needs.
func TestWidths(t *testing.T) {
	const ahead = 1 << 40
	for off, width := range map[int64]int{
		0: 0, 1: 1, -1: 1, 127: 1, -128: 1, 128: 2, -129: 2, 1<<15 - 1: 2, -1 << 15: 2, 1 << 15: 4, -1<<15 - 1: 4,
		1<<31 - 1: 4, -1 << 31: 4, 1 << 31: 8, -1<<31 - 1: 8, ahead - 1: 8, 1 - ahead: 8,
	} {
		var procs []Proc
		for _, pid := range []int64{-9, ahead + off - 9, 2*ahead - 9} {
			procs = append(procs, Proc{Host: make([]byte, 16), PID: pid, Path: PathDirect})
		}
		b, err := encodeProcs(slices.Values(procs), nil)
		if err != nil {
			t.Fatal(err)
		}
		table, err := newTable(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(b) - table.offsets; table.runs != 1 || got != 3*width || table.Identity(1) != procs[1].Identity() {
			t.Errorf("offset %d: %d runs, %d bytes for 3 offsets, PID %d", off, table.runs, got, table.Identity(1).PID)
		}
	}
}

// TestTableOfAny: a table gives back what it was made of, by rank and by identity, whatever procs there
// are on whatever hosts, and finds nobody else.
func TestTableOfAny(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all []Proc
		ranks := map[wire.Proc]int{}
		pids := [3]int64{}
		host := 0
		for range rapid.IntRange(1, 60).Draw(r, "procs") {
			if rapid.IntRange(0, 5).Draw(r, "moves") == 0 {
				host = rapid.IntRange(0, 2).Draw(r, "host")
			}
			pid := &pids[host]
			switch rapid.IntRange(0, 9).Draw(r, "pid") {
			case 0:
				*pid = rapid.Int64().Draw(r, "any")
			case 1:
				*pid += rapid.Int64Range(-3, 1<<34).Draw(r, "more")
			default:
				*pid += rapid.Int64Range(1, 4).Draw(r, "step")
			}
			p := Proc{
				Host: make([]byte, 16), PID: *pid, Client: wire.ClientRank(rapid.IntRange(0, 9).Draw(r, "client") / 8), Node: wire.HostRank(host),
				Path: paths[rapid.IntRange(0, 30).Draw(r, "path")/10], Data: []string{"external32", "native-le"}[rapid.IntRange(0, 9).Draw(r, "data")/9],
				Foreign: rapid.IntRange(0, 9).Draw(r, "foreign") == 0, Unexpected: int64(rapid.IntRange(0, 9).Draw(r, "unexpected") / 9),
			}
			p.Host[3] = byte(host)
			if _, there := ranks[p.Identity()]; !there {
				ranks[p.Identity()] = len(all)
				all = append(all, p)
			}
		}
		b, err := encodeProcs(slices.Values(all), nil)
		if err != nil {
			r.Fatal(err)
		}
		table, err := newTable(b)
		if err != nil {
			r.Fatal(err)
		}
		next := 0
		for run := range table.Runs() {
			if int(run.First) != next || run.N < 1 || !reflect.DeepEqual(run.Proc, all[next]) {
				r.Fatalf("run %+v after %d procs, of which the next is %+v", run, next, all[next])
			}
			for i := range run.N {
				if !run.Proc.alike(&all[next+i]) {
					r.Fatalf("rank %d is %+v, in the run of %+v", next+i, all[next+i], run.Proc)
				}
			}
			next += run.N
		}
		if next != len(all) || table.Size() != len(all) {
			r.Fatalf("%d procs in runs, %d in the table, not %d", next, table.Size(), len(all))
		}
		for i, p := range all {
			if got := table.Proc(i); !reflect.DeepEqual(got, p) || table.Identity(i) != p.Identity() {
				r.Fatalf("rank %d is %+v, %v, not %+v", i, got, table.Identity(i), p)
			}
			id := p.Identity()
			for _, id := range []wire.Proc{id, {Host: id.Host, PID: id.PID + 1}, {Host: id.Host, PID: id.PID - 1}, {Host: wire.HostID{1}, PID: id.PID}, {Host: wire.HostID{3: byte(i % 4)}, PID: id.PID}} {
				want, there := ranks[id]
				if at, ok := table.Find(id); ok != there || at != want {
					r.Fatalf("%v was found as %d, %v, not as %d, %v", id, at, ok, want, there)
				}
			}
		}
	})
}

// TestLargeTable: a host of the largest job of docs/simulator.md has 3 bytes for each of 524,288 procs
// whose PIDs ascend by chance.
func TestLargeTable(t *testing.T) {
	const sites, hosts, each = 4, 1024, 128
	b, err := encodeProcs(ascending(sites, hosts, each), nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := newTable(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes for %d procs in %d runs", len(b), table.Size(), table.runs)
	if table.Size() != sites*hosts*each || table.runs != sites*hosts || len(b) > 3*table.Size() {
		t.Errorf("%d bytes for %d procs in %d runs", len(b), table.Size(), table.runs)
	}
	rank := 0
	for p := range ascending(sites, hosts, each) {
		if id := p.Identity(); rank%1021 == 0 && table.Identity(rank) != id {
			t.Errorf("rank %d is %v, not %v", rank, table.Identity(rank), id)
		} else if at, ok := table.Find(id); rank%1021 == 0 && (at != rank || !ok) {
			t.Errorf("rank %d was found as %d, %v", rank, at, ok)
		}
		rank++
	}
}

// ascending are procs of many hosts whose PIDs ascend by 1 to 64 at a time.
func ascending(sites, hosts, each int) iter.Seq[Proc] {
	return func(yield func(Proc) bool) {
		chance := rand.New(rand.NewPCG(1, 2))
		host := make([]byte, 16) // which the encoder must not keep
		for h := range sites * hosts {
			order.PutUint32(host[4:], uint32(h))
			p := Proc{Host: host, PID: 300_000, Client: wire.ClientRank(h / hosts), Node: wire.HostRank(h),
				Path: PathDirect, Data: "native-le", Machine: fmt.Sprintf("%032x", h), Unexpected: 64 << 20}
			for range each {
				if p.PID += 1 + chance.Int64N(64); !yield(p) {
					return
				}
			}
		}
	}
}

// TestOpeningReadsRuns: opening a table and going through its runs looks at nothing that is there for
// each proc.
func TestOpeningReadsRuns(t *testing.T) {
	b, err := encodeProcs(ascending(2, 64, 128), nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := newTable(b)
	if err != nil {
		t.Fatal(err)
	}
	// The offsets get pages of their own, which cannot be read.
	page := os.Getpagesize()
	front := (table.offsets + page - 1) / page * page
	behind := (len(b) - table.offsets + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, front+behind, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	at := front - table.offsets
	copy(mem[at:], b)
	if err := unix.Mprotect(mem[front:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	reads := func(f func()) (yes bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { yes = recover() != nil }()
		f()
		return false
	}
	procs := 0
	if reads(func() {
		if table, err = newTable(mem[at:][:len(b):len(b)]); err != nil {
			t.Error(err)
		}
		for run := range table.Runs() {
			procs += run.N
		}
	}) {
		t.Error("offsets are read")
	}
	if procs != 2*64*128 {
		t.Errorf("the runs have %d procs", procs)
	}
	if !reads(func() { _ = table.Identity(77) }) {
		t.Error("this test does not see that offsets are read")
	}
}
