// Package linktest has links for tests: a pair of ends in memory, and one that moves bytes
// in pieces. Unlike the rest of core they may be used by several goroutines.
package linktest

import (
	"sync"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Chop wraps l so that each Send and each Recv moves at most size() bytes, which gives
// tests the partial transfers of real links in any pattern. 0 means a call that moves
// nothing. size is called once per call, never concurrently, so it may be a seeded
// generator or a counter.
func Chop(l link.Link, size func() int) link.Link {
	return &chopped{Link: l, size: size}
}

type chopped struct {
	link.Link
	mu         sync.Mutex
	size       func() int
	send, recv [][]byte // scratch, one for each direction
	ended      bool     // Recv has returned an error, which it must return again
}

func (c *chopped) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size()
}

// Send passes the first size() bytes of batch on.
func (c *chopped) Send(batch [][]byte) (int, error) {
	c.send = link.Front(c.send, batch, c.next())
	n, err := c.Link.Send(c.send)
	clear(c.send)
	return n, err
}

// Recv offers the link the first size() bytes of batch.
func (c *chopped) Recv(batch [][]byte) (int, error) {
	if c.ended {
		return c.Link.Recv(batch)
	}
	c.recv = link.Front(c.recv, batch, c.next())
	n, err := c.Link.Recv(c.recv)
	clear(c.recv)
	c.ended = err != nil
	return n, err
}
