package packetswitch

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
	memory "github.com/openimpi/impi/plugins/sdk/support/ring"
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

// A channel through shared memory, with switches that sleep at once and with those that
// poll for long: more packets than the rings hold, and the end in order.
func TestChannelThroughMemory(t *testing.T) {
	for name, spin := range map[string]string{
		"sleeping": "0", "polling": "1h", "both": "auto",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchOver(t, spin, ringPair)
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
				b.s.ProcDone(wire.WorldRank(r))
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

// The byte that has ended a sleep stays in the socket until the next one. It does not count
// as progress, since the switch would never sleep again.
func TestLeftoverBellIsNoProgress(t *testing.T) {
	b := idleBench(t, "0", ringPair)
	if !b.s.links.ArmAll() {
		t.Fatal("there is nothing yet")
	}
	send(t, b.channel, packet(2, 0, 100))
	if events, err := b.s.links.Wait(-1); err != nil || !b.s.links.Handle(events) {
		t.Fatalf("it slept on, or found nothing: %v", err)
	}
	b.s.output()
	events, err := b.s.links.Wait(0)
	if err != nil || len(events) != 1 {
		t.Fatalf("no bell is left over: %v, %v", events, err)
	}
	if b.s.links.Handle(events) {
		t.Error("the bell was taken for progress")
	}
	if !b.s.links.ArmAll() {
		t.Fatal("there is nothing more")
	}
	if events, _ := b.s.links.Wait(0); len(events) != 0 {
		t.Errorf("the next sleep would be short: %v", events)
	}
	go b.s.Run()
	want(t, b.procs[0], packet(2, 0, 100))
}
