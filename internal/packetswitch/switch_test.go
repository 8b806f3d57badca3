package packetswitch

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// bench is a switch of host 0, with procs 0 and 1 and a channel to host 1, which
// has proc 2; and the other ends of the three links.
type bench struct {
	s       *Switch
	events  chan agent.Event
	procs   [2]*socket.Link
	channel link.Link
}

func id(rank int64) wire.Proc { return wire.Proc{PID: 100 + rank} }

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOver(t, "auto", socketPair)
}

// newBenchOver is newBench with another wait setting and another kind of channel.
func newBenchOver(t *testing.T, spin string, pair func(*testing.T) (ours, theirs link.Link)) *bench {
	t.Helper()
	b := idleBench(t, spin, pair)
	go b.s.Run()
	return b
}

// idleBench is newBenchOver before anybody runs the switch.
func idleBench(t *testing.T, spin string, pair func(*testing.T) (ours, theirs link.Link)) *bench {
	t.Helper()
	a, err := agent.New(agent.Config{
		Hosts: []agent.Host{{Fails: true, Asks: true}, {Client: 1, Fails: true, Asks: true}}, MaxData: 1 << 20, AckMark: 8, HiWater: 64,
		Procs: startup.ListProcs(startup.ProcInfo{ID: id(0)}, startup.ProcInfo{ID: id(1)}, startup.ProcInfo{ID: id(2), Host: 1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{events: make(chan agent.Event, 16)}
	spinner, err := polling.NewSpinner(spin)
	if err != nil {
		t.Fatal(err)
	}
	b.s, err = New(Config{Agent: a, Machine: machine.Local{}, Spin: spinner, Notify: func(e agent.Event) { b.events <- e }})
	if err != nil {
		t.Fatal(err)
	}
	for r := range b.procs {
		b.procs[r] = b.attach(t, socketPair, wire.WorldRank(r), 0).(*socket.Link)
	}
	b.channel = b.attach(t, pair, agent.NoRank, 1)
	t.Cleanup(b.s.Stop)
	return b
}

// attach gives the switch one end of a pair of links, and us the other.
func (b *bench) attach(t *testing.T, pair func(*testing.T) (ours, theirs link.Link), rank wire.WorldRank, host wire.HostRank) link.Link {
	t.Helper()
	ours, theirs := pair(t)
	attach := func() error { return b.s.AttachProc(theirs, rank) }
	if rank == agent.NoRank {
		attach = func() error { return b.s.AttachHost(theirs, host, nil) }
	}
	if err := attach(); err != nil {
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

// await sleeps until one of want holds of a link.
func await(l link.Link, want link.Interest) error {
	set, err := poll.NewSet()
	if err != nil {
		return err
	}
	if err := set.Add(l.Handle(), 0, want); err != nil {
		return errors.Join(err, set.Close())
	}
	if !l.Arm(want) {
		_, err = set.Wait(-1)
	}
	return errors.Join(err, set.Close())
}

func send(t *testing.T, l link.Link, b []byte) {
	t.Helper()
	for len(b) > 0 {
		n, err := l.Send([][]byte{b})
		if b = b[n:]; err == nil && n == 0 {
			err = await(l, link.Writable)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// read fills b.
func read(l link.Link, b []byte) error {
	for len(b) > 0 {
		n, err := l.Recv([][]byte{b})
		if b = b[n:]; err == nil && n == 0 {
			err = await(l, link.Readable)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	got := make([]byte, len(b))
	if err := read(l, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, b) {
		t.Error("another packet came")
	}
}

// linkEnded waits for the end of a link.
func linkEnded(t *testing.T, l link.Link) {
	t.Helper()
	if err := read(l, make([]byte, 1)); err == nil {
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
	b.s.Post(func() { close(done) })
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
		b.s.ProcDone(wire.WorldRank(r))
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

// TestFail: who is told of a failure closes the channel, and then the switch has told all.
func TestFail(t *testing.T) {
	b := newBench(t)
	told := make(chan struct{})
	b.s.Fail("why", func() { close(told) })
	fail := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(fail, &wire.Packet{Type: wire.PkFail, Len: 3})
	want(t, b.channel, append(fail, "why"...))
	select {
	case <-told:
		t.Error("the other host has closed nothing yet")
	default:
	}
	_ = b.channel.Close()
	<-told
	again := make(chan struct{})
	b.s.Fail("nobody is left", func() { close(again) })
	<-again
}

// TestToldOfAFailure: the switch closes a channel by which it hears of a failure.
func TestToldOfAFailure(t *testing.T) {
	b := newBench(t)
	fail := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(fail, &wire.Packet{Type: wire.PkFail, Len: 3})
	send(t, b.channel, append(fail, "why"...))
	linkEnded(t, b.channel)
	var failed *agent.FailedError
	if ev := b.event(t, agent.HostDied); !errors.As(ev.Err, &failed) || failed.Text != "why" {
		t.Error(ev)
	}
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
	b.s.Stop()
	for _, l := range []link.Link{b.channel, b.procs[0]} {
		if _, err := l.Recv([][]byte{make([]byte, 1)}); err != io.EOF {
			t.Errorf("%v", err)
		}
	}
	b.s.Post(func() { t.Error("work after the end") })
	b.s.Stop()
}

// TestWordsOfAProcThatIsGone: what a proc has sent before it closed its link is forwarded,
// even if something for the proc comes before its node reads that.
func TestWordsOfAProcThatIsGone(t *testing.T) {
	b := newBench(t)
	b.s.Post(func() {
		send(t, b.procs[0], packet(0, 1, 500))
		if err := b.procs[0].Close(); err != nil {
			t.Error(err)
		}
		send(t, b.procs[1], packet(1, 0, 10))
		b.s.byRank[1].Receive()
		b.s.output()
	})
	want(t, b.procs[1], packet(0, 1, 500))
}

// TestProcThatSendsNoMore: a proc that has ended its own side still gets everything that is
// for it, more than its link holds.
func TestProcThatSendsNoMore(t *testing.T) {
	b := newBench(t)
	if err := b.procs[1].CloseSend(); err != nil {
		t.Fatal(err)
	}
	big := packet(0, 1, 1<<20)
	sent := sending(t, b.procs[0], big)
	want(t, b.procs[1], big)
	<-sent
}

// TestProcThatFinishesLate: if bytes of a proc may still be under way when it says that it
// has finished, the switch waits for the end of its link.
func TestProcThatFinishesLate(t *testing.T) {
	b := idleBench(t, "auto", socketPair)
	b.s.Delivered = func(rank wire.WorldRank) bool { return rank != 0 }
	go b.s.Run()
	b.s.ProcDone(0)
	b.s.ProcDone(1)
	b.silent(t)
	last := packet(0, 2, 300)
	send(t, b.procs[0], last)
	_ = b.procs[0].Close()
	want(t, b.channel, last)
	fini := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(fini, &wire.Packet{Type: wire.PkFini})
	want(t, b.channel, fini)
}
