package meet

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports/socket"
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

// Who has connected and said something is still there; who has closed its end is gone.
func TestWaitingHungUp(t *testing.T) {
	ours, theirs := pairOfLinks(t)
	c := waiting{link: ours}
	if _, err := theirs.Send([][]byte{[]byte("first words")}); err != nil {
		t.Fatal(err)
	}
	if c.hungUp() {
		t.Error("it is there, and has said something")
	}
	_ = theirs.Close()
	if !c.hungUp() {
		t.Error("it has gone away")
	}
}
