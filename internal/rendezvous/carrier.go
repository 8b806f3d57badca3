package rendezvous

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// maxUnsent is how many bytes a carrier accepts that the network has not taken yet.
const maxUnsent = 256 << 10

// carrier makes a connection below a resumableConn the link that core/resume needs: one
// goroutine reads ahead, one writes what was queued. All fields are guarded by the owner's
// lock, and the methods of link.Link are called with it. By hand: plugins/sdk/transports/conn makes
// a link of a connection too, but with a socket pair or a ring for a process that polls.
type carrier struct {
	owner  *resumableConn
	nc     net.Conn
	in     []byte // received and not used yet; memory of the reader
	out    []byte // queued for the writer
	rerr   error  // of the reader, final
	werr   error  // of the writer, final
	busy   bool   // the writer is writing
	closed bool
}

// start starts both goroutines. The caller has the owner's lock.
func (c *carrier) start() {
	c.owner.wg.Go(c.read)
	c.owner.wg.Go(c.write)
}

func (c *carrier) read() {
	l := c.owner
	buf := make([]byte, 32<<10)
	for {
		n, err := c.nc.Read(buf)
		err = socket.Explain(c.nc, err) // before the connection is closed: the kernel knows how long the peer was silent
		l.mu.Lock()
		c.in, c.rerr = buf[:n], err
		l.pump()
		for len(c.in) > 0 && !c.closed {
			l.more.Wait()
		}
		over := c.closed || err != nil
		l.mu.Unlock()
		if over {
			return
		}
	}
}

// write writes what was queued. It closes the connection when the carrier was closed and
// everything is written.
func (c *carrier) write() {
	l := c.owner
	var spare []byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(c.out) == 0 && !c.closed {
			l.more.Wait()
		}
		batch := c.out
		if len(batch) == 0 || c.werr != nil {
			l.mu.Unlock()
			c.nc.Close()
			l.mu.Lock()
			return
		}
		c.out, c.busy = spare[:0], true
		l.mu.Unlock()
		_, err := c.nc.Write(batch)
		err = socket.Explain(c.nc, err)
		l.mu.Lock()
		spare, c.busy = batch, false
		if err != nil && c.werr == nil {
			c.werr, c.out = err, nil
			_ = c.raw().Close() // so that the reader notices
		}
		l.pump()
	}
}

// Send queues bytes for the writer.
func (c *carrier) Send(batch [][]byte) (n int, err error) {
	switch {
	case c.closed:
		return 0, link.ErrClosed
	case c.werr != nil:
		return 0, fmt.Errorf("%w: %w", link.ErrBroken, c.werr)
	}
	for _, b := range batch {
		k := min(len(b), maxUnsent-len(c.out))
		c.out = append(c.out, b[:k]...)
		n += k
	}
	if n > 0 {
		c.owner.more.Broadcast()
	}
	return n, nil
}

// Recv returns what the reader has received.
func (c *carrier) Recv(batch [][]byte) (n int, err error) {
	for _, b := range batch {
		k := copy(b, c.in)
		c.in = c.in[k:]
		n += k
	}
	switch {
	case n > 0 && len(c.in) == 0:
		c.owner.more.Broadcast()
	case n > 0 || link.Len(batch) == 0:
	case c.closed:
		return 0, link.ErrClosed
	case c.werr != nil && c.rerr != nil:
		return 0, fmt.Errorf("%w: %w", link.ErrBroken, c.werr)
	case c.rerr == io.EOF: //nolint:errorlint // connections report io.EOF itself
		return 0, io.EOF
	case c.rerr != nil:
		return 0, fmt.Errorf("%w: %w", link.ErrBroken, c.rerr)
	}
	return n, nil
}

// Handle returns link.NoHandle: goroutines wait for the connection.
func (c *carrier) Handle() int { return link.NoHandle }

// Arm returns true, since there is no handle to sleep on.
func (c *carrier) Arm(link.Interest) bool { return true }

// Limits returns no preferences.
func (c *carrier) Limits() link.Limits { return link.Limits{} }

// CloseSend is not used: the end of a resumable link is a frame.
func (c *carrier) CloseSend() error { return nil }

// Close closes the connection once the writer has written everything, or after linger.
func (c *carrier) Close() error {
	if !c.closed {
		c.closed = true
		_ = c.raw().SetDeadline(time.Now().Add(linger))
		if len(c.out) == 0 && !c.busy || c.rerr != nil {
			_ = c.raw().Close()
		}
		c.owner.more.Broadcast()
	}
	return nil
}

// raw returns the connection below TLS, which can be closed without a message of TLS.
func (c *carrier) raw() net.Conn {
	if t, ok := c.nc.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c.nc
}

var _ link.Link = (*carrier)(nil)
