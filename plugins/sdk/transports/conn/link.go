package conn

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// ErrUsed is returned by Detach after the link was used: bytes may be on their way between
// it and its connection.
var ErrUsed = errors.New("link was used before it is handed on")

var _ transports.Piped = (*Link)(nil)

// Link is a link over a connection. It implements transports.Piped.
type Link struct {
	conn transports.Conn
	use  atomic.Pointer[use] // from the first use to Close

	mu     sync.Mutex
	closed bool
	failed error // why there is no ring
	done   chan struct{}
}

// use is what a link needs once it is used in this process.
type use struct {
	*ring.Link
	pump *Pump
}

// New makes a link of a connection and owns it. It reads and writes nothing before the link
// is used.
func New(c transports.Conn) *Link { return &Link{conn: c, done: make(chan struct{})} }

// RemoteAddr returns the peer's address.
func (l *Link) RemoteAddr() net.Addr { return l.conn.RemoteAddr() }

// Detach gives up the connection, if the link was not used.
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

// open returns the ring and the pump of the link. The first call makes them.
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
	pump, region, sock, err := l.newPump()
	var near *ring.Link
	if err == nil {
		if near, err = ring.New(region, sock, 1); err != nil {
			pump.Close()
		}
	}
	if err != nil {
		Break(l.conn)
		l.failed = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, l.failed
	}
	u := &use{near, pump}
	l.use.Store(u)
	go func() {
		defer close(l.done)
		_ = u.pump.Run() // Err returns it
	}()
	return u, nil
}

// newPump makes a ring, and the pump that passes bytes between its side 0 and the connection.
func (l *Link) newPump() (p *Pump, region, sock int, err error) {
	if direct, ok := l.conn.(Direct); ok {
		return NewRelay(ring.DefaultSize, direct)
	}
	side, region, sock, err := NearRing(ring.DefaultSize)
	if err != nil {
		return nil, -1, -1, err
	}
	return NewPump(side, l.conn), region, sock, nil
}

// Send copies into the ring as much as it has room for.
func (l *Link) Send(batch [][]byte) (int, error) {
	u, err := l.open()
	if err != nil {
		return 0, err
	}
	n, err := u.Send(batch)
	return n, u.explain(err)
}

// Recv copies what is in the ring.
func (l *Link) Recv(batch [][]byte) (int, error) {
	u, err := l.open()
	if err != nil {
		return 0, err
	}
	n, err := u.Recv(batch)
	return n, u.explain(err)
}

// explain replaces an error of the ring by the connection's failure, which has caused it.
// Every call returns the same error.
func (u *use) explain(err error) error {
	if err == nil || !errors.Is(err, link.ErrBroken) || u.pump.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", link.ErrBroken, u.pump.Err())
}

// Handle returns the ring's socket, or NoHandle after Close.
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

// Limits implements link.Link. The bytes go through a ring of this size, whatever is behind it.
func (l *Link) Limits() link.Limits { return link.Limits{Stream: ring.DefaultSize, Memory: true} }

// CloseSend ends this side's bytes.
func (l *Link) CloseSend() error {
	u, err := l.open()
	if err != nil {
		return err
	}
	return u.CloseSend()
}

// Close ends both directions. Bytes that were sent are written to the connection in the
// background, for at most some seconds.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	u := l.use.Swap(nil) // so that the garbage collector can free it earlier
	if u == nil {
		if l.failed == nil {
			_ = l.conn.Close()
		}
		close(l.done)
	} else {
		_ = u.Close()
		_ = l.conn.SetWriteDeadline(time.Now().Add(linger))
	}
	l.conn = nil // freed early, too: TLS has much memory
	return nil
}

// Done returns a channel that is closed when the connection is, some time after Close.
func (l *Link) Done() <-chan struct{} { return l.done }
