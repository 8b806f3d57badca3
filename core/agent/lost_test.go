package agent

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// surviveJob is a job of three hosts, of which that of rank 2 does not take PkLost.
func surviveJob(self int) Config {
	c := failJob(self)
	c.Hosts[0].Survives, c.Hosts[1].Survives = true, true
	return c
}

// TestLostIsHeard: what a host says of lost procs comes out at another one, in any pieces, behind
// what procs have sent before, and the channel goes on.
func TestLostIsHeard(t *testing.T) {
	l := wire.Lost{First: 1, Last: 2, Host: true, Status: 9, Text: strings.Repeat("x", 100)}
	for step := range 700 {
		from, to := newRig(t, surviveJob(0)).attachAll(), newRig(t, surviveJob(1)).attachAll()
		from.must(from.feed(procLink(0), from.packet(wire.PkData, 0, 1, 50, 0), everything))
		SendLost(from.Agent, l)
		from.must(from.feed(procLink(0), from.packet(wire.PkData, 0, 1, 50, 1), everything))
		if from.HasOutput(hostLink(2)) {
			t.Fatal("who does not take it is told")
		}
		out := from.output(hostLink(1))
		if first := out[wire.HeaderSize+50:]; wire.PacketType(first[1])<<16|wire.PacketType(first[3]) != wire.PkLost {
			t.Fatalf("% x comes behind the first packet", first[:4])
		}
		to.must(to.feed(hostLink(0), out, step+1))
		if ev, ok := to.Next(); !ok || ev.Kind != RanksLost || ev.Lost != l || ev.Peer.Host != 0 {
			t.Fatalf("%v %v", ev, ok)
		}
		if b := to.output(procLink(1)); len(b) != 2*(wire.HeaderSize+50) {
			t.Fatalf("%d bytes for the proc", len(b))
		}
	}
}

// TestLostIsNotForAll: neither procs nor hosts that do not list it may send it, nor of procs that
// there are not.
func TestLostIsNotForAll(t *testing.T) {
	lost := func(last wire.WorldRank) []byte {
		data := wire.AppendLost(nil, wire.Lost{Last: last})
		b := make([]byte, wire.HeaderSize)
		wire.Published.PutHeader(b, &wire.Packet{Type: wire.PkLost, Len: uint32(len(data))})
		return append(b, data...)
	}
	for _, c := range []struct {
		link LinkID
		last wire.WorldRank
	}{{procLink(1), 0}, {hostLink(2), 0}, {hostLink(0), 3}} {
		r := newRig(t, surviveJob(1)).attachAll()
		if err := r.feed(c.link, lost(c.last), everything); !errors.Is(err, ErrProtocol) {
			t.Errorf("link %d, rank %d: %v", c.link, c.last, err)
		}
	}
}

// TestGoOnWithout: a host that has died keeps the others from the end of the job, unless they go on
// without it.
func TestGoOnWithout(t *testing.T) {
	for _, goesOn := range []bool{false, true} {
		r := newRig(t, surviveJob(0)).attachAll()
		r.Closed(hostLink(1), io.EOF)
		if goesOn {
			ContinueWithout(r.Agent, 1, io.EOF)
			ContinueWithout(r.Agent, 1, io.EOF) // again
		}
		r.must(r.ProcDone(0))
		r.output(hostLink(2))
		r.must(r.feed(hostLink(2), fini[:], everything))
		r.Closed(hostLink(2), nil)
		finished := false
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			finished = finished || ev.Kind == Finished
		}
		if finished != goesOn {
			t.Errorf("goes on: %v, finished: %v", goesOn, finished)
		}
	}
}
