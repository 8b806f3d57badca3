package mpi

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/transports/socket"
)

// peerEnv makes the test binary the other process of a benchmark.
const peerEnv = "IMPI_TEST_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		if err := echo(); err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// echo is rank 1 of a benchmark: it sends back what it gets, or takes 64 at a
// time and answers once, until a message with tag 2 arrives.
func echo() error {
	l, err := socket.New(3, nil)
	if err != nil {
		return err
	}
	p, err := twoProcs(1, l)
	if err != nil {
		return err
	}
	c, buf, reqs := p.world, make([]byte, 1<<20), make([]Request, 64)
	for {
		st, err := Recv(c, buf, 0, AnyTag)
		if err != nil || st.Tag == 2 {
			return err
		}
		if st.Tag == 1 {
			for i := range reqs[1:] {
				if reqs[i+1], err = Irecv(c, buf, 0, 1); err != nil {
					return err
				}
			}
			if err := Waitall(reqs[1:], nil); err != nil {
				return err
			}
		}
		if err := Send(c, buf[:st.Bytes()], 0, 0); err != nil {
			return err
		}
	}
}

func twoProcs(rank int, l link.Link) (*process, error) {
	p, err := newProcess(layout{procs: 2, dataLen: 256 << 10, ackMark: 64, hiWater: 256}.job(rank), nil, machine.Local{}, nil)
	if err != nil {
		return nil, err
	}
	q, err := p.addPort(l, message.Peer(1-rank))
	if err != nil {
		return nil, err
	}
	p.eng.SetRoute(message.Peer(1-rank), q.id)
	return p, nil
}

// withPeer starts the other process and gives rank 0's world.
func withPeer(b *testing.B, tcp bool) *Comm {
	b.Helper()
	ends := unixEnds(b)
	if tcp {
		ends = tcpEnds(b)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	cmd.Stderr = os.Stderr
	f := os.NewFile(uintptr(ends[1]), "peer")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = f.Close()
	l, err := socket.New(ends[0], nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := twoProcs(0, l)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = Send(p.world, []byte{}, 1, 2)
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return p.world
}

func unixEnds(b *testing.B) [2]int {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	return fds
}

func tcpEnds(b *testing.B) (fds [2]int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	for i, c := range []net.Conn{dialled, accepted} {
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			b.Fatal(err)
		}
		if fds[i], err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			b.Fatal(err)
		}
		_, _ = f.Close(), c.Close()
	}
	return fds
}

// BenchmarkPingPong is a round trip between two processes: twice the latency.
func BenchmarkPingPong(b *testing.B) {
	for _, kind := range []string{"tcp", "unix"} {
		for _, n := range []int{8, 64 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				c := withPeer(b, kind == "tcp")
				buf := make([]byte, n)
				b.SetBytes(int64(2 * n))
				for b.Loop() {
					if err := Send(c, buf, 1, 0); err != nil {
						b.Fatal(err)
					}
					if _, err := Recv(c, buf, 1, 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkWindow is 64 messages and one answer.
func BenchmarkWindow(b *testing.B) {
	for _, n := range []int{8, 256 << 10} {
		b.Run(fmt.Sprintf("tcp/%d", n), func(b *testing.B) {
			c := withPeer(b, true)
			buf, reqs := make([]byte, n), make([]Request, 64)
			b.SetBytes(int64(64 * n))
			for b.Loop() {
				for i := range reqs {
					reqs[i], _ = Isend(c, buf, 1, 1)
				}
				if err := Waitall(reqs, nil); err != nil {
					b.Fatal(err)
				}
				if _, err := Recv(c, buf, 1, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
