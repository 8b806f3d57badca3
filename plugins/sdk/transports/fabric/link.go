package fabric

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// Link is a link over a connection of a fabric. A plugin opens it by data plane "rdma", or by "ring"
// for nodes that do not know that; it can also be used in its own process.
type Link struct {
	conn  Conn
	cache *Cache
	use   atomic.Pointer[use] // from the first use to Close

	mu     sync.Mutex
	closed bool
	linger int // 0: Close breaks the link
	failed error
}

// use is what a link needs once it is used in this process.
type use struct {
	*rdma.Link
	pump *conn.Pump
}

var _ conn.Direct = (*Link)(nil)

// New makes a link of a connection, which it owns. cache is that of the transport.
func New(c Conn, cache *Cache) *Link { return &Link{conn: c, cache: cache, linger: -1} }

// Detach gives up the connection, if the link was not used.
func (l *Link) Detach() (Conn, *Cache, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, link.ErrClosed
	case l.use.Load() != nil || l.failed != nil:
		return nil, nil, conn.ErrUsed
	}
	l.closed = true
	return l.conn, l.cache, nil
}

// open returns what the link needs in this process. The first call makes it.
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
	pump, fds, err := NewPump(l.conn, l.cache)
	var near *rdma.Link
	if err == nil {
		if near, err = rdma.New(fds[0], fds[1], fds[2], nil); err != nil {
			pump.Close()
		}
	}
	if err != nil {
		l.failed = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, l.failed
	}
	u := &use{near, pump}
	l.use.Store(u)
	go func() { _ = u.pump.Run() }() // Err returns it
	return u, nil
}

// explain replaces the error of a broken link by its cause.
func (u *use) explain(err error) error {
	if err == nil || !errors.Is(err, link.ErrBroken) || u.pump.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", link.ErrBroken, u.pump.Err())
}

// Send copies the bytes that it accepts.
func (l *Link) Send(batch [][]byte) (int, error) {
	u, err := l.open()
	if err != nil {
		return 0, err
	}
	n, err := u.Send(batch)
	return n, u.explain(err)
}

// Recv copies what has come.
func (l *Link) Recv(batch [][]byte) (int, error) {
	u, err := l.open()
	if err != nil {
		return 0, err
	}
	n, err := u.Recv(batch)
	return n, u.explain(err)
}

// Handle returns the descriptor to wait at, or link.NoHandle after Close.
func (l *Link) Handle() int {
	u, err := l.open()
	if err != nil {
		return link.NoHandle
	}
	return u.Handle()
}

// Arm announces that the caller is about to sleep on Handle.
func (l *Link) Arm(want link.Interest) bool {
	u, err := l.open()
	return err != nil || u.Arm(want)
}

// Limits returns the limits of a link in the process that uses it.
func (l *Link) Limits() link.Limits {
	s := shapeFor(l.conn.Limits())
	return link.Limits{Stream: s.Slots * s.SlotSize, Memory: true}
}

// CloseSend ends this side's messages.
func (l *Link) CloseSend() error {
	u, err := l.open()
	if err != nil {
		return err
	}
	return u.explain(u.CloseSend())
}

// SetLinger with 0 has Close break the link, so that the peer sees a failure. It makes the link a
// conn.Direct.
func (l *Link) SetLinger(seconds int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.linger = seconds
	return nil
}

// Close ends both directions. What was sent, and ended with CloseSend, is passed on in the
// background.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	u := l.use.Swap(nil)
	switch {
	case u == nil && l.failed == nil:
		discard(l.conn) // nothing was sent on it, not even the end
	case u != nil && l.linger == 0:
		u.pump.Close()
		_ = u.Close()
	case u != nil:
		_ = u.Close()
	}
	return nil
}

// Planes are the data planes by which a Link can be opened, for Capabilities.
func Planes() []transports.DataPlane {
	return []transports.DataPlane{transports.PlaneRDMA, transports.PlaneRing}
}
