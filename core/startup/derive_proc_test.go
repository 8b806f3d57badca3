package startup

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// TestIdentities: whatever order host IDs and pids come in, two procs with one
// identity are found, and only those.
func TestIdentities(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(r, "procs")
		cfg := testClient(0, n)
		seen := make(map[wire.Proc]bool)
		twice := false
		d := newDerivation(0, 1, wire.Published)
		d.job.Clients[0].NProcs = n
		d.job.Hosts = []HostInfo{{NProcs: n}}
		var hosts, pids []byte
		for i := range cfg.Hosts[0].Procs {
			p := &cfg.Hosts[0].Procs[i]
			p.ID = wire.Proc{Host: wire.HostID{15: rapid.Byte().Draw(r, "host") % 3}, PID: int64(rapid.IntRange(-2, 5).Draw(r, "pid"))}
			twice = twice || seen[p.ID]
			seen[p.ID] = true
		}
		hosts, pids = cfg.procValues(wire.LabelProcIPv6), cfg.procValues(wire.LabelProcPID)
		if err := d.take(wire.LabelProcIPv6, 1, hosts); err != nil {
			r.Fatal(err)
		}
		if err := d.take(wire.LabelProcPID, 1, pids); (err != nil) != twice {
			r.Fatalf("%x %x: %v", hosts, pids, err)
		}
		d.settleProcs()
		for i, p := range d.job.Procs.All() {
			if p.ID != cfg.Hosts[0].Procs[i].ID {
				r.Fatalf("proc %d is %v", i, p.ID)
			}
		}
	})
}

// TestAnnouncedIsNotAllocated: a command of 16 MiB that is announced and does not
// come costs what has come of it, and one that does come little more than itself.
func TestAnnouncedIsNotAllocated(t *testing.T) {
	const size = MaxSubmission
	head := wire.AppendCommand(nil, wire.CmdColl, size)
	known := func(wire.Command) bool { return true }
	if n := allocs.BytesExact(func() {
		var r reader
		r.feed(head)
		r.next(size, known)
		r.feed(make([]byte, 100))
		r.next(size, known)
	}); n > size>>8 {
		t.Errorf("%d bytes for an announcement", n)
	}
	piece := make([]byte, 64<<10)
	if n := allocs.BytesExact(func() {
		var r reader
		r.feed(head)
		for left := size; left > 0; left -= min(left, len(piece)) {
			r.next(size, known)
			r.feed(piece[:min(left, len(piece))])
		}
		if f, ok, err := r.next(size, known); !ok || err != nil || len(f.payload) != size {
			t.Errorf("%v, %v, %d bytes", ok, err, len(f.payload))
		}
	}); n > 5*size/2 {
		t.Errorf("%d bytes for a command of %d", n, size)
	}
}

// TestLargeCommandsAreForgotten: the memory of one is not kept for small ones, and
// what follows it in the same piece is not lost.
func TestLargeCommandsAreForgotten(t *testing.T) {
	var r reader
	known := func(wire.Command) bool { return true }
	first := wire.AppendColl(nil, 1, bytes.Repeat([]byte{7}, 3<<20))
	second := wire.AppendColl(nil, 2, []byte("small"))
	for b := range slices.Chunk(slices.Concat(first, second), 50000) {
		r.feed(b)
		for {
			f, ok, err := r.next(MaxSubmission, known)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if l, data, _ := wire.ParseColl(f.payload); l == 2 && string(data) != "small" || l == 1 && len(data) != 3<<20 {
				t.Errorf("%v has %d bytes", l, len(data))
			}
		}
	}
	if r.off != len(r.buf) {
		t.Errorf("%d bytes are left", len(r.buf)-r.off)
	}
	if r.rest(); cap(r.buf) > maxIdle {
		t.Errorf("%d bytes of memory for nothing", cap(r.buf))
	}
	r.feed(second[:3])
	if r.rest(); len(r.buf)-r.off != 3 {
		t.Error("rest has taken what is needed")
	}
}
