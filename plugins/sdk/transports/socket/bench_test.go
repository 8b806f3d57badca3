package socket_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// The two kinds of socket that links are made of, as connected pairs.
var kinds = []struct {
	name string
	pair func(testing.TB) (a, b *socket.Link)
}{
	{"tcp", tcpPair},
	{"unix", unixPair},
}

func tcpPair(t testing.TB) (a, b *socket.Link) {
	return netPair(t, "tcp", "127.0.0.1:0")
}

func unixPair(t testing.TB) (a, b *socket.Link) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	return netPair(t, "unix", filepath.Join(dir, "s"))
}

func netPair(t testing.TB, network, at string) (a, b *socket.Link) {
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial(network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if a, err = socket.FromConn(dialled.(socket.Conn)); err != nil {
		t.Fatal(err)
	}
	if b, err = socket.FromConn(accepted.(socket.Conn)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// BenchmarkPingPong is a round trip between two threads that poll.
func BenchmarkPingPong(b *testing.B) {
	for _, k := range kinds {
		for _, sizes := range [][]int{{8}, {128, 8}} {
			b.Run(fmt.Sprintf("%s/%v", k.name, sizes), func(b *testing.B) {
				near, far := k.pair(b)
				done := make(chan struct{})
				go func() {
					defer close(done)
					runtime.LockOSThread()
					buf, size := room(sizes)
					for exactly(far.Recv, buf, size) && exactly(far.Send, buf, size) {
					}
				}()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				buf, size := room(sizes)
				for b.Loop() {
					if !exactly(near.Send, buf, size) || !exactly(near.Recv, buf, size) {
						b.Fatal("broken")
					}
				}
				near.Close()
				<-done
			})
		}
	}
}

func room(sizes []int) (batch [][]byte, size int) {
	for _, n := range sizes {
		batch = append(batch, make([]byte, n))
		size += n
	}
	return batch, size
}

// exactly repeats a call until it moves all of a batch that is small enough for
// the kernel to move at once.
func exactly(move func([][]byte) (int, error), batch [][]byte, size int) bool {
	for {
		n, err := move(batch)
		if err != nil {
			return false
		}
		if n == size {
			return true
		}
	}
}

// BenchmarkRecvEmpty is what one look at a silent link costs.
func BenchmarkRecvEmpty(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			near, _ := k.pair(b)
			buf := [][]byte{make([]byte, 4096)}
			b.ReportAllocs()
			for b.Loop() {
				near.Recv(buf)
			}
		})
	}
}

// BenchmarkStream is one-way traffic in messages of a size, poll(2) when full.
func BenchmarkStream(b *testing.B) {
	for _, k := range kinds {
		for _, size := range []int{4 << 10, 64 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%s/%d", k.name, size), func(b *testing.B) {
				near, far := k.pair(b)
				go func() {
					buf := [][]byte{make([]byte, size)}
					for {
						if n, err := far.Recv(buf); err != nil {
							return
						} else if n == 0 {
							poll(far.Handle(), unix.POLLIN)
						}
					}
				}()
				b.SetBytes(int64(size))
				buf := make([]byte, size)
				one := make([][]byte, 1)
				for b.Loop() {
					for one[0] = buf; len(one[0]) > 0; {
						n, err := near.Send(one)
						if err != nil {
							b.Fatal(err)
						}
						if one[0] = one[0][n:]; n == 0 {
							poll(near.Handle(), unix.POLLOUT)
						}
					}
				}
			})
		}
	}
}

func poll(fd int, events int16) {
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 1000)
}
