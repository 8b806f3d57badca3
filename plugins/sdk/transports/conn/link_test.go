package conn_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// limit is how long a test waits for something before it is called a hang.
const limit = 2 * time.Minute

// await calls until something comes of it.
func await(t testing.TB, l link.Link, want link.Interest, call func() (int, error)) (int, error) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if n, err := call(); n > 0 || err != nil {
			return n, err
		}
		if l.Arm(want) {
			continue
		}
		events := int16(unix.POLLIN)
		if want == link.Writable {
			events = unix.POLLOUT
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 1000)
	}
	t.Fatal("nothing happens on the link")
	return 0, nil
}

func recv(t testing.TB, l link.Link, b []byte) (int, error) {
	t.Helper()
	return await(t, l, link.Readable, func() (int, error) { return l.Recv([][]byte{b}) })
}

// watched is a connection that tells what was done to it.
type watched struct {
	transports.Conn
	reads, closes, breaks atomic.Int32
	fail                  chan error // what Read reports instead
}

func watch(t *testing.T) (*watched, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	w := &watched{Conn: conn.Framed(a), fail: make(chan error, 1)}
	t.Cleanup(func() { a.Close(); b.Close() })
	return w, b
}

func (w *watched) Read(b []byte) (int, error) {
	w.reads.Add(1)
	n, err := w.Conn.Read(b)
	select {
	case err := <-w.fail:
		return 0, err
	default:
		return n, err
	}
}

func (w *watched) Break() { w.breaks.Add(1) }

func (w *watched) Close() error {
	w.closes.Add(1)
	return w.Conn.Close()
}

// A link whose connection is detached before the first use has not touched it.
func TestDetach(t *testing.T) {
	w, far := watch(t)
	l := conn.New(w)
	_ = l.Limits()
	c, err := l.Detach()
	if err != nil || c != transports.Conn(w) {
		t.Fatal(c, err)
	}
	if w.reads.Load() != 0 || w.closes.Load() != 0 {
		t.Error("the connection was read or closed")
	}
	if _, err := l.Send([][]byte{{1}}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("after Detach: %v", err)
	}
	if _, err := l.Detach(); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Detach again: %v", err)
	}
	if err := l.Close(); err != nil || w.closes.Load() != 0 {
		t.Error("Close has closed what belongs to somebody else", err)
	}
	go func() { _, _ = c.Write([]byte("x")); _ = c.Close() }()
	if b, err := io.ReadAll(far); err != nil || string(b) != "\x00\x00\x00\x01x" {
		t.Errorf("%q, %v", b, err)
	}
}

// Detach fails once the link was used, as bytes may be under way.
func TestDetachAfterUse(t *testing.T) {
	w, far := watch(t)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	l := conn.New(w)
	if _, err := l.Recv([][]byte{make([]byte, 1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Detach(); !errors.Is(err, conn.ErrUsed) {
		t.Errorf("%v", err)
	}
	l.Close()
	<-l.Done()
	if w.closes.Load() == 0 {
		t.Error("the connection is open")
	}
}

// A link that was never used closes its connection.
func TestCloseUnused(t *testing.T) {
	w, _ := watch(t)
	l := conn.New(w)
	l.Close()
	<-l.Done()
	if w.closes.Load() != 1 {
		t.Errorf("closed %d times", w.closes.Load())
	}
}

// What the connection fails with is what the link reports, both ways, and the
// connection is told that bytes were lost.
func TestFailureIsPassedOn(t *testing.T) {
	w, far := watch(t)
	l := conn.New(w)
	defer l.Close()
	if _, err := l.Recv([][]byte{make([]byte, 1)}); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the cable was cut")
	w.fail <- cause
	go func() { _, _ = far.Write([]byte{0, 0, 0, 1, 'x'}) }()
	_, err := recv(t, l, make([]byte, 10))
	if !errors.Is(err, link.ErrBroken) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "from the connection") {
		t.Errorf("Recv: %v", err)
	}
	_, err = await(t, l, link.Writable, func() (int, error) { return l.Send([][]byte{{1}}) })
	if !errors.Is(err, link.ErrBroken) || !errors.Is(err, cause) {
		t.Errorf("Send: %v", err)
	}
	<-l.Done()
	if w.breaks.Load() != 1 {
		t.Errorf("broken %d times", w.breaks.Load())
	}
}

// Bytes that were sent before Close arrive, with the end behind them.
func TestCloseFlushes(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn, bool) transports.Conn{"tcp": plain, "tls": secure, "framed": framed} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, wrap)
			const size = 400 << 10
			n, err := a.Send([][]byte{make([]byte, size)})
			if n != size || err != nil {
				t.Fatal(n, err)
			}
			a.Close()
			got, buf := 0, make([]byte, 64<<10)
			for err == nil {
				n, err = recv(t, b, buf)
				got += n
			}
			if got != size || err != io.EOF {
				t.Errorf("%d bytes, then %v", got, err)
			}
		})
	}
}

// both is a connection that fails if it is read or written by calls that wait.
type both struct {
	*socket.Link
	transports.Conn
}

var errWaits = errors.New("a call that waits")

func (b both) Read([]byte) (int, error)  { return 0, errWaits }
func (b both) Write([]byte) (int, error) { return 0, errWaits }
func (b both) Close() error              { return errors.Join(b.Link.Close(), b.Conn.Close()) }

// direct has a socket read and written without waiting.
func direct(t *testing.T) func(c net.Conn, _ bool) transports.Conn {
	return func(c net.Conn, _ bool) transports.Conn {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		copied := -1
		if err := errors.Join(raw.Control(func(fd uintptr) { copied, err = unix.Dup(int(fd)) }), err); err != nil {
			t.Fatal(err)
		}
		l, err := socket.New(copied, nil)
		if err != nil {
			t.Fatal(err)
		}
		return both{l, c.(*net.TCPConn)}
	}
}

// A connection that can be polled is not read and written by calls that wait.
func TestLinkPollsItsConnection(t *testing.T) {
	a, b := pair(t, direct(t))
	for _, way := range [][2]link.Link{{a, b}, {b, a}} {
		if n, err := way[0].Send([][]byte{{1, 2}}); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := recv(t, way[1], make([]byte, 10)); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
}
