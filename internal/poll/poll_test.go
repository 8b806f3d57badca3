package poll

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

func sockets(t *testing.T) [2]int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]); _ = unix.Close(fds[1]) })
	return fds
}

func newSet(t *testing.T) *Set {
	t.Helper()
	s, err := NewSet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func wait(t *testing.T, s *Set, d time.Duration) []Event {
	t.Helper()
	ev, err := s.Wait(d)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func TestReadiness(t *testing.T) {
	s, fds := newSet(t), sockets(t)
	if err := s.Add(fds[0], 7, link.Readable); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, s, 0); len(ev) != 0 {
		t.Errorf("an idle socket is ready: %v", ev)
	}
	if _, err := unix.Write(fds[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, s, -1); len(ev) != 1 || ev[0] != (Event{Key: 7, Readable: true}) {
		t.Errorf("got %v", ev)
	}
	if err := s.Modify(fds[0], 8, link.Readable|link.Writable); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, s, 0); len(ev) != 1 || ev[0] != (Event{Key: 8, Readable: true, Writable: true}) {
		t.Errorf("got %v", ev)
	}
	if err := s.Remove(fds[0]); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, s, 0); len(ev) != 0 {
		t.Errorf("a removed socket is ready: %v", ev)
	}
}

func TestPeerCloseIsReadable(t *testing.T) {
	s, fds := newSet(t), sockets(t)
	if err := s.Add(fds[0], 1, link.Readable); err != nil {
		t.Fatal(err)
	}
	if err := unix.Shutdown(fds[1], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, s, -1); len(ev) != 1 || !ev[0].Readable {
		t.Errorf("got %v", ev)
	}
}

func TestWakerEndsWait(t *testing.T) {
	s := newSet(t)
	w, err := NewWaker()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := s.Add(w.FD(), 3, link.Readable); err != nil {
		t.Fatal(err)
	}
	go w.Wake()
	if ev := wait(t, s, -1); len(ev) != 1 || ev[0].Key != 3 {
		t.Errorf("got %v", ev)
	}
	w.Clear()
	if ev := wait(t, s, 0); len(ev) != 0 {
		t.Errorf("still awake after Clear: %v", ev)
	}
}

func TestWaitAllocatesNothing(t *testing.T) {
	s, fds := newSet(t), sockets(t)
	if err := s.Add(fds[0], 1, link.Writable); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Wait(0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
