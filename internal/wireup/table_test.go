package wireup

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// split converts procs to the form that a node sends: the table, and the views.
func split(procs []Proc) (table startup.Procs, views []View) {
	for r, p := range procs {
		x := startup.ProcInfo{ID: p.Identity(), Client: p.Client, Host: p.Node}
		if p.Machine != "" {
			x.Card = []byte("impi-card/1 order=little node=" + p.Machine + " feature=a")
		}
		table.Add(x)
		views = AddView(views, wire.WorldRank(r), p)
	}
	return table, views
}

// manyProcs are n procs of all kinds, whose identities are in another order than their ranks.
func manyProcs(n int) []Proc {
	var all []Proc
	for r := range n {
		host := make([]byte, 16)
		host[0], host[15] = byte(n-r), byte(r/4)
		all = append(all, Proc{
			Host: host, PID: int64(r%3) - 1, Client: wire.ClientRank(r / 8), Node: wire.HostRank(r / 4), Path: paths[r%3],
			Data: []string{"native-le", "external32"}[r%2], Machine: fmt.Sprintf("machine%d", r/4)[:8*min(1, r/4)],
			Foreign: r%5 == 0, ReduceOnPointToPoint: r%7 == 0, Allows: r%2 == 0, Unexpected: int64(r) << 33,
		})
	}
	return all
}

// tableFile is the descriptor of the table of procs.
func tableFile(t *testing.T, procs startup.Procs) int {
	t.Helper()
	f, err := ShareProcs(&procs)
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
		list, views := split(procs)
		f := os.NewFile(uintptr(tableFile(t, list)), "table")
		mapped, err := MapProcs(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		table, err := newTable(mapped, views)
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
			if at, ok := table.Find(procs[r].Identity()); !ok || at != r || table.Identity(r) != procs[r].Identity() {
				t.Errorf("rank %d was found as %d, %v", r, at, ok)
			}
			if d := table.Data(r); (d == table.Data(0)) != (procs[r].Data == procs[0].Data) || d >= n {
				t.Errorf("rank %d has representation %d, rank 0 %d", r, d, table.Data(0))
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

// TestTableIsSealed: nobody can change a table, and one that can be changed is refused, as is what
// is none.
func TestTableIsSealed(t *testing.T) {
	list, _ := split(manyProcs(3))
	f, err := ShareProcs(&list)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the table can be changed after it was shared")
	}
	fd, err := unix.MemfdCreate("open", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, list.Table()); err != nil {
		t.Fatal(err)
	}
	half, err := unix.MemfdCreate("half open", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(half, list.Table()); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(half), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	other, err := sealed("other", []byte("no table"))
	if err != nil {
		t.Fatal(err)
	}
	none, err := sealed("none", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*os.File{os.NewFile(uintptr(fd), "open"), os.NewFile(uintptr(half), "half open"), other, none} {
		if _, err := MapProcs(x); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", x.Name(), err)
		}
		_ = x.Close()
	}
}

func TestBadViews(t *testing.T) {
	list, _ := split(manyProcs(4))
	list.Index()
	at := func(first wire.WorldRank) View { return View{First: first, Path: PathDirect} }
	if _, err := newTable(list, []View{at(0), at(3)}); err != nil {
		t.Fatal(err)
	}
	for name, views := range map[string][]View{
		"none": nil, "late": {at(1)}, "early": {at(-1)}, "twice": {at(0), at(0)}, "back": {at(0), at(2), at(1)}, "behind all": {at(0), at(4)},
		"path": {{Path: "x"}}, "unexpected": {{Path: PathSelf, Unexpected: -1}},
	} {
		if _, err := newTable(list, views); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTableOfAny: a table gives back what it was made of, by rank and in runs, wherever views
// begin.
func TestTableOfAny(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all []Proc
		host := 0
		for range rapid.IntRange(1, 60).Draw(r, "procs") {
			host += rapid.IntRange(0, 5).Draw(r, "host") / 5
			p := Proc{
				Host: make([]byte, 16), PID: int64(len(all) * rapid.IntRange(1, 2).Draw(r, "pid")), Client: wire.ClientRank(host / 4), Node: wire.HostRank(host),
				Path: paths[rapid.IntRange(0, 30).Draw(r, "path")/10], Data: []string{"external32", "native-le"}[rapid.IntRange(0, 9).Draw(r, "data")/9],
				Foreign: rapid.IntRange(0, 9).Draw(r, "foreign") == 0, Unexpected: int64(rapid.IntRange(0, 9).Draw(r, "unexpected") / 9),
				Machine: []string{"", "m", "n"}[host%3],
			}
			p.Host[3] = byte(host)
			all = append(all, p)
		}
		list, views := split(all)
		list.Index()
		table, err := newTable(list, views)
		if err != nil {
			r.Fatal(err)
		}
		next := 0
		for run := range table.Runs() {
			run.Proc.Machine = all[next].Machine
			if int(run.First) != next || run.N < 1 || !reflect.DeepEqual(run.Proc, all[next]) {
				r.Fatalf("run %+v after %d procs, of which the next is %+v", run, next, all[next])
			}
			for i := range run.N {
				p := all[next+i]
				if p.PID = run.Proc.PID; !reflect.DeepEqual(run.Proc, p) {
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
		}
	})
}

// TestOpeningReadsRuns: opening a table and going through its runs looks at nothing that is there
// for each proc.
func TestOpeningReadsRuns(t *testing.T) {
	const hosts, each = 128, 128 // so that offsets fill pages
	var list startup.Procs
	for h := range hosts {
		for i := range each {
			list.Add(startup.ProcInfo{ID: wire.Proc{Host: wire.HostID{15: byte(h)}, PID: int64(i*7 + i*i%5)}, Host: wire.HostRank(h), Card: []byte{byte(h)}})
		}
	}
	b := list.Table()
	const offsets = 2 * hosts * each
	page := os.Getpagesize()
	before := len(b) - hosts - offsets // behind offsets are the cards, of a byte each
	front := (before + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, front+offsets+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	mem = mem[front-before:][:len(b):len(b)]
	copy(mem, b)
	if err := unix.Mprotect(mem[before:][:offsets], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	reads := func(f func()) (yes bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { yes = recover() != nil }()
		f()
		return false
	}
	procs := 0
	var table *Table
	if reads(func() {
		mapped, err := startup.OpenProcs(mem)
		if err != nil {
			t.Error(err)
		}
		if table, err = newTable(mapped, []View{{Path: PathDirect}}); err != nil {
			t.Error(err)
		}
		for run := range table.Runs() {
			procs += run.N
		}
	}) {
		t.Error("offsets are read")
	}
	if procs != hosts*each {
		t.Errorf("the runs have %d procs", procs)
	}
	if !reads(func() { _ = table.Identity(77) }) {
		t.Error("this test does not see that offsets are read")
	}
}
