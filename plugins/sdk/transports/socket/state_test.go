package socket

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

func newLink(t *testing.T) (l *Link, peer int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = New(fds[0], nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); unix.Close(fds[1]) })
	return l, fds[1]
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

// A call in progress keeps the descriptor's number its own until it returns.
func TestCloseWaitsForCallsInProgress(t *testing.T) {
	l, _ := newLink(t)
	fd := l.Handle()
	for range 2 {
		if !l.enter(closed) {
			t.Fatal("no call can begin")
		}
	}
	l.Close()
	if l.enter(closed) {
		t.Fatal("a call can begin after Close")
	}
	if l.leave(); !isOpen(fd) {
		t.Fatal("closed under a call in progress")
	}
	if l.leave(); isOpen(fd) {
		t.Fatal("still open after the last call")
	}
	if l.Handle() != link.NoHandle {
		t.Errorf("handle %d after Close", l.Handle())
	}
}

func TestDetachDuringCall(t *testing.T) {
	l, _ := newLink(t)
	l.enter(closed)
	if _, _, err := l.Detach(); !errors.Is(err, ErrInUse) {
		t.Errorf("Detach under a call in progress reports %v", err)
	}
	l.leave()
	fd, _, err := l.Detach()
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}

// The link keeps no reference to the caller's memory after a call.
func TestBatchIsNotKept(t *testing.T) {
	l, _ := newLink(t)
	batch := [][]byte{make([]byte, 10), make([]byte, 10), make([]byte, 10)}
	if _, err := l.Send(batch); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Recv(batch); err != nil {
		t.Fatal(err)
	}
	for i := range maxSlices {
		if l.send.vec[i].Base != nil || l.recv.vec[i].Base != nil {
			t.Fatalf("slice %d of a batch is still pointed at", i)
		}
	}
}
