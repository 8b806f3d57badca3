package rendezvous

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// conn is a connection of the server. One goroutine reads and one writes, so that a client
// that does not read delays nobody else.
type conn struct {
	id  startup.ConnID
	ack chan struct{} // the server does not need the bytes of the last event any more
	how string        // how the connection is protected, for the log; set before anything is read

	mu     sync.Mutex
	nc     net.Conn // at first the network connection
	more   sync.Cond
	queue  net.Buffers // bytes to be written; startup.Server bounds it
	ending bool        // nothing is queued any more, and received bytes are ignored
}

func newConn(id startup.ConnID, nc net.Conn) *conn {
	c := &conn{id: id, nc: nc, ack: make(chan struct{}, 1)}
	c.more.L = &c.mu
	return c
}

// send queues b, which must not be changed any more.
func (c *conn) send(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.queue = append(c.queue, b)
		c.more.Signal()
	}
}

// finish closes the connection once everything is written, or after linger.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.ending = true
		c.nc.SetDeadline(time.Now().Add(linger))
		c.more.Signal()
	}
}

// carriedBy says that the connection continues over nc, which wraps the one used so far.
func (c *conn) carriedBy(nc net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc = nc
	if c.ending {
		nc.SetDeadline(time.Now().Add(linger))
	}
}

func (c *conn) below() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nc
}

// abandon gives up the connection that is used now, which belongs to a session from now on.
func (c *conn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc, c.ending, c.queue = nil, true, nil
	c.more.Signal()
}

// write writes what is queued. At the end it closes the sending half; the peer answers by
// closing its own, which ends read.
func (c *conn) write() {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.ending {
			c.more.Wait()
		}
		batch, nc := c.queue, c.nc
		c.queue = nil
		c.mu.Unlock()
		switch {
		case nc == nil:
			return
		case len(batch) == 0:
			closeWrite(nc)
			return
		}
		if _, err := batch.WriteTo(nc); err != nil {
			nc.Close()
			return
		}
	}
}

// read passes what it reads to events until the connection ends. After finish it only waits
// for the end. It closes the connection.
func (c *conn) read(events chan<- event, stop <-chan struct{}) {
	nc := c.below()
	defer nc.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := nc.Read(buf)
		if n > 0 && c.give(events, stop, event{conn: c, data: buf[:n]}) {
			select {
			case <-c.ack:
			case <-stop:
			}
		}
		if err != nil {
			c.give(events, stop, event{conn: c, err: socket.Explain(c.nc, err)})
			return
		}
	}
}

func (c *conn) give(events chan<- event, stop <-chan struct{}, e event) bool {
	select {
	case events <- e:
		return true
	case <-stop:
		return false
	}
}

func closeWrite(nc net.Conn) {
	if h, ok := nc.(interface{ CloseWrite() error }); ok && h.CloseWrite() == nil {
		return
	}
	nc.Close()
}

// cause returns nil for the orderly end of a connection, the reason if a session was given up, or
// else err.
func cause(err error) error {
	var given *forGood
	switch {
	case errors.As(err, &given):
		return given
	case inOrder(err):
		return nil
	}
	return err
}

// inOrder reports whether the peer's kernel has ended a connection in order, as it does
// when the process ends.
func inOrder(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
