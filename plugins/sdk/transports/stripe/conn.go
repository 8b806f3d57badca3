package stripe

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

const (
	headSize = 12
	// blockSize is the most bytes of a block. Smaller ones cost a system call and a switch between
	// goroutines each, larger ones wait longer behind each other.
	blockSize = 64 << 10
	// inHand is how many blocks each connection has in memory in each direction: one that it moves, and
	// one that its user does.
	inHand = 2
	// closeTime bounds how long Close waits until bytes that were written have left.
	closeTime = 10 * time.Second
)

var _ transports.Conn = (*Conn)(nil)

// Conn is one connection over several. It implements transports.Conn; Read, and Write with CloseWrite,
// may be called by one goroutine each, the other methods at any time. It reads nothing before the first
// Read, and has no memory for blocks before they are used.
type Conn struct {
	conns []transports.Conn
	out   output
	in    input

	mu     sync.Mutex
	failed error         // why it is broken, or that it is closed
	broken chan struct{} // closed when it is
	close  sync.Once
}

// New makes a connection of several, which are in the same order on both sides, and owns them.
func New(conns []transports.Conn) *Conn {
	c := &Conn{conns: conns, broken: make(chan struct{})}
	c.in.init(len(conns))
	c.out.init(len(conns))
	return c
}

// fail ends all connections, so that both sides see a failure.
func (c *Conn) fail(err error) {
	if !c.end(err) {
		return
	}
	for _, x := range c.conns {
		conn.Break(x)
	}
	c.stopTimers()
}

// end records why no call can succeed any more, and reports whether that was not so before.
func (c *Conn) end(why error) bool {
	c.mu.Lock()
	first := c.failed == nil
	if first {
		c.failed = why
		close(c.broken)
	}
	c.mu.Unlock()
	c.in.wake()
	return first
}

func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// stopTimers takes back the deadlines, whose timers would keep the memory.
func (c *Conn) stopTimers() {
	c.in.setDeadline(time.Time{})
	c.out.setDeadline(time.Time{})
}

// Break ends the connection so that the peer sees a failure and not an end.
func (c *Conn) Break() { c.fail(link.ErrBroken) }

// Close ends the connection once what was written has left. If that takes more than some seconds, or a
// Write is cut short, the peer sees a failure.
func (c *Conn) Close() error {
	c.close.Do(func() {
		late := time.AfterFunc(closeTime, func() {
			c.fail(fmt.Errorf("%w: its last bytes did not leave within %v", link.ErrBroken, closeTime))
		})
		defer late.Stop()
		close(c.out.closing) // from here on nothing else is written, and no deadline counts
		if c.failure() == nil {
			if err := c.closeWrite(); err != nil {
				c.fail(err)
			}
		}
		if c.end(net.ErrClosed) {
			for _, x := range c.conns {
				_ = x.Close() // all has left
			}
		}
		c.stopTimers()
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
	if err := c.failure(); err != nil {
		return err
	}
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline bounds how long Write and CloseWrite wait, but not Close. After a Write that was too
// late the peer misses bytes: the connection can only be closed, which breaks it.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if err := c.failure(); err != nil {
		return err
	}
	c.out.setDeadline(t)
	return nil
}
