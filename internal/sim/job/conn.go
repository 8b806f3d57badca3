package job

import (
	"io"

	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// conn is an end of a link to the server. It queues what the link does not take yet.
type conn struct {
	end     *kernel.End
	out     []byte
	closing bool // once out is empty
	over    bool
	data    func(b []byte)
	gone    func(cause error) // cause is nil if the peer has ended in order; the conn is closed then
	buf     []byte            // shared with other conns: it is used only within a call
}

// newConn makes a conn of an end. data is called with what arrives, and must not keep it.
func newConn(e *kernel.End, buf []byte, data func([]byte), gone func(error)) *conn {
	c := &conn{end: e, data: data, gone: gone, buf: buf}
	e.OnReady(c.ready)
	return c
}

func (c *conn) ready() {
	for !c.over {
		n, err := c.end.Recv([][]byte{c.buf})
		if err != nil {
			c.end.OnReady(nil)
			c.close()
			if inOrder(err) {
				err = nil
			}
			c.gone(err)
			return
		}
		if n == 0 {
			break
		}
		c.data(c.buf[:n])
	}
	c.flush()
}

func inOrder(err error) bool {
	return err == io.EOF //nolint:errorlint // links report io.EOF itself
}

func (c *conn) send(b []byte) {
	c.out = append(c.out, b...)
	c.flush()
}

func (c *conn) flush() {
	for len(c.out) > 0 && !c.over {
		n, err := c.end.Send([][]byte{c.out})
		if err != nil || n == 0 {
			if err != nil {
				c.out = nil // Recv returns the reason, if it matters
			}
			break
		}
		c.out = c.out[n:]
	}
	if c.closing && len(c.out) == 0 && !c.over {
		_ = c.end.CloseSend() // the peer's end follows; a broken link has ended already
	}
}

// finish closes once everything is sent.
func (c *conn) finish() {
	c.closing = true
	c.flush()
}

func (c *conn) close() {
	c.over = true
	_ = c.end.Close() // never fails
}

var _ link.Link = (*kernel.End)(nil)
