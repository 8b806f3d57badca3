package agent

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// failJob is a job of three hosts, of which that of rank 2 does not take PkFail.
func failJob(self int) Config {
	c := job(self, 1, 1, 1)
	c.Hosts[0].Fails, c.Hosts[1].Fails = true, true
	for i := range c.Hosts {
		c.Hosts[i].Own = true
	}
	return c
}

// output takes all that waits for a link.
func (r *rig) output(l LinkID) (b []byte) {
	for r.HasOutput(l) {
		n := 0
		for _, x := range r.Output(l) {
			b = append(b, x...)
			n += len(x)
		}
		r.Sent(l, n)
	}
	return b
}

// TestFailIsHeard: what a host says of its failure comes out at another one, in any pieces, before
// and after FINI, as the end of the channel.
func TestFailIsHeard(t *testing.T) {
	for _, text := range []string{"", "rank 0 was killed", strings.Repeat("x", wire.MaxFail)} {
		for step := range 300 {
			from, to := newRig(t, failJob(0)).attachAll(), newRig(t, failJob(1)).attachAll()
			if step%2 == 0 {
				from.must(from.ProcDone(0))
			}
			told := from.Fail(text)
			if len(told) != 1 || told[0] != hostLink(1) || from.HasOutput(hostLink(2)) && step%2 == 1 {
				t.Fatalf("told %v", told)
			}
			err := to.feed(hostLink(0), from.output(hostLink(1)), step+1)
			var failed *FailedError
			want := text
			if text == "" {
				want = "nothing"
			}
			if !errors.As(err, &failed) || failed.Text != want || failed.Peer.Host != 0 || errors.Is(err, ErrProtocol) {
				t.Fatalf("%d bytes at once: %v", step+1, err)
			}
			to.Closed(hostLink(0), nil)
			var died Event
			for ev, ok := to.Next(); ok; ev, ok = to.Next() {
				if ev.Kind == HostDied {
					died = ev
				}
			}
			if !errors.Is(died.Err, failed) || died.Peer.Host != 0 {
				t.Errorf("event %v", died)
			}
		}
	}
}

// TestFailIsNotForAll: neither procs nor hosts that do not list it may send it, and its text is
// bounded.
func TestFailIsNotForAll(t *testing.T) {
	fail := func(n int) []byte {
		b := make([]byte, wire.HeaderSize, wire.HeaderSize+n)
		wire.Published.PutHeader(b, &wire.Packet{Type: wire.PkFail, Len: uint32(n)})
		return append(b, bytes.Repeat([]byte("x"), n)...)
	}
	for _, c := range []struct {
		link LinkID
		n    int
	}{{procLink(1), 5}, {hostLink(2), 5}, {hostLink(0), wire.MaxFail + 1}} {
		r := newRig(t, failJob(1)).attachAll()
		if err := r.feed(c.link, fail(c.n), everything); !errors.Is(err, ErrProtocol) {
			t.Errorf("link %d, %d bytes: %v", c.link, c.n, err)
		}
	}
}

// TestFailPassesWhatWaits: it does not wait for the packets of procs.
func TestFailPassesWhatWaits(t *testing.T) {
	r := newRig(t, failJob(0)).attachAll()
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 1, 5000, 0), everything))
	r.Fail("why")
	if b := r.output(hostLink(1)); wire.PacketType(b[1])<<16|wire.PacketType(b[3]) != wire.PkFail || len(b) != 2*wire.HeaderSize+5000+3 {
		t.Errorf("%d bytes, which begin with % x", len(b), b[:8])
	}
}
