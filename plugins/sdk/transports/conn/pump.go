package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Near is the side of a Pump that leads to the user of the link: NearRing, NearSocket. One
// goroutine calls Outward and Gone, another Inward and CloseWrite; the other methods may be
// called at any time and repeatedly.
type Near interface {
	// Outward writes the bytes from the user to w, until the user's end of stream.
	Outward(w io.Writer) error

	// Inward passes the bytes of r to the user, until r's end of stream. ErrGone means that the
	// user has closed the link.
	Inward(r io.Reader) error

	// CloseWrite tells the user that the stream has ended.
	CloseWrite() error

	// Gone waits, after Outward, until the user has closed the link. It returns an error if
	// this side was closed meanwhile.
	Gone() error

	// Alive reports whether the user still has the link.
	Alive() bool

	// Break closes this side so that the user's link is broken.
	Break()

	// Close closes this side.
	Close() error
}

// ErrGone is wrapped when the user of a link has closed it, or has died.
var ErrGone = errors.New("the link was closed by its user")

// linger is how long writing the last bytes of a closed link may take.
const linger = 10 * time.Second

// Far is the side of a Pump that leads to the peer: a transports.Conn, or a part of one.
type Far interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Pump passes bytes between the user of a link and its connection, in both directions.
type Pump struct {
	near  nearEnd
	far   farEnd
	pass  func()      // passes bytes until the user has closed the link, or fail was called
	left  atomic.Bool // the user has closed the link, and all bytes were passed on
	once  sync.Once
	cause atomic.Pointer[error]

	ending   func() // called before the connection is closed; may be nil
	ends     sync.Once
	patience *time.Timer // ends a pump whose user has closed the link; used by Run only
}

// nearEnd and farEnd are what a pump needs of its sides, except for passing bytes.
type (
	nearEnd interface {
		Alive() bool
		Break()
		Close() error
	}
	farEnd interface {
		io.Closer
		CloseWrite() error
	}
)

// NewPump makes a pump, which owns both sides. It sleeps when there is nothing to do.
func NewPump(near Near, far Far) *Pump {
	p := &Pump{near: near, far: far}
	p.pass = func() {
		var wg sync.WaitGroup
		wg.Go(func() { p.fail(p.outward(near, far)) })
		p.fail(p.inward(near, far))
		wg.Wait()
	}
	return p
}

// OnEnd sets f to be called once, before the connection is closed. OnEnd must be called before Run.
func (p *Pump) OnEnd(f func()) { p.ending = f }

func (p *Pump) closing() {
	if p.ending != nil {
		p.ends.Do(p.ending)
	}
}

// Run passes bytes until the user has closed the link or something has failed, and then
// closes both sides. The error says what failed; both ends then see a broken link.
func (p *Pump) Run() error {
	p.pass()
	if p.patience != nil {
		p.patience.Stop()
	}
	p.finish(func() { _, _ = p.near.Close(), p.far.Close() })
	return p.Err()
}

// Err returns the failure that has ended the pump, or nil. It is set before either end can notice
// the failure.
func (p *Pump) Err() error {
	if e := p.cause.Load(); e != nil {
		return *e
	}
	return nil
}

// Left reports whether the user has closed the link, or died. Bytes of the user may still
// be on the way to the connection.
func (p *Pump) Left() bool { return p.left.Load() || !p.near.Alive() }

var errEnded = errors.New("its process ends")

// Close ends the pump at once. Bytes on the way are lost, and both ends see a broken link.
func (p *Pump) Close() { p.fail(errEnded) }

// fail records the result of one direction. A failure ends the other direction too.
func (p *Pump) fail(err error) {
	if err == nil {
		return
	}
	p.cause.CompareAndSwap(nil, &err)
	p.finish(func() {
		p.near.Break()
		Break(p.far)
	})
}

func (p *Pump) finish(closing func()) {
	p.once.Do(func() {
		p.closing()
		closing()
	})
}

// outward passes on what the user sends, and waits until the user has closed the link.
func (p *Pump) outward(near Near, far Far) error {
	resetOnExit(far, true)
	if err := near.Outward(far); err != nil {
		return fmt.Errorf("to the connection: %w", err)
	}
	resetOnExit(far, false)
	if err := far.CloseWrite(); err != nil && near.Alive() {
		return fmt.Errorf("to the connection: %w", err)
	}
	if err := near.Gone(); err != nil {
		return nil //nolint:nilerr // the other direction has failed and reports it
	}
	p.left.Store(true)
	p.closing()
	_ = far.Close() // its remaining bytes are not needed
	return nil
}

func (p *Pump) inward(near Near, far Far) error {
	err := near.Inward(far)
	if err == nil {
		err = near.CloseWrite()
	}
	switch {
	case err == nil, p.left.Load():
		return nil
	case errors.Is(err, ErrGone), !near.Alive():
		// The other direction still passes on what the user has sent, and finds out whether
		// the user has ended the stream. But the peer may not be reading, so bound the
		// time.
		p.patience = time.AfterFunc(linger, func() { p.fail(err) })
		return nil
	}
	return fmt.Errorf("from the connection: %w", err)
}

// Break ends a connection on which bytes were lost, so that its peer sees a failure and not an end
// of stream. It uses what the connection supports: a method Break, a connection below it (the peer
// of TLS then misses the closing alert), or the reset of TCP.
func Break(c io.Closer) {
	switch x := c.(type) {
	case interface{ Break() }:
		x.Break()
	case interface{ NetConn() net.Conn }:
		Break(x.NetConn())
	case interface{ SetLinger(int) error }:
		_ = x.SetLinger(0) // fails only if it is closed
	}
	_ = c.Close()
}

// resetOnExit says whether the death of this process, which only the kernel reports to the peer,
// has to reset a TCP connection. Otherwise the peer would take it for an end of stream that
// the user has not sent.
func resetOnExit(c io.Closer, yes bool) {
	switch x := c.(type) {
	case interface{ NetConn() net.Conn }:
		resetOnExit(x.NetConn(), yes)
	case interface{ SetLinger(int) error }:
		seconds := -1 // the kernel still sends what it has
		if yes {
			seconds = 0
		}
		_ = x.SetLinger(seconds) // fails only if it is closed
	}
}
