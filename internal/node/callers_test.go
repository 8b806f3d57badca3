package node

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/transports/socket"
)

// pairOfLinks are the ends of a link.
func pairOfLinks(t *testing.T) (ours, theirs *socket.Link) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*socket.Link
	for i, fd := range fds {
		if ends[i], err = socket.New(fd, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

func (c *callPort) mustHold(t *testing.T, want bool) {
	t.Helper()
	if got := c.hold(); got != want {
		t.Fatalf("a place is kept: %v, want %v, with %d callers and %d held", got, want, len(c.callers), c.held)
	}
}

// A crowded port has room again once a caller has gone away, and hands out those
// that are there, first come first served.
func TestPortIsBounded(t *testing.T) {
	c := &callPort{backlog: 2}
	gone, end := pairOfLinks(t)
	stays, other := pairOfLinks(t)
	for _, l := range []*socket.Link{gone, stays} {
		c.mustHold(t, true)
		c.enter(caller{link: l})
	}
	c.mustHold(t, false)
	if _, err := other.Send([][]byte{[]byte("first words")}); err != nil {
		t.Fatal(err)
	}
	c.mustHold(t, false) // who has said something is still there
	_ = end.Close()
	c.mustHold(t, true)
	if x, ok, _ := c.take(1); !ok || x.link != stays {
		t.Errorf("%v %v, want the caller that stayed", x, ok)
	}
	if _, ok, full := c.take(2); ok || full {
		t.Error("somebody is there")
	}
}

func TestTakersInOrder(t *testing.T) {
	c := &callPort{backlog: 4}
	for _, request := range []uint64{5, 6, 7} {
		c.take(request)
	}
	if !c.cancel(6) || c.cancel(6) {
		t.Error("a wait is given up once")
	}
	l, _ := pairOfLinks(t)
	for _, want := range []uint64{5, 7} {
		c.mustHold(t, true)
		if got, taken := c.enter(caller{link: l}); got != want || !taken {
			t.Errorf("%d %v, want %d", got, taken, want)
		}
	}
	c.take(8)
	if left := c.hangUp(); !slices.Equal(left, []uint64{8}) {
		t.Errorf("%v wait at a closed port, want 8", left)
	}
}

// A caller that has gone away is not given to anybody.
func TestCallerThatWent(t *testing.T) {
	c := &callPort{backlog: 4}
	ours, theirs := pairOfLinks(t)
	c.mustHold(t, true)
	c.enter(caller{link: ours})
	_ = theirs.Close()
	if _, ok, _ := c.take(1); ok || len(c.takes) != 1 {
		t.Error("it is handed out")
	}
}
