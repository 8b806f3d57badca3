package node

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports/socket"
)

// bench is a switch of host 0, with procs 0 and 1 and a channel to host 1, which
// has proc 2; and the other ends of the three links.
type bench struct {
	s       *packetSwitch
	events  chan agent.Event
	procs   [2]*socket.Link
	channel link.Link
}

func id(rank int64) wire.Proc { return wire.Proc{PID: 100 + rank} }

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOver(t, config.Wait{Auto: true}, socketPair)
}

// newBenchOver is newBench with another wait setting and another kind of channel.
func newBenchOver(t *testing.T, wait config.Wait, pair func(*testing.T) (ours, theirs link.Link)) *bench {
	t.Helper()
	b := idleBench(t, wait, pair)
	go b.s.run()
	return b
}

// idleBench is newBenchOver before anybody runs the switch.
func idleBench(t *testing.T, wait config.Wait, pair func(*testing.T) (ours, theirs link.Link)) *bench {
	t.Helper()
	a, err := agent.New(agent.Config{
		Hosts: []agent.Host{{}, {Client: 1}}, MaxData: 1 << 20, AckMark: 8, HiWater: 64,
		Procs: []agent.Proc{{ID: id(0)}, {ID: id(1)}, {ID: id(2), Host: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{events: make(chan agent.Event, 16)}
	spin, err := newSpinner(wait)
	if err != nil {
		t.Fatal(err)
	}
	b.s, err = newSwitch(a, spin, func(e agent.Event) { b.events <- e })
	if err != nil {
		t.Fatal(err)
	}
	for r := range b.procs {
		b.procs[r] = b.attach(t, socketPair, wire.WorldRank(r), 0).(*socket.Link)
	}
	b.channel = b.attach(t, pair, agent.NoRank, 1)
	t.Cleanup(b.s.stop)
	return b
}

// attach gives the switch one end of a pair of links, and us the other.
func (b *bench) attach(t *testing.T, pair func(*testing.T) (ours, theirs link.Link), rank wire.WorldRank, host wire.HostRank) link.Link {
	t.Helper()
	ours, theirs := pair(t)
	if err := b.s.attach(theirs, rank, host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	return ours
}

func socketPair(t *testing.T) (ours, theirs link.Link) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := socket.New(fds[0], nil)
	b, err2 := socket.New(fds[1], nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// packet is one DATA packet of n bytes.
func packet(src, dest int64, n int) []byte {
	b := make([]byte, wire.HeaderSize+n)
	wire.Published.PutHeader(b, &wire.Packet{Src: id(src), Dest: id(dest), Len: uint32(n), MsgLen: uint64(n)})
	for i := range n {
		b[wire.HeaderSize+i] = byte(i)
	}
	return b
}

func send(t *testing.T, l link.Link, b []byte) {
	t.Helper()
	x, err := newTalk(t.Context(), l)
	if err != nil {
		t.Error(err)
		return
	}
	if err := x.write(b); err != nil {
		t.Error(err)
	}
}

// sending is send beside what the test does; sent is closed when it is over.
func sending(t *testing.T, l link.Link, b []byte) (sent <-chan struct{}) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		send(t, l, b)
	}()
	return done
}

func want(t *testing.T, l link.Link, b []byte) {
	t.Helper()
	x, err := newTalk(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(b))
	if err := x.read(got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, b) {
		t.Error("another packet came")
	}
}

// linkEnded waits for the end of a link.
func linkEnded(t *testing.T, l link.Link) {
	t.Helper()
	x, err := newTalk(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.read(make([]byte, 1)); err == nil {
		t.Error("a byte came")
	}
}

func (b *bench) event(t *testing.T, kind agent.EventKind) agent.Event {
	t.Helper()
	e := <-b.events
	if e.Kind != kind {
		t.Fatalf("%v, want %v", e, kind)
	}
	return e
}

func (b *bench) silent(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	b.s.post(func() { close(done) })
	<-done
	select {
	case e := <-b.events:
		t.Errorf("%v", e)
	default:
	}
}

func TestSwitching(t *testing.T) {
	b := newBench(t)
	for _, n := range []int{0, 1, 5000, 1 << 20} {
		local, out, in := packet(0, 1, n), packet(1, 2, n), packet(2, 0, n)
		sent := sending(t, b.procs[0], local) // more than the sockets hold
		want(t, b.procs[1], local)
		<-sent
		sent = sending(t, b.procs[1], out)
		want(t, b.channel, out)
		<-sent
		sent = sending(t, b.channel, in)
		want(t, b.procs[0], in)
		<-sent
	}
}

func TestWhoDoesNotReadStopsNobody(t *testing.T) {
	b := newBench(t)
	big := packet(0, 1, 1<<20)
	for range 8 {
		send(t, b.procs[0], big) // proc 1 does not read
	}
	small := packet(0, 2, 8)
	send(t, b.procs[0], small)
	want(t, b.channel, small)
	for range 8 {
		want(t, b.procs[1], big)
	}
}

func TestFinishInOrder(t *testing.T) {
	b := newBench(t)
	last := packet(0, 2, 300)
	for r, l := range b.procs {
		if r == 0 {
			send(t, l, last)
		}
		_ = l.Close() // before the node hears that the proc has finished
		b.s.procDone(wire.WorldRank(r))
	}
	want(t, b.channel, last)
	fini := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(fini, &wire.Packet{Type: wire.PkFini})
	want(t, b.channel, fini)
	send(t, b.channel, fini)
	b.event(t, agent.HostFinished)
	b.event(t, agent.ChannelDone)
	linkEnded(t, b.channel)
	_ = b.channel.Close()
	b.event(t, agent.Finished)
}

func TestEndOfAProcsLinkIsJudgedByOthers(t *testing.T) {
	b := newBench(t)
	_ = b.procs[0].Close()
	p := packet(2, 0, 10) // for whom nobody reads
	send(t, b.channel, p)
	q := packet(2, 1, 10)
	send(t, b.channel, q)
	want(t, b.procs[1], q)
	b.silent(t)
}

func TestChannelThatEndsBeforeFini(t *testing.T) {
	b := newBench(t)
	send(t, b.channel, packet(2, 0, 100)[:60])
	_ = b.channel.Close()
	e := b.event(t, agent.HostDied)
	if !errors.Is(e.Err, agent.ErrTruncated) {
		t.Errorf("%v", e.Err)
	}
}

func TestProcThatBreaksTheProtocol(t *testing.T) {
	b := newBench(t)
	send(t, b.procs[0], packet(1, 2, 0)) // in another's name
	e := b.event(t, agent.ProcLost)
	if !errors.Is(e.Err, agent.ErrProtocol) || e.Peer.Rank != 0 {
		t.Errorf("%v", e)
	}
	linkEnded(t, b.procs[0])
}

func TestStopDropsTheChannel(t *testing.T) {
	b := newBench(t)
	b.s.stop()
	for _, l := range []link.Link{b.channel, b.procs[0]} {
		if _, err := l.Recv([][]byte{make([]byte, 1)}); err != io.EOF {
			t.Errorf("%v", err)
		}
	}
	b.s.post(func() { t.Error("work after the end") })
	b.s.stop()
}

func TestSpinSetting(t *testing.T) {
	for setting, w := range map[string]config.Wait{
		"auto": {Auto: true}, "0s": {}, "20µs": {Spin: 20 * time.Microsecond},
	} {
		if got := spinSetting(w); got != setting {
			t.Errorf("%+v is %q", w, got)
		}
		if _, err := newSpinner(w); err != nil {
			t.Error(err)
		}
	}
}

// TestWordsOfAProcThatIsGone: what a proc has sent before it closed its link is
// passed on, even if something for it comes before its node reads that.
func TestWordsOfAProcThatIsGone(t *testing.T) {
	b := newBench(t)
	b.s.post(func() {
		send(t, b.procs[0], packet(0, 1, 500))
		if err := b.procs[0].Close(); err != nil {
			t.Error(err)
		}
		send(t, b.procs[1], packet(1, 0, 10))
		b.s.read(b.s.byRank[1])
		b.s.output()
	})
	want(t, b.procs[1], packet(0, 1, 500))
}
