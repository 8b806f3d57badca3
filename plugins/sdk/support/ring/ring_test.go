package ring

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// pair makes both sides of a region of that size.
func pair(t testing.TB, size int) (a, b *Link) {
	t.Helper()
	file, err := CreateForProcs(size)
	if err != nil {
		t.Fatal(err)
	}
	other, err := unix.Dup(file)
	if err != nil {
		t.Fatal(err)
	}
	socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]*Link{}
	for i, f := range []int{file, other} {
		if ends[i], err = New(f, socks[i], i); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*13 + i>>9)
	}
	return b
}

// drain reads from l until nothing comes.
func drain(t *testing.T, l *Link) (got []byte, err error) {
	t.Helper()
	buf := make([]byte, 1000)
	for {
		n, err := l.Recv([][]byte{buf[:300], buf[300:]})
		if n == 0 {
			return got, err
		}
		got = append(got, buf[:n]...)
	}
}

func TestBytesGoRoundTheRing(t *testing.T) {
	a, b := pair(t, minSize)
	want := pattern(10 * minSize)
	var got []byte
	for rest := want; len(rest) > 0 || len(got) < len(want); {
		k := min(len(rest), 1777)
		n, err := a.Send([][]byte{rest[:k/2], nil, rest[k/2 : k]})
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		if len(rest)%3 == 0 || n == 0 {
			more, err := drain(t, b)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, more...)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes are not those that were sent")
	}
}

func TestFullRingTakesNoMore(t *testing.T) {
	a, b := pair(t, minSize)
	if n, err := a.Send([][]byte{pattern(minSize + 1)}); n != minSize || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := a.Send([][]byte{{1}}); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if a.Arm(link.Writable) || ready(t, a, unix.POLLOUT) {
		t.Error("a full ring is writable")
	}
	if got, _ := drain(t, b); len(got) != minSize {
		t.Errorf("%d bytes", len(got))
	}
	if !a.Arm(link.Writable) {
		t.Error("an empty ring is not writable")
	}
}

