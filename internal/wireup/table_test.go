package wireup

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

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
func tableFile(t *testing.T, procs []Proc) int {
	t.Helper()
	f, err := ShareProcs(procs)
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
	f, err := ShareProcs(manyProcs(3))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the table can be changed after it was shared")
	}
	b, err := encodeProcs(manyProcs(3))
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

func TestBadTables(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"nothing":      func([]byte) []byte { return nil },
		"another file": func(b []byte) []byte { b[0]++; return b },
		"cut":          func(b []byte) []byte { return b[:len(b)-1] },
		"long":         func(b []byte) []byte { return append(b, 0) },
		"more procs":   func(b []byte) []byte { b[8]++; return b },
		"no procs":     func(b []byte) []byte { b[8] = 0; return b },
		"huge":         func(b []byte) []byte { b[15] = 0xff; return b },
		"machine":      func(b []byte) []byte { b[tableHeader+atMachine+2]++; return b },
		"data":         func(b []byte) []byte { b[tableHeader+atData+2]++; return b },
		"path":         func(b []byte) []byte { b[tableHeader+atPath] = byte(len(paths)); return b },
		"unexpected": func(b []byte) []byte {
			b[tableHeader+atUnexpected+7] = 0x80
			b[tableHeader+atUnexpected] = 0x80
			return b
		},
		"order": func(b []byte) []byte { b[tableHeader+3*tableRecord] = b[tableHeader+3*tableRecord+4]; return b },
		"rank":  func(b []byte) []byte { b[tableHeader+3*tableRecord+1] = 1; return b },
		"name":  func(b []byte) []byte { b[tableHeader+3*(tableRecord+4)+2] = 1; return b },
	} {
		b, err := encodeProcs(manyProcs(3))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newTable(spoil(b)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := manyProcs(3)
	twice[2].Host, twice[2].PID = twice[0].Host, twice[0].PID
	if b, err := encodeProcs(twice); err != nil {
		t.Error(err)
	} else if _, err := newTable(b); !errors.Is(err, ErrMessage) {
		t.Errorf("a proc that is there twice: %v", err)
	}
	short := manyProcs(1)
	short[0].Host = nil
	if _, err := ShareProcs(short); err == nil {
		t.Error("a proc without a host was taken")
	}
}
