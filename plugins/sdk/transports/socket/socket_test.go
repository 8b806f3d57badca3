package socket_test

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

var _ transports.Socket = (*socket.Link)(nil)

// pairFDs is a connected pair of descriptors that nobody has prepared.
func pairFDs(t testing.TB) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], fds[1]
}

func adopt(t testing.TB, fd int, preread string) *socket.Link {
	t.Helper()
	l, err := socket.New(fd, []byte(preread))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// await polls until the link's descriptor has one of events, or an error.
func await(t testing.TB, l link.Link, events int16) {
	t.Helper()
	for range 100 {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 500)
		if n > 0 {
			return
		}
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
	t.Fatal("nothing happens on the socket")
}

func open(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func TestNewRefusesWhatIsNoConnectedStream(t *testing.T) {
	cases := map[string]struct {
		fd   func() (int, error)
		want string
	}{
		"file":        {func() (int, error) { return unix.Open("/dev/null", unix.O_RDWR, 0) }, "no socket"},
		"datagrams":   {func() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0) }, "no stream"},
		"unconnected": {func() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) }, "not connected"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fd, err := c.fd()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := socket.New(fd, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if open(fd) {
				t.Error("New owns the descriptor and has left it open")
			}
		})
	}
}

func TestNewPreparesDescriptor(t *testing.T) {
	a, b := pairFDs(t)
	defer unix.Close(b)
	adopt(t, a, "")
	if f, err := unix.FcntlInt(uintptr(a), unix.F_GETFL, 0); err != nil || f&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %#x, %v: O_NONBLOCK is not set", f, err)
	}
	if f, err := unix.FcntlInt(uintptr(a), unix.F_GETFD, 0); err != nil || f&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: CLOEXEC is not set", f, err)
	}
}

func TestPrereadComesFirst(t *testing.T) {
	a, b := pairFDs(t)
	near, far := adopt(t, a, "before "), adopt(t, b, "")
	if !near.Arm(link.Readable | link.Writable) {
		t.Error("Arm does not tell that bytes are there, and poll(2) cannot know")
	}
	if near.Arm(link.Writable) {
		t.Error("Arm tells a sender about bytes to read")
	}
	if _, err := far.Send([][]byte{[]byte("after")}); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for len(got) < len("before after") {
		buf := make([]byte, 5)
		n, err := near.Recv([][]byte{buf[:2], buf[2:]})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, buf[:n]...)
	}
	if string(got) != "before after" {
		t.Errorf("received %q", got)
	}
	if near.Arm(link.Readable) {
		t.Error("Arm is still true although the kernel has the rest")
	}
}

func TestDetachReturnsPreread(t *testing.T) {
	a, b := pairFDs(t)
	defer unix.Close(b)
	l := adopt(t, a, "preread")
	if _, err := l.Recv([][]byte{make([]byte, 3)}); err != nil {
		t.Fatal(err)
	}
	fd, preread, err := l.Detach()
	if err != nil || fd != a || string(preread) != "read" {
		t.Errorf("Detach gives %d, %q, %v", fd, preread, err)
	}
	if l.Close(); !open(fd) {
		t.Error("Close has closed a descriptor that was detached")
	}
	unix.Close(fd)
}

// O_NONBLOCK belongs to the open file, which other processes may share.
func TestNeverBlocksWhateverOthersDo(t *testing.T) {
	a, b := pairFDs(t)
	near := adopt(t, a, "")
	adopt(t, b, "")
	dup, err := unix.Dup(a)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dup)
	if err := unix.SetNonblock(dup, false); err != nil {
		t.Fatal(err)
	}
	for name, batch := range map[string][][]byte{
		"one slice": {make([]byte, 100)}, "two slices": {make([]byte, 100), make([]byte, 100)},
		"much": {make([]byte, 1<<20)}, "much in two": {make([]byte, 1<<20), make([]byte, 1)},
	} {
		if n, err := near.Recv(batch); n != 0 || err != nil {
			t.Errorf("%s: Recv gives %d, %v", name, n, err)
		}
	}
	for n := 1; n > 0; { // returns, as all in this test
		if n, err = near.Send([][]byte{make([]byte, 1000), make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoSIGPIPE(t *testing.T) {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGPIPE, syscall.SIGWINCH)
	defer signal.Stop(signals)
	a, b := pairFDs(t)
	l := adopt(t, a, "")
	unix.Close(b)
	for _, batch := range [][][]byte{{{1}}, {{1}, {2}}} {
		if _, err := l.Send(batch); !errors.Is(err, link.ErrBroken) || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("Send to nobody reports %v", err)
		}
	}
	// Signals are delivered in the order of their numbers: a SIGPIPE that the calls caused
	// would come before this one.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if sig := <-signals; sig != syscall.SIGWINCH {
		t.Errorf("Send caused the signal %v", sig)
	}
}

