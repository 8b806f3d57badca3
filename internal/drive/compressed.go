package drive

import (
	"time"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// compressed is a compressed link, with the other methods that its owner expects of a link.
type compressed struct {
	*compress.Link
	resumable *Resumable // the link below, or nil
}

// Compress has what is sent and received on p go over l compressed, and returns the link to use instead
// of l, which is p's resumable link if it has one.
func (p *Endpoint) Compress(l link.Link, c compress.Config) link.Link {
	p.Packed = compress.New(l, c)
	return &compressed{p.Packed, p.Resumable}
}

// Counts returns how many bytes were sent and received by the link below.
func (c *compressed) Counts() (sent, received uint64) {
	n := c.Counted()
	return n.WireSent, n.WireReceived
}

// RTT is that of the link below, if that measures it.
func (c *compressed) RTT() (time.Duration, bool) {
	if k, ok := c.Below().(interface{ RTT() (time.Duration, bool) }); ok {
		return k.RTT()
	}
	return 0, false
}

// Made is that of the resumable link below.
func (c *compressed) Made() int { return c.resumable.Made() }

// Pump is that of the resumable link below.
func (c *compressed) Pump() { c.resumable.Pump() }

// Reads reports whether a Mover that has read p i times reads it again: MaxReads times, and then only what a
// compressed link has already taken from the link below, which the poll set does not see.
func (p *Endpoint) Reads(i int) bool {
	if i < MaxReads {
		return true
	}
	if !p.Buffered() {
		return false
	}
	p.Packed.BufferedOnly()
	return true
}

// Buffered reports whether p has something to read that its link below does not have any more.
func (p *Endpoint) Buffered() bool { return p.Packed != nil && p.Packed.Buffered() }
