package agent

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// TestFinish ends a job of three hosts with all agents joined by hand: each sees
// its peers finish, closes its channels and is finished.
func TestFinish(t *testing.T) {
	const n = 3
	rigs := make([]*rig, n)
	for h := range rigs {
		rigs[h] = newRig(t, job(h, 2, 1, 2)).attachAll()
	}
	pump := func() {
		for again := true; again; {
			again = false
			for h, r := range rigs {
				for peer := range rigs {
					if peer != h && r.HasOutput(hostLink(peer)) {
						r.must(rigs[peer].feed(hostLink(h), r.take(hostLink(peer), 100), 60))
						again = true
					}
				}
			}
		}
	}
	for rank, p := range rigs[0].c.Procs.All() { // each says something to each before it ends
		r, i := rigs[p.Host], int(rank)
		for dest := range r.c.Procs.Len() {
			r.must(r.feed(procLink(i), r.packet(wire.PkData, i, dest, 50, 0), everything))
		}
		r.must(r.ProcDone(wire.WorldRank(i)))
		pump()
	}
	for h, r := range rigs {
		var done, finished int
		for _, e := range r.events() {
			switch e.Kind {
			case ChannelDone:
				done++
				r.Closed(e.Link, io.EOF)
			case HostFinished:
				finished++
			default:
				t.Errorf("host %d: %v", h, e)
			}
		}
		if done != n-1 || finished != n-1 {
			t.Errorf("host %d: %d channels done, %d hosts finished", h, done, finished)
		}
		r.wantEvents("all channels are closed", Finished)
	}
}

// TestFiniBytes: type 7 and 124 zero bytes.
func TestFiniBytes(t *testing.T) {
	r := newRig(t, job(0, 1, 1)).attachAll()
	r.must(r.ProcDone(0))
	want := make([]byte, 128)
	want[3] = 7
	if got := r.take(hostLink(1), everything); !slices.Equal(got, want) {
		t.Fatalf("% x", got)
	}
}

// TestTouched names a link once, until it is asked for.
func TestTouched(t *testing.T) {
	r := newRig(t, job(0, 3, 1)).attachAll()
	send := func(dests ...int) {
		for _, d := range dests {
			r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, d, 5, 0), everything))
		}
	}
	want := func(links ...LinkID) {
		t.Helper()
		got := slices.Clone(r.GrownQueues())
		if slices.Sort(got); !slices.Equal(got, links) {
			t.Fatalf("touched %v, want %v", got, links)
		}
	}
	want()
	send(1, 2, 1, 3, 1)
	want(1, 2, 101)
	want()
	send(1)
	want(1)
	send(2)
	r.Closed(procLink(2), io.EOF)
	want(2) // the driver knows that it closed it
	send(2)
	want()
}

// TestStrangerLinks: calls about links that are not there do nothing.
func TestStrangerLinks(t *testing.T) {
	r := newRig(t, job(0, 1, 1))
	for _, l := range []LinkID{NoLink, 0, 77, 1 << 30} {
		if r.Input(l) != nil || r.Output(l) != nil || r.HasOutput(l) {
			t.Errorf("link %d has input or output", l)
		}
		if err := r.Received(l, 0); !errors.Is(err, ErrLink) {
			t.Errorf("Received: %v", err)
		}
		r.Closed(l, nil)
	}
	r.wantEvents("nothing happened")
}

// TestDriverBugs: a driver that lies about what it did is stopped.
func TestDriverBugs(t *testing.T) {
	for name, bug := range map[string]func(r *rig){
		"Sent too much":           func(r *rig) { r.Sent(procLink(0), len(r.Output(procLink(0))[0])+1) },
		"Sent without Output":     func(r *rig) { r.Sent(procLink(0), 1) },
		"Sent on no link":         func(r *rig) { r.Sent(9, 0) },
		"Sent less than nothing":  func(r *rig) { r.Sent(procLink(0), -1) },
		"Received too much":       func(r *rig) { r.Received(hostLink(1), len(r.Input(hostLink(1))[0])+1) },
		"Received without Input":  func(r *rig) { r.Received(hostLink(1), 0) },
		"Received after Received": func(r *rig) { r.Input(hostLink(1)); r.Received(hostLink(1), 0); r.Received(hostLink(1), 0) },
	} {
		r := newRig(t, job(0, 1, 1)).attachAll()
		r.must(r.feed(hostLink(1), r.packet(wire.PkData, 1, 0, 10, 0), everything))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			bug(r)
		}()
	}
}