// resetBy makes a TCP pair whose far end resets the connection.
func resetBy(t *testing.T) (near *socket.Link, far string) {
	near, other := tcpPair(t)
	far = strings.TrimPrefix(near.Peer(), "tcp ")
	fd, _, err := other.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	await(t, near, unix.POLLIN)
	return near, far
}

// The kernel reports a reset once, and an end of stream from then on. The link keeps
// reporting the reset.
func TestResetIsNoEndOfStream(t *testing.T) {
	send := func(l *socket.Link) error { _, err := l.Send([][]byte{{1}}); return err }
	recv := func(l *socket.Link) error { _, err := l.Recv([][]byte{{1}}); return err }
	for name, calls := range map[string][]func(*socket.Link) error{
		"send first": {send, recv, recv, send}, "receive first": {recv, send, recv, send},
	} {
		t.Run(name, func(t *testing.T) {
			l, far := resetBy(t)
			for i, call := range calls {
				err := call(l)
				if !errors.Is(err, link.ErrBroken) || !strings.Contains(err.Error(), far) {
					t.Errorf("call %d reports %v, want ErrBroken with the peer %s", i, err, far)
				}
				if again := call(l); again == nil || again.Error() != err.Error() {
					t.Errorf("call %d reports %v, then %v", i, err, again)
				}
			}
		})
	}
}

// What a peer sent before it closed can be read, although sending to it fails.
func TestLastWordsBeforeClose(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			near, far := k.pair(t)
			if _, err := far.Send([][]byte{[]byte("last words")}); err != nil {
				t.Fatal(err)
			}
			far.Close()
			var err error
			for err == nil {
				_, err = near.Send([][]byte{{1}})
			}
			buf := make([]byte, 100)
			if n, err := near.Recv([][]byte{buf}); err != nil || string(buf[:n]) != "last words" {
				t.Errorf("Recv gives %q, %v", buf[:n], err)
			}
			if _, err := near.Recv([][]byte{buf}); err != io.EOF {
				t.Errorf("then it reports %v", err)
			}
		})
	}
}

func TestCloseTouchesItsDescriptorOnce(t *testing.T) {
	a, b := pairFDs(t)
	l := adopt(t, a, "")
	l.Close()
	// The kernel gives the lowest free number: that of a.
	again, err := unix.Dup(b)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(again)
	defer unix.Close(b)
	if again != a {
		t.Skipf("the number %d has gone to somebody else", a)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l.Close()
			l.CloseSend()
			l.Send([][]byte{{1}})
			l.Recv([][]byte{{1}})
		})
	}
	wg.Wait()
	if !open(again) {
		t.Error("a closed link has closed somebody else's descriptor")
	}
	if n, _ := unix.Read(b, make([]byte, 1)); n > 0 {
		t.Error("a closed link has sent on somebody else's descriptor")
	}
}

func TestNoAllocations(t *testing.T) {
	for _, k := range kinds {
		near, far := k.pair(t)
		one := [][]byte{make([]byte, 136)}
		two := [][]byte{make([]byte, 128), make([]byte, 8)}
		for name, batch := range map[string][][]byte{"one slice": one, "two slices": two} {
			if n := testing.AllocsPerRun(100, func() {
				if !exactly(near.Send, batch, 136) || !exactly(far.Recv, batch, 136) {
					t.Error("broken")
				}
				near.Recv(batch) // nothing there
			}); n != 0 {
				t.Errorf("%s, %s: %v allocations per message", k.name, name, n)
			}
		}
	}
}

func TestLongBatchIsOneCall(t *testing.T) {
	near, far := unixPair(t)
	var batch [][]byte
	var want strings.Builder
	for i := range 500 {
		text := strings.Repeat(string(rune('a'+i%26)), i%3)
		batch = append(batch, []byte(text))
		want.WriteString(text)
	}
	if n, err := near.Send(batch); n != want.Len() || err != nil {
		t.Fatalf("Send takes %d of %d bytes, %v", n, want.Len(), err)
	}
	got := make([]byte, want.Len())
	var rooms [][]byte
	for i := range got {
		rooms = append(rooms, got[i:i+1])
	}
	if n, err := far.Recv(rooms); n != want.Len() || err != nil || string(got) != want.String() {
		t.Errorf("Recv gives %d of %d bytes, %v", n, want.Len(), err)
	}
}

func TestPeerNames(t *testing.T) {
	near, far := tcpPair(t)
	if !strings.HasPrefix(near.Peer(), "tcp 127.0.0.1:") || near.Peer() == far.Peer() {
		t.Errorf("TCP peers are %q and %q", near.Peer(), far.Peer())
	}
	near, far = unixPair(t)
	if !strings.HasPrefix(near.Peer(), "unix /") || !strings.HasPrefix(far.Peer(), "unix process ") {
		t.Errorf("Unix peers are %q and %q", near.Peer(), far.Peer())
	}
}
