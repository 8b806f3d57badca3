package stripe

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/conn"
)

const (
	headSize = 12
	// blockSize is the most bytes of a block. Smaller ones cost a system call and a switch between
	// goroutines each, larger ones wait longer behind each other.
	blockSize = 64 << 10
	// inHand is how many blocks each connection has in memory in each direction: one that it moves, and
	// one that its user does.
	inHand = 2
	// closeTime bounds how long Close waits for bytes that were written to leave.
	closeTime = 10 * time.Second
)

var _ transports.Conn = (*Conn)(nil)

// Conn is one connection over several. It implements transports.Conn; Read, and Write with CloseWrite,
// may be called by one goroutine each.
type Conn struct {
	conns []transports.Conn
	out   output
	in    input

	mu     sync.Mutex
	failed error         // why it is broken
	broken chan struct{} // closed when it is
	close  sync.Once
}

// New makes a connection of several, which are in the same order on both sides, and owns them.
func New(conns []transports.Conn) *Conn {
	c := &Conn{conns: conns, broken: make(chan struct{})}
	c.in.init(len(conns))
	c.out.init(len(conns))
	for i, x := range conns {
		go c.receive(x)
		go c.send(x, c.out.queues[i])
	}
	return c
}

// fail ends all connections, so that both sides see a failure.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	first := c.failed == nil
	if first {
		c.failed = err
		close(c.broken)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	c.in.wake()
	for _, x := range c.conns {
		conn.Break(x)
	}
	_ = c.SetDeadline(time.Time{}) // a timer would keep the memory
}

func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Break ends the connection so that the peer sees a failure and not an end.
func (c *Conn) Break() { c.fail(link.ErrBroken) }

// Close ends the connection once what was written has left, or after some seconds.
func (c *Conn) Close() error {
	c.close.Do(func() {
		late := time.AfterFunc(closeTime, func() {
			c.fail(fmt.Errorf("%w: it took no bytes for %v", link.ErrBroken, closeTime))
		})
		_ = c.CloseWrite() // a failure is the peer's to see, too
		late.Stop()
		c.mu.Lock()
		whole := c.failed == nil
		if whole {
			c.failed = net.ErrClosed
			close(c.broken)
		}
		c.mu.Unlock()
		c.in.wake()
		for _, x := range c.conns {
			_ = x.Close() // all has left
		}
		_ = c.SetDeadline(time.Time{})
		c.out.release()
		c.in.release()
	})
	return nil
}

// Parts returns the connections.
func (c *Conn) Parts() []transports.Conn { return c.conns }

// LocalAddr is that of the first connection.
func (c *Conn) LocalAddr() net.Addr { return c.conns[0].LocalAddr() }

// RemoteAddr is that of the first connection.
func (c *Conn) RemoteAddr() net.Addr { return c.conns[0].RemoteAddr() }

// SetDeadline bounds reading and writing.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline bounds how long Read waits.
func (c *Conn) SetReadDeadline(t time.Time) error {
	err := c.failure()
	if err == nil || t.IsZero() {
		c.in.setDeadline(t)
	}
	return err
}

// SetWriteDeadline bounds how long Write and CloseWrite wait. After a Write that was too late the
// connection can only be closed.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	err := c.failure()
	if err == nil || t.IsZero() {
		c.out.setDeadline(t)
	}
	return err
}
