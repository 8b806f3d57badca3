package node

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	memory "github.com/openimpi/impi/transports/ring"
)

// ringPair makes a link through memory, whose ends tell of nothing without Arm.
func ringPair(t *testing.T) (ours, theirs link.Link) {
	t.Helper()
	region, err := memory.Create(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	again, err1 := unix.FcntlInt(uintptr(region), unix.F_DUPFD_CLOEXEC, 0)
	fds, err2 := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	a, err1 := memory.New(region, fds[0], 0)
	b, err2 := memory.New(again, fds[1], 1)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// A channel through memory, by switches that sleep at once and by those that poll
// long: packets, more of them than the rings hold, and the end in order.
func TestChannelThroughMemory(t *testing.T) {
	for name, wait := range map[string]config.Wait{
		"sleeping": {}, "polling": {Spin: time.Hour}, "both": {Auto: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchOver(t, wait, ringPair)
			for _, n := range []int{0, 1, 5000, 1 << 20} {
				out, in := packet(1, 2, n), packet(2, 0, n)
				sent := sending(t, b.procs[1], out)
				want(t, b.channel, out)
				<-sent
				sent = sending(t, b.channel, in)
				want(t, b.procs[0], in)
				<-sent
			}
			for r, l := range b.procs {
				_ = l.Close()
				b.s.procDone(wire.WorldRank(r))
			}
			fini := make([]byte, wire.HeaderSize)
			wire.Published.PutHeader(fini, &wire.Packet{Type: wire.PkFini})
			want(t, b.channel, fini)
			send(t, b.channel, fini)
			b.event(t, agent.HostFinished)
			b.event(t, agent.ChannelDone)
			linkEnded(t, b.channel)
			_ = b.channel.Close()
			b.event(t, agent.Finished)
		})
	}
}

// The bell that ended a sleep stays in the socket until the next one: it is no
// progress, else the switch would not sleep any more.
func TestLeftoverBellIsNoProgress(t *testing.T) {
	b := idleBench(t, config.Wait{}, ringPair)
	if !b.s.arm() {
		t.Fatal("there is nothing yet")
	}
	send(t, b.channel, packet(2, 0, 100))
	if !b.s.turn(-1) {
		t.Fatal("it slept on, or found nothing")
	}
	events, err := b.s.set.Wait(0)
	if err != nil || len(events) != 1 {
		t.Fatalf("no bell is left over: %v, %v", events, err)
	}
	if b.s.turn(0) {
		t.Error("the bell was taken for progress")
	}
	if !b.s.arm() {
		t.Fatal("there is nothing more")
	}
	if events, _ := b.s.set.Wait(0); len(events) != 0 {
		t.Errorf("the next sleep would be short: %v", events)
	}
	go b.s.run()
	want(t, b.procs[0], packet(2, 0, 100))
}
