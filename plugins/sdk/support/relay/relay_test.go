package relay_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ transports.Relayed = (*relay.Link)(nil)

func socketPair(t *testing.T) [2]int {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func dup(t *testing.T, fd int) int {
	t.Helper()
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ringLink makes a link and the plugin's side of it, and a descriptor of their
// region.
func ringLink(t *testing.T) (l *relay.Link, plugin *ring.Link, region int) {
	t.Helper()
	region, err := ring.Create(4096)
	if err != nil {
		t.Fatal(err)
	}
	socks := socketPair(t)
	if plugin, err = ring.New(dup(t, region), socks[0], 0); err != nil {
		t.Fatal(err)
	}
	if l, err = relay.NewRing(dup(t, region), socks[1], 1, "quic"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); plugin.Close(); unix.Close(region) })
	return l, plugin, region
}

// streamLink makes a link, and the plugin's socket and pipe.
func streamLink(t *testing.T) (l *relay.Link, sock, tail int) {
	t.Helper()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	socks := socketPair(t)
	l, err := relay.NewStream(socks[1], pipe[0], transports.PlaneStream, "quic")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, socks[0], pipe[1]
}

// broken expects an error that names the plugin and its data plane, again and again,
// and link.ErrClosed after Close.
func broken(t *testing.T, l *relay.Link, call func([][]byte) (int, error), words ...string) {
	t.Helper()
	b := make([]byte, 64<<10)
	n, first := 1, error(nil)
	for tries := 0; n > 0 && tries < 100; tries++ {
		n, first = call([][]byte{b})
	}
	if !errors.Is(first, link.ErrBroken) {
		t.Fatalf("%d, %v", n, first)
	}
	for _, w := range append(words, "transport quic", string(l.Plane())) {
		if !strings.Contains(first.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, first)
		}
	}
	if n, again := call([][]byte{b}); n != 0 || again == nil || again.Error() != first.Error() {
		t.Errorf("first %v, then %d, %v", first, n, again)
	}
	l.Close()
	if n, err := call([][]byte{b}); n != 0 || !errors.Is(err, link.ErrClosed) {
		t.Errorf("after Close: %d, %v", n, err)
	}
}

// The plugin's death breaks the link, after what had come before it.
func TestPluginDies(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) (l *relay.Link, send func(string), die func()){
		"ring": func(t *testing.T) (*relay.Link, func(string), func()) {
			l, plugin, _ := ringLink(t)
			return l, func(s string) { _, _ = plugin.Send([][]byte{[]byte(s)}) }, plugin.Break
		},
		"stream": func(t *testing.T) (*relay.Link, func(string), func()) {
			l, sock, tail := streamLink(t)
			return l, func(s string) { _, _ = unix.Write(sock, []byte(s)) }, func() { unix.Close(sock); unix.Close(tail) }
		},
	} {
		t.Run(name+" receiving", func(t *testing.T) {
			l, send, die := make(t)
			send("last words")
			die()
			got := [20]byte{}
			if n, err := l.Recv([][]byte{got[:]}); string(got[:n]) != "last words" || err != nil {
				t.Fatalf("%q, %v", got[:n], err)
			}
			for !l.Arm(link.Readable) && !readable(l) {
			}
			broken(t, l, l.Recv, "has died or has lost the connection")
		})
		t.Run(name+" sending", func(t *testing.T) {
			l, _, die := make(t)
			die()
			broken(t, l, l.Send, "has died or has lost the connection")
		})
	}
}

func readable(l link.Link) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: unix.POLLIN}}, 1000)
	return n > 0
}

// A plugin that was killed leaves no trace in the ring; a proc that only sends must notice
// it all the same.
func TestSilentDeathBreaksSends(t *testing.T) {
	region, err := ring.Create(4096)
	if err != nil {
		t.Fatal(err)
	}
	socks := socketPair(t)
	l, err := relay.NewRing(region, socks[1], 1, "quic")
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(socks[0])
	broken(t, l, l.Send, "has died or has lost the connection")
}

