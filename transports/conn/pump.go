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

// Near is the side of a Pump that leads to who uses the link: NearRing, NearSocket.
// One goroutine calls Outward and Gone, another Inward and CloseWrite; the rest may
// be called at any time, and again.
type Near interface {
	// Outward writes to w what comes from the user, until the user's end of stream.
	Outward(w io.Writer) error

	// Inward gives the user what r reads, until r's end of stream. ErrGone means that
	// he has closed the link and wants no more.
	Inward(r io.Reader) error

	// CloseWrite tells the user that nothing more comes.
	CloseWrite() error

	// Gone waits, after Outward, until the user has closed the link. An error means
	// that this side was closed meanwhile.
	Gone() error

	// Alive reports whether the user still has the link.
	Alive() bool

	// Break closes this side; the user sees a broken link.
	Break()

	// Close closes this side.
	Close() error
}

// ErrGone is wrapped when the user of a link has closed it, or has died.
var ErrGone = errors.New("the link was closed by its user")

// linger is how long a connection may take the last bytes of a link that was closed.
const linger = 10 * time.Second

// Far is the side of a Pump that leads to the peer: a transports.Conn, or less.
type Far interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Pump passes bytes between the user of a link and its connection, both ways. It
// sleeps when there is nothing to do and never spins: of two processes that share
// cores the one that spins delays the other.
type Pump struct {
	near  Near
	far   Far
	left  atomic.Bool // the user has closed the link, and all was passed on
	once  sync.Once
	cause atomic.Pointer[error]

	patience *time.Timer // ends a pump whose user has gone; of Run alone
}

// NewPump makes a pump, which owns both sides.
func NewPump(near Near, far Far) *Pump { return &Pump{near: near, far: far} }

// Run passes bytes until the user has closed the link or something failed. Then both
// sides are closed. The error says what failed; both ends see their links broken.
func (p *Pump) Run() error {
	var wg sync.WaitGroup
	wg.Go(func() { p.fail(p.outward()) })
	p.fail(p.inward())
	wg.Wait()
	if p.patience != nil {
		p.patience.Stop()
	}
	p.finish(func() { _, _ = p.near.Close(), p.far.Close() })
	return p.Err()
}

// Err is what has ended the pump early, or nil. It is known before either end can
// see the consequences.
func (p *Pump) Err() error {
	if e := p.cause.Load(); e != nil {
		return *e
	}
	return nil
}

// Left reports whether the user has closed the link, or died. What he sent may still
// be under way to the connection.
func (p *Pump) Left() bool { return p.left.Load() || !p.near.Alive() }

// errEnded is why a pump that is told to end breaks its peers.
var errEnded = errors.New("its process ends")

// Close ends the pump at once. Bytes under way are lost, and both ends see that.
func (p *Pump) Close() { p.fail(errEnded) }

// fail takes the result of one direction. A failure ends the other one too.
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

func (p *Pump) finish(closing func()) { p.once.Do(closing) }

// outward passes on what the user sends, and waits until he has gone.
func (p *Pump) outward() error {
	mortal(p.far, true)
	if err := p.near.Outward(p.far); err != nil {
		return fmt.Errorf("to the connection: %w", err)
	}
	mortal(p.far, false)
	if err := p.far.CloseWrite(); err != nil && p.near.Alive() {
		return fmt.Errorf("to the connection: %w", err)
	}
	if err := p.near.Gone(); err != nil {
		return nil //nolint:nilerr // the other direction has failed
	}
	p.left.Store(true)
	_ = p.far.Close() // whose bytes nobody wants any more
	return nil
}

// inward passes on what comes from the connection.
func (p *Pump) inward() error {
	err := p.near.Inward(p.far)
	if err == nil {
		err = p.near.CloseWrite()
	}
	switch {
	case err == nil, p.left.Load():
		return nil
	case errors.Is(err, ErrGone), !p.near.Alive():
		// What the user has sent is passed on, and whether he meant to end it is for
		// the other direction to find out. But the peer may be stuck, as he was.
		p.patience = time.AfterFunc(linger, func() { p.fail(err) })
		return nil
	}
	return fmt.Errorf("from the connection: %w", err)
}

// Break ends a connection on which bytes were lost, so that its peer sees a failure
// and not an end, where the connection has a way to say so: a method Break, a
// connection below it (TLS, whose peer misses the closing alert then), or the reset
// of TCP.
func Break(c io.Closer) {
	switch x := c.(type) {
	case interface{ Break() }:
		x.Break()
	case interface{ NetConn() net.Conn }:
		Break(x.NetConn())
	case interface{ SetLinger(int) error }:
		_ = x.SetLinger(0) // it is as good as closed
	}
	_ = c.Close()
}

// mortal says whether the death of this process, of which the kernel alone tells the
// peer, is to break a TCP connection. Else the peer would take it for the end that
// the user never said.
func mortal(c io.Closer, yes bool) {
	switch x := c.(type) {
	case interface{ NetConn() net.Conn }:
		mortal(x.NetConn(), yes)
	case interface{ SetLinger(int) error }:
		seconds := -1 // the kernel sends on what it has
		if yes {
			seconds = 0
		}
		_ = x.SetLinger(seconds) // it is as good as closed
	}
}