// TestReceivedAfterViolation returns the same error again.
func TestReceivedAfterViolation(t *testing.T) {
	r := newRig(t, job(0, 1, 1)).attachAll()
	err := r.feed(hostLink(1), r.packet(wire.PkData, 0, 0, 10, 0), everything)
	var p *ProtocolError
	if !errors.As(err, &p) || p.Field != "pk_src" || p.Peer != (Peer{Host: 1, Client: 1, Rank: NoRank}) {
		t.Fatalf("%v", err)
	}
	if again := r.Received(hostLink(1), 5); again != err {
		t.Fatalf("%v", again)
	}
	r.Closed(hostLink(1), io.EOF)
	if e := r.wantEvents("closed", HostDied)[0]; e.Err != err {
		t.Fatalf("%v", e)
	}
}

// TestOutputIsNoCopy: a packet leaves from the memory into which it was read.
func TestOutputIsNoCopy(t *testing.T) {
	r := newRig(t, job(0, 1, 1)).attachAll()
	in := r.Input(hostLink(1))[0]
	n := copy(in, r.packet(wire.PkData, 1, 0, 50000, 0))
	r.must(r.Received(hostLink(1), n))
	if out := r.Output(procLink(0)); len(out) != 1 || &out[0][0] != &in[0] || len(out[0]) != n {
		t.Fatalf("%d slices", len(out))
	}
}

// TestStats covers what a status page asks.
func TestStats(t *testing.T) {
	r := newRig(t, job(1, 2, 1)).attachAll()
	r.must(r.feed(hostLink(0), r.packet(wire.PkData, 1, 2, 72, 0), 50))
	if s := r.Counts(); s.Packets != 1 || s.Bytes != 200 || s.Queued != 200 || s.Memory == 0 {
		t.Fatalf("%+v", s)
	}
}

// TestFiniIsLast: PROTOACKs that wait leave before FINI, even if a packet of many
// runs is half sent and FINI would be in memory next to its end.
func TestFiniIsLast(t *testing.T) {
	c := job(0, 2, 1)
	c.ChunkSize = 1024
	r := newRig(t, c).attachAll()
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 2, 1172, 0), 1000))
	b := r.take(hostLink(1), 900)
	r.must(r.feed(procLink(1), r.packet(wire.PkProtoAck, 1, 2, 0, 0), 1000))
	r.must(r.ProcDone(0))
	r.must(r.ProcDone(1))
	b = append(b, r.take(hostLink(1), everything)...)
	packets, _ := cut(b)
	var names []string
	for _, p := range packets {
		names = append(names, r.name(p))
	}
	if want := []string{"DATA 0->2 #0 len=1172", "PROTOACK 1->2 #0", "FINI"}; !slices.Equal(names, want) {
		t.Fatalf("%q, want %q", names, want)
	}
}

// TestLentInput: memory that the driver is reading into is nobody else's, though
// all that was read into it before has left.
func TestLentInput(t *testing.T) {
	r := newRig(t, job(0, 2, 1)).attachAll()
	first, second := r.packet(wire.PkData, 2, 0, 10, 1), r.packet(wire.PkData, 2, 0, 20, 2)
	r.must(r.feed(hostLink(1), first, everything))
	in := r.Input(hostLink(1))[0]
	r.take(procLink(0), everything)
	other := r.Input(procLink(1))[0]
	copy(in, second)
	r.must(r.Received(procLink(1), copy(other, r.packet(wire.PkData, 1, 0, 30, 3))))
	r.must(r.Received(hostLink(1), len(second)))
	got, _ := cut(r.take(procLink(0), everything))
	if len(got) != 2 || r.name(got[0]) != "DATA 1->0 #3 len=30" || !slices.Equal(got[1], second) {
		t.Fatalf("%d packets", len(got))
	}
}

// TestConfigOrder: world ranks go by host, and every host is one of the job.
func TestConfigOrder(t *testing.T) {
	for _, hosts := range [][2]wire.HostRank{{1, 0}, {0, 2}, {-1, 0}} {
		c := job(0, 1, 1)
		c.Procs = startup.ListProcs(startup.ProcInfo{Host: hosts[0]}, startup.ProcInfo{Host: hosts[1]})
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("procs on hosts %v: %v", hosts, err)
		}
	}
}
