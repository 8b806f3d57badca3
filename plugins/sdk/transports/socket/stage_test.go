package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// streaming makes a link that sends by reference from now on.
func streaming(t *testing.T) (near, far *Link) {
	t.Helper()
	near, fd := newLink(t)
	far, err := New(dup(t, fd), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	near.stage.ahead = 2 * oneWay
	return near, far
}

func dup(t *testing.T, fd int) int {
	t.Helper()
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// pattern gives size bytes of which no part occurs twice.
func pattern(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// needStage skips where the kernel or a sandbox does not let pages be sent.
func needStage(t *testing.T, l *Link) {
	t.Helper()
	if l.stage.refused || l.stage.mem == nil {
		t.Skip("NOT RUN: the kernel does not send by reference: leave the sandbox, if there is one")
	}
}

// A stream goes through the stage, whose slots are written many times, and arrives
// unchanged, however sends and receives cut it.
func TestStreamByReference(t *testing.T) {
	near, far := streaming(t)
	want := pattern(1, 16<<20)
	got := make([]byte, 0, len(want))
	random := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 3*slotSize)
	for rest := want; len(got) < len(want); {
		size := min(len(rest), random.IntN(5*slotSize))
		cut := random.IntN(size + 1)
		n, err := near.Send([][]byte{rest[:cut], nil, rest[cut:size]})
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		k, err := far.Recv([][]byte{buf[:random.IntN(len(buf))]})
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, buf[:k]...); !bytes.Equal(got[len(got)-k:], want[len(got)-k:len(got)]) {
			t.Fatalf("wrong bytes between %d and %d", len(got)-k, len(got))
		}
	}
	needStage(t, near)
	if near.stage.next == 0 && near.stage.ends[0] == 0 {
		t.Error("nothing was sent from the stage")
	}
}

// Slots that the peer has not read are not written over, although the caller writes over
// its own memory at once and the socket has room for more than the stage.
func TestUnreadSlotsStay(t *testing.T) {
	for _, buffer := range []int{0, slotSize, 16 * slotSize} {
		near, far := streaming(t)
		if err := SetBuffers(int(near.fd.Load()), buffer, 0); err != nil {
			t.Fatal(err)
		}
		if near.stage.wants(int(near.fd.Load()), slotSize) && buffer > slotSize {
			whole := near.stage.mem
			near.stage.mem = whole[:3*slotSize]
			t.Cleanup(func() { near.stage.mem = whole })
		}
		var want []byte
		for seed := uint64(0); ; seed++ {
			b := pattern(seed, slotSize+slotSize/2)
			n, err := near.Send([][]byte{b})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, b[:n]...)
			clear(b)
			if n == 0 {
				break
			}
		}
		if len(want) < near.Limits().Stream/2 {
			t.Errorf("full after %d bytes", len(want))
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(reader{far}, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("buffer %d: %d bytes were changed after they were sent", buffer, len(want))
		}
	}
}

type reader struct{ l *Link }

func (r reader) Read(b []byte) (int, error) { return r.l.Recv([][]byte{b}) }

// poll(2) does not call a link writable that is full, or its owner would not sleep.
func TestFullIsNotWritable(t *testing.T) {
	for _, buffer := range []int{0, slotSize, 2 * slotSize, 16 * slotSize} {
		near, far := streaming(t)
		if err := SetBuffers(int(near.fd.Load()), buffer, 0); err != nil {
			t.Fatal(err)
		}
		big := [][]byte{make([]byte, 64*slotSize)}
		in := [][]byte{make([]byte, 10_000)}
		for range 1000 {
			n, err := near.Send(big)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 && writable(t, near) {
				if n, _ := near.Send(big); n == 0 {
					t.Fatalf("buffer %d: full, and writable", buffer)
				}
			}
			if _, err := far.Recv(in); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func writable(t *testing.T, l *Link) bool {
	t.Helper()
	set := []unix.PollFd{{Fd: int32(l.Handle()), Events: unix.POLLOUT}}
	for {
		_, err := unix.Poll(set, 0)
		if err == nil {
			return set[0].Revents != 0
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

// Only a stream gets a stage: neither a few large messages, nor many small ones, nor as
// much traffic back as forth.
func TestWhatIsAStream(t *testing.T) {
	for _, c := range []struct {
		name           string
		size, times    int
		back           int
		stream, memory bool
	}{
		{"two large messages", oneWay / 2, 2, 0, false, false},
		{"large messages", oneWay / 2, 3, 0, true, true},
		{"large messages and answers", oneWay / 2, 8, 8, true, true},
		{"small messages", slotSize - 1, 100, 0, false, false},
		{"there and back", oneWay / 2, 100, oneWay / 2, false, false},
	} {
		l, _ := newLink(t)
		var stream bool
		for range c.times {
			stream = l.stage.wants(int(l.fd.Load()), c.size)
			l.stage.sent += uint64(c.size)
			if c.back >= counted {
				l.stage.received.Add(int64(c.back))
			}
		}
		if l.stage.refused {
			t.Skip("NOT RUN: the kernel does not send by reference: leave the sandbox, if there is one")
		}
		if stream != c.stream || (l.stage.mem != nil) != c.memory {
			t.Errorf("%s: stream %t, memory %t", c.name, stream, l.stage.mem != nil)
		}
	}
}

// A stream that turns into a dialogue no longer counts as one after a few messages.
func TestStreamEnds(t *testing.T) {
	l, _ := newLink(t)
	l.stage.ahead = 2 * oneWay
	for range 2*oneWay/slotSize + 1 {
		l.stage.sent += slotSize
		l.stage.received.Add(slotSize)
		l.stage.wants(int(l.fd.Load()), slotSize)
	}
	if l.stage.wants(int(l.fd.Load()), slotSize) {
		t.Errorf("still ahead by %d", l.stage.ahead)
	}
}

// Without memory to send from, or without the system calls, sending goes on.
func TestStageRefused(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *Link){
		"no stage": func(_ *testing.T, l *Link) { l.stage.refused = true },
		"small buffer": func(t *testing.T, l *Link) {
			if err := SetBuffers(int(l.fd.Load()), 8<<10, 0); err != nil {
				t.Fatal(err)
			}
		},
		"no sendfile": func(t *testing.T, l *Link) {
			if !l.stage.wants(int(l.fd.Load()), slotSize) {
				t.Skip("NOT RUN: the kernel does not send by reference: leave the sandbox, if there is one")
			}
			unix.Close(l.stage.file)
			l.stage.file = dup(t, int(l.fd.Load())) // which sendfile(2) does not read from
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := streaming(t)
			spoil(t, near)
			want := pattern(2, 4*slotSize)
			got := make([]byte, 0, len(want))
			buf := make([]byte, slotSize)
			for rest := want; len(got) < len(want); {
				n, err := near.Send([][]byte{rest})
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
				k, err := far.Recv([][]byte{buf})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, buf[:k]...)
			}
			if !bytes.Equal(got, want) {
				t.Error("wrong bytes")
			}
			if !near.stage.refused {
				t.Error("the stage is still tried")
			}
		})
	}
}

// sendfile(2) knows no MSG_NOSIGNAL.
func TestStageWithoutSIGPIPE(t *testing.T) {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGPIPE, syscall.SIGWINCH)
	defer signal.Stop(signals)
	near, fd := newLink(t)
	near.stage.ahead = 2 * oneWay
	if err := unix.Shutdown(fd, unix.SHUT_RD); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n, err := near.Send([][]byte{make([]byte, 2*slotSize)})
		if n != 0 || !errors.Is(err, link.ErrBroken) || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("Send to nobody gives %d, %v", n, err)
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if sig := <-signals; sig != syscall.SIGWINCH {
		t.Errorf("Send caused the signal %v", sig)
	}
}

// Close and Detach free the stage; what is under way still arrives.
func TestStageReleased(t *testing.T) {
	for name, end := range map[string]func(*Link){
		"close":  func(l *Link) { l.Close() },
		"detach": func(l *Link) { fd, _, _ := l.Detach(); unix.Close(fd) },
	} {
		near, far := streaming(t)
		want := pattern(3, 2*slotSize)
		if n, err := near.Send([][]byte{want}); n != len(want) || err != nil {
			t.Fatal(n, err)
		}
		needStage(t, near)
		file := near.stage.file
		if end(near); near.stage.mem != nil || isOpen(file) {
			t.Errorf("%s leaves the stage", name)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(reader{far}, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: what was under way is lost: %v", name, err)
		}
	}
}

func TestStagedSendAllocatesNothing(t *testing.T) {
	near, far := streaming(t)
	out, in := [][]byte{make([]byte, slotSize)}, [][]byte{make([]byte, slotSize)}
	if n := testing.AllocsPerRun(100, func() {
		if n, err := near.Send(out); n != slotSize || err != nil {
			t.Fatal(n, err)
		}
		if n, err := far.Recv(in); n != slotSize || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	needStage(t, near)
}
