package message

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func directoryOf(tb testing.TB, procs ...wire.Proc) *Directory {
	tb.Helper()
	d, err := NewDirectory(procs)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// jobOf makes the directory of n procs.
func jobOf(tb testing.TB, n int) *Directory {
	tb.Helper()
	procs := make([]wire.Proc, n)
	for i := range procs {
		procs[i] = wire.Proc{Host: wire.HostID{14: byte(i / 64 >> 8), 15: byte(i / 64)}, PID: int64(1000 + i%64)}
	}
	return directoryOf(tb, procs...)
}

func TestDirectory(t *testing.T) {
	d := jobOf(t, 1000)
	for i := range Peer(1000) {
		if p, known := d.Find(d.Proc(i)); !known || p != i {
			t.Fatalf("proc %d is found as %d, %v", i, p, known)
		}
	}
	if p, known := d.Find(wire.Proc{PID: 1}); known {
		t.Errorf("a proc of another job is peer %d", p)
	}
	if d.Len() != 1000 {
		t.Errorf("%d procs", d.Len())
	}
}

func TestDirectoryRefusesTheSameProcTwice(t *testing.T) {
	_, err := NewDirectory([]wire.Proc{{PID: 1}, {PID: 2}, {PID: 1}})
	if !errors.Is(err, ErrConfig) || err.Error() != "message: configuration: ranks 0 and 2 are both proc none/1" {
		t.Errorf("%v", err)
	}
}

// A world that one engine meets is no business of the others.
func TestEnginesShareADirectory(t *testing.T) {
	d := jobOf(t, 2)
	var e [2]*Engine
	for i := range e {
		var err error
		if e[i], err = New(Config{Directory: d, Self: Peer(i), MaxData: 1, AckMark: 1, HiWater: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range e {
		w := ConnectedWorld{Host: wire.HostID{byte(i + 1)}, Size: i + 1, MaxData: 1, AckMark: 1, HiWater: 1}
		if p, err := e[i].AddWorld(w); err != nil || p != 2 || e[i].Peers() != 3+i || d.Len() != 2 {
			t.Errorf("added as peer %d of %d: %v", p, e[i].Peers(), err)
		}
	}
	if e[0].Proc(2).Host[0] != 1 || e[1].Proc(3).Host[0] != 2 || e[1].Proc(3).PID != 1 {
		t.Errorf("%v and %v", e[0].Proc(2), e[1].Proc(3))
	}
}
