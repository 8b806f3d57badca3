package stripe

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
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
	// inHand is how many blocks each connection has in memory in each direction: one that it moves,
	// and one that its user does.
	inHand = 2
	// closeTime bounds how long Close waits until bytes that were written have left.
	closeTime = 10 * time.Second
)

var _ transports.Conn = (*Conn)(nil)

// Conn is one connection over several. It implements transports.Conn; Read, and Write with
// CloseWrite, may be called by one goroutine each, the other methods at any time. It reads nothing
// before the first Read, and has no memory for blocks before they are used.
type Conn struct {
	first  transports.Conn
	out    output
	in     input
	moved  atomic.Int64 // bytes of blocks in both directions
	grows  *growth      // on the dialling side; nil: the side adds no connections
	forget func()       // called when nothing can be added any more, perhaps several times; may be nil
	most   int          // maximum number of connections, on the accepting side

	mu      sync.Mutex
	conns   []transports.Conn
	claimed uint32         // connections that the peer has made, a bit for each, on the accepting side
	failed  error          // why the Conn is broken, or that it is closed
	broken  chan struct{}  // closed when the Conn is broken
	full    bool           // no further connection may begin to be added
	pending sync.WaitGroup // connections that are being added
	close   sync.Once
}

// New makes a connection of several, which are in the same order on both sides, and owns them.
func New(conns []transports.Conn) *Conn {
	c := &Conn{first: conns[0], broken: make(chan struct{})}
	c.in.init()
	c.out.init()
	for _, x := range conns {
		c.in.expect()
		c.admit(x)
	}
	return c
}

// reserve begins to add a connection, unless nothing can be added any more. Who gets true calls
// c.pending.Done once the connection is added or given up.
func (c *Conn) reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full || c.failed != nil {
		return false
	}
	c.pending.Add(1)
	return true
}

// admit adds a connection that is expected by c.in, and owns it.
func (c *Conn) admit(x transports.Conn) {
	c.mu.Lock()
	failed := c.failed != nil
	if !failed {
		c.conns = append(c.conns, x)
	}
	c.mu.Unlock()
	if failed {
		conn.Break(x)
		return
	}
	c.beginReceiving(x)
	c.beginSending(x)
}

// fail ends all connections, so that both sides see a failure.
func (c *Conn) fail(err error) {
	if !c.end(err) {
		return
	}
	for _, x := range c.Parts() {
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
	c.seal()
	return first
}

func (c *Conn) seal() {
	c.mu.Lock()
	c.full = true
	c.mu.Unlock()
	if c.forget != nil {
		c.forget()
	}
}

func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// stopTimers clears the deadlines, as their timers would keep the memory.
func (c *Conn) stopTimers() {
	c.in.setDeadline(time.Time{})
	c.out.setDeadline(time.Time{})
}

// Break ends the connection so that the peer sees a failure and not an end.
func (c *Conn) Break() { c.fail(link.ErrBroken) }

// Close ends the connection once what was written has left. If that takes more than some seconds,
// or a Write is cut short, the peer sees a failure.
func (c *Conn) Close() error {
	c.close.Do(func() {
		late := time.AfterFunc(closeTime, func() {
			c.fail(fmt.Errorf("%w: its last bytes did not leave within %v", link.ErrBroken, closeTime))
		})
		defer late.Stop()
		close(c.out.closing) // from here on nothing else is written, and no deadline counts
		c.seal()
		c.pending.Wait() // the peer waits for the end of each connection that it has
		if c.failure() == nil {
			if err := c.closeWrite(); err != nil {
				c.fail(err)
			}
		}
		if c.end(net.ErrClosed) {
			for _, x := range c.Parts() {
				_ = x.Close() // all bytes have left
			}
		}
		c.stopTimers()
		c.out.release()
		c.in.release()
	})
	return nil
}

// Parts returns the connections that there are now.
func (c *Conn) Parts() []transports.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.conns)
}

// LocalAddr returns the local address of the first connection.
func (c *Conn) LocalAddr() net.Addr { return c.first.LocalAddr() }

// RemoteAddr returns the remote address of the first connection.
func (c *Conn) RemoteAddr() net.Addr { return c.first.RemoteAddr() }

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

// SetWriteDeadline bounds how long Write and CloseWrite wait, but not Close. After a Write that was
// too late the peer misses bytes: the connection can only be closed, which breaks it.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if err := c.failure(); err != nil {
		return err
	}
	c.out.setDeadline(t)
	return nil
}