func ready(t *testing.T, l *Link, events int16) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(l.Handle()), Events: events}}
	n, err := unix.Poll(fds, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func TestSleeperIsWokenOnce(t *testing.T) {
	a, b := pair(t, minSize)
	if b.Arm(link.Readable) {
		t.Fatal("there is something to read")
	}
	for range 3 {
		if _, err := a.Send([][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if !ready(t, b, unix.POLLIN) {
		t.Fatal("the sleeper was not woken")
	}
	var rung [8]byte
	if n, _ := unix.Read(b.sock, rung[:]); n != 1 {
		t.Errorf("%d bytes for one sleep", n)
	}
	if !b.Arm(link.Readable) {
		t.Error("there is something, and it may sleep")
	}
}

func TestWriterIsWokenWhenAQuarterIsFree(t *testing.T) {
	a, b := pair(t, minSize)
	if _, err := a.Send([][]byte{pattern(minSize)}); err != nil {
		t.Fatal(err)
	}
	if a.Arm(link.Writable) {
		t.Fatal("a full ring is writable")
	}
	for read := 0; read < minSize/2; {
		n, err := b.Recv([][]byte{make([]byte, 256)})
		if err != nil {
			t.Fatal(err)
		}
		read += n
		if ready(t, a, unix.POLLOUT) != (read > minSize/4) && read != minSize/4+256 {
			t.Errorf("after %d bytes: woken %v", read, ready(t, a, unix.POLLOUT))
		}
	}
}

func TestEndComesAfterTheBytes(t *testing.T) {
	a, b := pair(t, minSize)
	a.Send([][]byte{pattern(100)})
	a.CloseSend()
	if !b.Arm(link.Readable) {
		t.Error("bytes and an end are nothing to read")
	}
	if got, err := drain(t, b); len(got) != 100 || err != io.EOF {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := a.Send([][]byte{{1}}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("sent after the end: %v", err)
	}
	if n, err := b.Send([][]byte{{1}}); n != 1 || err != nil {
		t.Errorf("the other direction: %d, %v", n, err)
	}
}

func TestClosedPeer(t *testing.T) {
	a, b := pair(t, minSize)
	a.Send([][]byte{pattern(100)})
	a.Close()
	if !ready(t, b, unix.POLLIN) {
		t.Error("nobody wakes the other side")
	}
	if got, err := drain(t, b); len(got) != 100 || err != io.EOF {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := b.Send([][]byte{{1}}); !errors.Is(err, link.ErrBroken) {
		t.Errorf("sent to nobody: %v", err)
	}
}

// TestDeadPeer: a process that dies closes its socket and says nothing in memory.
func TestDeadPeer(t *testing.T) {
	a, b := pair(t, minSize)
	a.Send([][]byte{pattern(100)})
	if b.Arm(link.Readable) != true {
		t.Fatal("nothing to read")
	}
	unix.Shutdown(a.sock, unix.SHUT_RDWR)
	got, err := drain(t, b)
	for i := 0; err == nil && i < 2*lookEvery; i++ { // it looks at the socket every lookEvery calls
		_, err = drain(t, b)
	}
	if len(got) != 100 || !errors.Is(err, link.ErrBroken) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestHostileNumbers(t *testing.T) {
	for name, lie := range map[string]func(l *Link){
		"head too far": func(l *Link) { l.in.b.head.Store(l.in.tail + minSize + 1) },
		"head behind":  func(l *Link) { l.in.b.head.Store(l.in.tail - 1) },
		"tail too far": func(l *Link) { l.out.b.tail.Store(l.out.head + 1) },
		"tail behind":  func(l *Link) { l.out.b.tail.Store(l.out.tail - 1) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, minSize)
			a.Send([][]byte{pattern(minSize)})
			b.Send([][]byte{pattern(minSize)})
			drain(t, a)
			drain(t, b)
			a.Send([][]byte{pattern(minSize)})
			lie(a)
			_, recvErr := a.Recv([][]byte{make([]byte, 10)})
			_, sendErr := a.Send([][]byte{make([]byte, 10)})
			if err := errors.Join(recvErr, sendErr); !errors.Is(err, link.ErrBroken) || !errors.Is(err, ErrRegion) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRegionsThatAreNone(t *testing.T) {
	memfd := func(content []byte, seal int) int {
		fd, err := unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		unix.Ftruncate(fd, int64(len(content)))
		unix.Pwrite(fd, content, 0)
		unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal)
		return fd
	}
	good := make([]byte, headerSize+2*minSize)
	copy(good, header(minSize, 0))
	change := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	for name, fd := range map[string]int{
		"unsealed":    memfd(good, 0),
		"short":       memfd(good[:headerSize], seals),
		"no magic":    memfd(change(0, 'x'), seals),
		"version":     memfd(change(atVersion, 9, 9), seals),
		"byte order":  memfd(change(atOrder, 1, 2, 3, 4, 5), seals),
		"size":        memfd(change(atSize, 1), seals),
		"large size":  memfd(change(atSize, 0, 0, 0, 0x10), seals),
		"data offset": memfd(change(atData, 0, 0x20), seals),
		"far offset":  memfd(change(atData, 0, 0, 0, 0, 0, 0, 0, 0xff), seals),
	} {
		socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(socks[1])
		if l, err := New(fd, socks[0], 0); !errors.Is(err, ErrRegion) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	if _, err := Create(5000); !errors.Is(err, ErrRegion) {
		t.Errorf("rings of 5000 bytes: %v", err)
	}
}

func TestDetachedLinkGoesOnElsewhere(t *testing.T) {
	a, b := pair(t, minSize)
	file, err := Create(minSize)
	if err != nil {
		t.Fatal(err)
	}
	_ = a
	_ = b
	other, _ := unix.Dup(file)
	socks, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	x, err := NewDetachable(file, socks[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	y, err := New(other, socks[1], 1)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	x.Send([][]byte{[]byte("one ")})
	f, s, side, err := x.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Send([][]byte{{1}}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("a detached link sends: %v", err)
	}
	z, err := New(f, s, side)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	z.Send([][]byte{[]byte("two")})
	if got, err := drain(t, y); string(got) != "one two" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	a, b := pair(t, minSize)
	head, data := pattern(128), pattern(8)
	out, in := [][]byte{head, data}, [][]byte{make([]byte, 128), make([]byte, 8)}
	if n := testing.AllocsPerRun(1000, func() {
		if n, err := a.Send(out); n != 136 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := b.Recv(in); n != 136 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}

func BenchmarkRing(b *testing.B) {
	x, y := pair(b, DefaultSize)
	out, in := [][]byte{pattern(128), pattern(8)}, [][]byte{make([]byte, 128), make([]byte, 8)}
	for b.Loop() {
		x.Send(out)
		y.Recv(in)
	}
}

// TestEndRightBehindTheBell: one look at the socket finds both the wake-up and the end.
func TestEndRightBehindTheBell(t *testing.T) {
	a, b := pair(t, minSize)
	if b.Arm(link.Readable) {
		t.Fatal("there is something to read")
	}
	a.Send([][]byte{{1}}) // rings
	a.Close()
	if !b.drain() {
		t.Error("the end behind the bell was not seen")
	}
}

// TestBellIsRungAgain: a send that is interrupted is repeated, and one that failed otherwise may
// have left the other side asleep.
func TestBellIsRungAgain(t *testing.T) {
	for _, c := range []struct {
		errs []error
		want bool
	}{
		{[]error{nil}, true}, {[]error{unix.EINTR, unix.EINTR, nil}, true}, {[]error{unix.EAGAIN}, true}, {[]error{unix.EPIPE}, true},
		{[]error{unix.ECONNRESET}, true}, {[]error{unix.EINTR, unix.ENOMEM}, false}, {[]error{unix.ENOBUFS}, false},
	} {
		n := 0
		got := rung(func() error { n++; return c.errs[n-1] })
		if got != c.want || n != len(c.errs) {
			t.Errorf("%v: %v after %d sends", c.errs, got, n)
		}
	}
}