// After an end that the peer meant, the plugin closing everything is no failure.
func TestMeantEnd(t *testing.T) {
	l, plugin, _ := ringLink(t)
	if err := plugin.CloseSend(); err != nil {
		t.Fatal(err)
	}
	plugin.Break()
	s, sock, tail := streamLink(t)
	if _, err := unix.Write(tail, []byte{0}); err != nil {
		t.Fatal(err)
	}
	unix.Close(tail)
	unix.Close(sock)
	for _, x := range []*relay.Link{l, s} {
		for range 2 {
			if n, err := x.Recv([][]byte{make([]byte, 1)}); n != 0 || err != io.EOF {
				t.Errorf("%s: %d, %v", x.Plane(), n, err)
			}
		}
	}
}

// Invalid numbers that a plugin writes into the ring's control block end the link, and do
// no more.
func TestHostilePlugin(t *testing.T) {
	for name, c := range map[string]struct {
		offset int
		call   func(*relay.Link) func([][]byte) (int, error)
	}{
		"head": {1024, func(l *relay.Link) func([][]byte) (int, error) { return l.Recv }},
		"tail": {2048 + 128, func(l *relay.Link) func([][]byte) (int, error) { return l.Send }},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, region := ringLink(t)
			if _, err := unix.Pwrite(region, []byte{0, 0, 0, 0, 0, 0, 0, 0x77}, int64(c.offset)); err != nil {
				t.Fatal(err)
			}
			broken(t, l, c.call(l), "broken the rules")
		})
	}
}

// The second descriptor of a stream is read without waiting: it must be a pipe.
func TestTailMustBeAPipe(t *testing.T) {
	socks, other := socketPair(t), socketPair(t)
	defer unix.Close(socks[0])
	defer unix.Close(other[0])
	if _, err := relay.NewStream(socks[1], other[1], transports.PlaneStream, "quic"); err == nil || !strings.Contains(err.Error(), "is no pipe") {
		t.Errorf("%v", err)
	}
	for _, fd := range []int{socks[1], other[1]} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("descriptor %d was left open: %v", fd, err)
		}
	}
}

// The node detaches a link, the proc goes on with it.
func TestDetach(t *testing.T) {
	l, plugin, _ := ringLink(t)
	if _, err := plugin.Send([][]byte{[]byte("first second")}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 6)
	if _, err := l.Recv([][]byte{got}); err != nil {
		t.Fatal(err)
	}
	fds, side, err := l.Detach()
	if err != nil || len(fds) != 2 || side != 1 {
		t.Fatal(fds, side, err)
	}
	if _, err := l.Send([][]byte{got}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("after Detach: %v", err)
	}
	next, err := relay.NewRing(fds[0], fds[1], side, "quic")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := next.Recv([][]byte{got}); string(got[:n]) != "second" || err != nil {
		t.Errorf("%q, %v", got[:n], err)
	}
	next.Close()

	s, sock, tail := streamLink(t)
	if fds, _, err = s.Detach(); err != nil {
		t.Fatal(err)
	}
	then, err := relay.NewStream(fds[0], fds[1], s.Plane(), "quic")
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(sock)
	unix.Close(tail)
	broken(t, then, then.Recv)
}

// A link that cannot be given up, since a message was received in part, is closed.
func TestDetachRefused(t *testing.T) {
	p, fds, err := rdma.NewPort(rdma.DefaultShape)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := relay.NewRDMA(fds[0], fds[1], fds[2], "ib", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := p.Arrive(copy(p.ReceiveSlot(), "ab")); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Recv([][]byte{make([]byte, 1)}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, _, err := l.Detach(); !errors.Is(err, rdma.ErrRules) || p.Alive() {
		t.Fatalf("%v; the other side is alive: %v", err, p.Alive())
	}
}
