package wireup

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPeersAreOfThisUser(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "a")
	defer f.Close()
	defer unix.Close(fds[1])
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if pid, err := peerOf(c.(*net.UnixConn)); err != nil || pid != os.Getpid() {
		t.Errorf("%d, %v", pid, err)
	}
}

// TestASilentProcess: who connects and says nothing does not keep the others out, and who was
// slow is heard.
func TestASilentProcess(t *testing.T) {
	ours, file, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	fd, err := unix.Dup(int(file.Fd()))
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := NewConn(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	if _, _, err := recvWithin(ours, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing was said: %v", err)
	}
	if err := theirs.Send(Message{Kind: KindAttach}); err != nil {
		t.Fatal(err)
	}
	if m, _, err := recvWithin(ours, time.Hour); err != nil || m.Kind != KindAttach {
		t.Errorf("%v, %v", m, err)
	}
}

// TestAttachListener: who says KindAttach is let in, with its number; who says something else is
// not.
func TestAttachListener(t *testing.T) {
	name := AttachName()
	d, err := ListenAttach(name)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		m  Message
		in bool
	}{
		{Message{Kind: KindAttach, Version: Version, Peer: 3, Size: 4}, true},
		{Message{Kind: KindAttach, Version: Version + 1, Peer: 3}, false},
		{Message{Kind: KindHello, Version: Version, Peer: 3}, false},
	} {
		proc, pid, err := Attach(name)
		if err != nil || pid != os.Getpid() {
			t.Fatal(pid, err)
		}
		if err := proc.Send(c.m); err != nil {
			t.Fatal(err)
		}
		conn, err := d.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		a, err := ReceiveAttach(conn)
		if (err == nil) != c.in {
			t.Errorf("%+v: %v", c.m, err)
		}
		if c.in {
			if a.PID != os.Getpid() || a.Peer != 3 || a.Size != 4 {
				t.Errorf("%+v", a)
			}
			if err := a.Conn.Send(Message{Kind: KindDown}); err != nil {
				t.Error(err)
			}
			if m, _, err := proc.Recv(); err != nil || m.Kind != KindDown {
				t.Errorf("%v, %v", m, err)
			}
			_ = a.Conn.Close()
		} else if _, _, err := proc.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("%+v: the connection stays open: %v", c.m, err)
		}
		_ = proc.Close()
	}
	if _, _, err := Attach(AttachName()); err == nil {
		t.Error("a name at which nobody listens can be connected to")
	}
}
