package socket

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

func TestWaiting(t *testing.T) {
	w := NewWaiting(1)
	many := unproved.From(netip.MustParseAddr("192.0.2.1"))
	var evicted []int
	enter := func(i int, from unproved.Source) func() {
		return w.Enter(from, func() { evicted = append(evicted, i) })
	}
	leave := enter(0, many)
	for i := 1; i < waitingThere; i++ {
		enter(i, many)
	}
	// One that leaves makes room.
	leave()
	leave()
	enter(1000, many)
	if len(evicted) != 0 {
		t.Errorf("%d went although there was room", evicted)
	}
	// Without room, the oldest of the address is evicted.
	enter(1001, many)
	if len(evicted) != 1 || evicted[0] != 1 {
		t.Errorf("%d went, want 1", evicted)
	}
	// Other addresses, and links without one, evict nobody.
	enter(1002, unproved.From(netip.MustParseAddr("192.0.2.2")))
	enter(1003, unproved.Source{})
	if len(evicted) != 1 {
		t.Errorf("%d went for others", evicted[1:])
	}
}

// TestWaitingWithFewFiles: a process that may open few files leaves only a share of them to
// connections that wait.
func TestWaitingWithFewFiles(t *testing.T) {
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 160, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	one, two := NewWaiting(1), NewWaiting(2)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	for w, stay := range map[*Waiting]int{one: 20, two: 10} {
		gone := 0
		for range 100 {
			w.Enter(unproved.From(netip.MustParseAddr("192.0.2.1")), func() { gone++ })
		}
		if gone != 100-stay {
			t.Errorf("%d of 100 went, want all but %d", gone, stay)
		}
	}
}

func TestSources(t *testing.T) {
	for far, want := range map[unix.Sockaddr]unproved.Source{
		&unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 5}: unproved.From(netip.MustParseAddr("192.0.2.1")),
		&unix.SockaddrInet6{Addr: [16]byte{15: 1}}:                unproved.From(netip.MustParseAddr("::1")),
		&unix.SockaddrUnix{Name: "/x"}:                            {},
	} {
		if got := SourceOf(&Link{source: sourceOfPeer(far)}); got != want {
			t.Errorf("%v: %v", far, got)
		}
	}
	a, _ := linktest.Pair(1)
	if SourceOf(a) != (unproved.Source{}) {
		t.Error("a link in memory has an address")
	}
}
