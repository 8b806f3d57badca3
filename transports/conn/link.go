package conn

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/support/ring"
)

// ErrUsed is reported by Detach once the link was used: bytes may be on their way
// between it and its connection.
var ErrUsed = errors.New("link was used before it is handed on")

var _ transports.Piped = (*Link)(nil)

// Link is a link over a connection. It fulfils transports.Piped.
type Link struct {
	conn transports.Conn
	use  atomic.Pointer[use] // from the first use to Close

	mu     sync.Mutex
	closed bool
	failed error // why there is no ring
	done   chan struct{}
}

// use is what a link has that is not just handed on.
type use struct {
	*ring.Link
	pump *Pump
}

// New makes a link of a connection, and owns it. Nothing is read or written before
// the link is used.
func New(c transports.Conn) *Link { return &Link{conn: c, done: make(chan struct{})} }

// Detach gives the connection up, as long as the link was not used.
func (l *Link) Detach() (transports.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, link.ErrClosed
	case l.use.Load() != nil || l.failed != nil:
		return nil, ErrUsed
	}
	l.closed = true
	close(l.done)
	return l.conn, nil
}

// open returns what the link works with, and makes it for the first caller.
func (l *Link) open() (*use, error) {
	if u := l.use.Load(); u != nil {
		return u, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.use.Load() != nil:
		return l.use.Load(), nil
	case l.closed:
		return nil, link.ErrClosed
	case l.failed != nil:
		return nil, l.failed
	}
	side, region, sock, err := NearRing(ring.DefaultSize)
	var near *ring.Link
	if err == nil {
		if near, err = ring.New(region, sock, 1); err != nil {
			side.Break()
		}
	}
	if err != nil {
		Break(l.conn)
		l.failed = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, l.failed
	}
	u := &use{near, NewPump(side, l.conn)}
	l.use.Store(u)
	go func() {
		defer close(l.done)
		_ = u.pump.Run() // Err has it
	}()
	return u, nil
}

// Send copies into the ring what there is room for.
func (l *Link) Send(batch [][]byte) (int, error) {
	u, err := l.open()
	if err != nil {
		return 0, err
	}
	n, err := u.Send(batch)
	return n, u.explain(err)
}

// Recv copies out of the ring what is there.
func (l *Link) Recv(batch [][]byte) (int, error) {
	u, err := l.open()
	if err != nil {
		return 0, err
	}
	n, err := u.Recv(batch)
	return n, u.explain(err)
}

// explain returns the connection's failure instead of the ring's, which follows from
// it. It is the same for each call.
func (u *use) explain(err error) error {
	if err == nil || !errors.Is(err, link.ErrBroken) || u.pump.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", link.ErrBroken, u.pump.Err())
}

// Handle is the ring's socket, or NoHandle after Close.
func (l *Link) Handle() int {
	u, err := l.open()
	if err != nil {
		return link.NoHandle
	}
	return u.Handle()
}

// Arm says that the caller is about to sleep on Handle.
func (l *Link) Arm(want link.Interest) bool {
	u, err := l.open()
	return err != nil || u.Arm(want)
}

// Limits are those of a ring.
func (l *Link) Limits() link.Limits { return link.Limits{Stream: ring.DefaultSize, Memory: true} }

// CloseSend ends this side's bytes.
func (l *Link) CloseSend() error {
	u, err := l.open()
	if err != nil {
		return err
	}
	return u.CloseSend()
}

// Close ends both directions. What was sent is written to the connection in the
// background, for some seconds at most.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	u := l.use.Swap(nil) // its memory should not wait for ours
	if u == nil {
		if l.failed == nil {
			_ = l.conn.Close()
		}
		close(l.done)
		return nil
	}
	_ = u.Close()
	_ = l.conn.SetWriteDeadline(time.Now().Add(linger))
	return nil
}

// Done is closed when the connection is, some time after Close.
func (l *Link) Done() <-chan struct{} { return l.done }
