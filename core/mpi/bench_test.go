package mpi

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"golang.org/x/sys/unix"
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
	l, err := peerLink(os.Getenv(peerEnv) == "shm", []int{3, 4}, 1)
	if err != nil {
		return err
	}
	p, err := twoProcs(1, l)
	if err != nil {
		return err
	}
	pin(1)
	if f := os.Getenv(profileEnv); f != "" {
		o, err := os.Create(f)
		if err != nil {
			return err
		}
		defer o.Close()
		if err := pprof.StartCPUProfile(o); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	c, buf, out, reqs := (*Comm)(p.Comms.World), filled(1<<20), filled(1<<20), make([]Request, 64)
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
		if err := Send(c, out[:st.Bytes()], 0, 0); err != nil {
			return err
		}
	}
}

func twoProcs(rank int, l link.Link) (*proc.Process, error) {
	p, err := proc.NewProcess(layout{procs: 2, dataLen: 256 << 10, ackMark: 64, hiWater: 256}.job(rank), nil, machine.Local{}, nil)
	if err != nil {
		return nil, err
	}
	q, err := p.Endpoints.Add(l, message.Peer(1-rank))
	if err != nil {
		return nil, err
	}
	p.Eng.SetRoute(message.Peer(1-rank), q.ID)
	return p, nil
}

// filled is memory that was written to: pages that never were are all one page of
// zeroes, which is copied faster than any message.
func filled(n int) []byte { return bytes.Repeat([]byte{1}, n) }

// peerLink makes the link of one side: a socket, or the memory and the socket of
// a ring.
func peerLink(shm bool, fds []int, side int) (link.Link, error) {
	if shm {
		return proc.OpenRing(fds[1], fds[0], side)
	}
	return socket.New(fds[0], nil)
}

// profileEnv names the file for the other process's profile.
const profileEnv = "IMPI_TEST_PROFILE"

// pinEnv asks the two processes of a benchmark to stay on processors 0 and 1.
const pinEnv = "IMPI_TEST_PIN"

func pin(cpu int) {
	if os.Getenv(pinEnv) == "" {
		return
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
}

// withPeer starts the other process and gives rank 0's world.
func withPeer(b *testing.B, kind string) *Comm {
	b.Helper()
	ends, region := unixEnds(b), -1
	switch kind {
	case "tcp":
		ends = tcpEnds(b)
	case "shm":
		var err error
		if region, err = ring.CreateForProcs(ring.DefaultSize); err != nil {
			b.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"="+kind)
	cmd.Stderr = os.Stderr
	f := os.NewFile(uintptr(ends[1]), "peer")
	cmd.ExtraFiles = []*os.File{f}
	if region >= 0 {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(region), "region"))
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = f.Close()
	l, err := peerLink(kind == "shm", []int{ends[0], region}, 0)
	if err != nil {
		b.Fatal(err)
	}
	p, err := twoProcs(0, l)
	if err != nil {
		b.Fatal(err)
	}
	pin(0)
	b.Cleanup(func() {
		_ = Send((*Comm)(p.Comms.World), []byte{}, 1, 2)
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return (*Comm)(p.Comms.World)
}

// windows measures f, which moves n messages, in many short spells, so that
// those in which somebody else had the processor can be told from the others:
// the lower quartile is reported beside the mean.
func windows(b *testing.B, n int, f func() error) {
	const spell = time.Millisecond
	var spells []float64
	start, rounds := time.Now(), 0
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
		rounds++
		if rounds%8 == 0 && time.Since(start) > spell {
			spells = append(spells, float64(time.Since(start).Nanoseconds())/float64(rounds*n))
			start, rounds = time.Now(), 0
		}
	}
	if len(spells) >= 4 {
		slices.Sort(spells)
		b.ReportMetric(spells[0], "min-ns/msg")
		b.ReportMetric(spells[len(spells)/4], "q1-ns/msg")
	}
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
	for _, kind := range []string{"tcp", "unix", "shm"} {
		for _, n := range []int{8, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				c := withPeer(b, kind)
				out, in := filled(n), filled(n)
				b.SetBytes(int64(2 * n))
				windows(b, 2, func() error {
					if err := Send(c, out, 1, 0); err != nil {
						return err
					}
					_, err := Recv(c, in, 1, 0)
					return err
				})
			})
		}
	}
}

// BenchmarkWindow is 64 messages and one answer.
func BenchmarkWindow(b *testing.B) {
	for _, kind := range []string{"tcp", "shm"} {
		for _, n := range []int{8, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				c := withPeer(b, kind)
				buf, reqs := filled(n), make([]Request, 64)
				b.SetBytes(int64(64 * n))
				windows(b, 64, func() error {
					for i := range reqs {
						reqs[i], _ = Isend(c, buf, 1, 1)
					}
					if err := Waitall(reqs, nil); err != nil {
						return err
					}
					_, err := Recv(c, buf, 1, 0)
					return err
				})
			})
		}
	}
}

// BenchmarkBothSides is what a message costs the processor: sent and received by
// one thread, so that nothing is waited for.
func BenchmarkBothSides(b *testing.B) {
	ends := unixEnds(b)
	region, err := ring.CreateForProcs(ring.DefaultSize)
	if err != nil {
		b.Fatal(err)
	}
	other, err := unix.Dup(region)
	if err != nil {
		b.Fatal(err)
	}
	var c [2]*Comm
	for i, fds := range [][]int{{ends[0], region}, {ends[1], other}} {
		l, err := peerLink(true, fds, i)
		if err != nil {
			b.Fatal(err)
		}
		p, err := twoProcs(i, l)
		if err != nil {
			b.Fatal(err)
		}
		c[i] = (*Comm)(p.Comms.World)
	}
	pin(0)
	buf := make([]byte, 8)
	for i := 0; b.Loop(); i++ {
		src := i & 1
		if err := Send(c[src], buf, 1-src, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := Recv(c[1-src], buf, src, 0); err != nil {
			b.Fatal(err)
		}
	}
}
