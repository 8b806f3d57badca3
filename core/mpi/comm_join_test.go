package mpi

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
	"golang.org/x/sys/unix"
)

// sockets makes a connected pair of stream sockets.
func sockets(t *testing.T, kind int) [2]int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	return fds
}

// TestCommJoin joins procs of two jobs, and of one.
func TestCommJoin(t *testing.T) {
	for _, name := range []string{"two jobs", "one job"} {
		t.Run(name, func(t *testing.T) {
			m, fds := newTestNodes(), sockets(t, unix.SOCK_STREAM)
			a := m.world(t, "a", 3)
			worlds := [][]*proc.Process{{a[1]}, {a[2]}}
			if name == "two jobs" {
				worlds[1] = m.world(t, "b", 1)
			}
			apiece(t, worlds, func(w int, c *Comm) error {
				inter, err := outComm(meet.CommJoin(c.in().Process(), fds[w]))
				if err != nil {
					return err
				}
				n, err1 := inter.RemoteSize()
				theirs, err2 := inter.RemoteGroup()
				world, err3 := (*Comm)(worlds[1-w][0].Comms.World).Group()
				if err := errors.Join(err1, err2, err3, expect("members", [2]int{inter.Size(), n}, [2]int{1, 1})); err != nil {
					return err
				}
				own, err := c.Group()
				if err != nil {
					return err
				}
				rank, err := theirs.Translate([]int{0}, own)
				if name == "one job" {
					err = errors.Join(err, expect("rank of the other", rank[0], world.Rank()))
				}
				text := []byte{0}
				_, errOut := unix.Write(fds[w], []byte{byte('p' + w)}) // the socket is as it was
				_, errIn := unix.Read(fds[w], text)
				return errors.Join(err, everyoneSends(inter), errOut, errIn, expect("byte", text[0], byte('q'-w)), inter.Disconnect(),
					expect("ports left", len(c.in().Process().Node.PortKeys), 0))
			})
		})
	}
}

func TestCommJoinBadDescriptors(t *testing.T) {
	m := newTestNodes()
	p := m.world(t, "a", 1)[0]
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	alone, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(alone)
	datagrams, own, gone := sockets(t, unix.SOCK_DGRAM), sockets(t, unix.SOCK_STREAM), sockets(t, unix.SOCK_STREAM)
	if err := unix.Shutdown(gone[1], unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		fd   int
		want mpierr.Class
	}{
		{"-1", -1, mpierr.Arg},
		{"a closed one", 1 << 20, mpierr.Arg},
		{"a file", int(file.Fd()), mpierr.Arg},
		{"datagrams", datagrams[0], mpierr.Arg},
		{"not connected", alone, mpierr.Arg},
		{"whose other end has gone", gone[0], mpierr.Other},
	} {
		d, err := meet.CommJoin(p, c.fd)
		if ErrorClass(err) != c.want || d != nil {
			t.Errorf("%s: %v, %v, want class %v", c.what, d, err, c.want)
		}
	}
	errs := make(chan error, 2)
	for _, fd := range own {
		go func() { errs <- second(meet.CommJoin(p, fd)) }()
	}
	for range own {
		if err := <-errs; ErrorClass(err) != mpierr.Arg {
			t.Errorf("both ends in one proc: %v", err)
		}
	}
	if len(p.Node.PortKeys) != 0 || len(p.Node.Asking) != 0 {
		t.Errorf("%d ports are left, %d questions", len(p.Node.PortKeys), len(p.Node.Asking))
	}
}

// TestCommJoinWithStrangers has somebody at the other end say what no proc says.
func TestCommJoinWithStrangers(t *testing.T) {
	m := newTestNodes()
	p := m.world(t, "a", 1)[0]
	proper := meet.JoinPeer{Who: dynamic.WorldProc{Rank: 1}, Port: "impi-port/1+nonsense"}
	head := proper.Append(nil)[:meet.JoinHead]
	for _, c := range []struct {
		what string
		said []byte
	}{
		{"nothing of ours", bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 8)},
		{"another version", append([]byte(meet.JoinMagic+"\x00\x02"), head[10:]...)},
		{"a port without a name", append(bytes.Clone(head[:meet.JoinHead-2]), 0, 0)},
		{"a port with too long a name", append(bytes.Clone(head[:meet.JoinHead-2]), 255, 255)},
		{"the beginning only", head[:meet.JoinHead-9]},
		{"a port that is none", append(append([]byte(nil), head...), proper.Port...)},
	} {
		fds := sockets(t, unix.SOCK_STREAM)
		if _, err := unix.Write(fds[1], c.said); err != nil {
			t.Fatal(err)
		}
		if err := unix.Shutdown(fds[1], unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		if d, err := meet.CommJoin(p, fds[0]); ErrorClass(err) != mpierr.Other || d != nil {
			t.Errorf("%s: %v, %v", c.what, d, err)
		}
	}
	fds := sockets(t, unix.SOCK_STREAM)
	if _, err := meet.ExchangeJoinPeers(fds[0], &proper, time.Now()); !errors.Is(err, ErrJoin) {
		t.Errorf("who says nothing: %v", err)
	}
}

func FuzzJoiner(f *testing.F) {
	f.Add((&meet.JoinPeer{Port: "x"}).Append(nil)[:meet.JoinHead])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != meet.JoinHead {
			return
		}
		var x meet.JoinPeer
		n, err := x.ReadHead(b)
		if err != nil {
			return
		}
		x.Port = string(make([]byte, n))
		if again := x.Append(nil); !bytes.Equal(again[:meet.JoinHead], b) {
			t.Errorf("%x is said as %x", b, again[:meet.JoinHead])
		}
	})
}
