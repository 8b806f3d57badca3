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

// Compress compresses the data that is sent and received on p over l, and returns the link to use
// instead of l, which is p's resumable link if it has one.
func (p *Endpoint) Compress(l link.Link, c compress.Config) link.Link {
	p.Compressed = compress.New(l, c)
	return &compressed{p.Compressed, p.Resumable}
}

// Counts returns the numbers of bytes that the link below has sent and received.
func (c *compressed) Counts() (sent, received uint64) {
	n := c.Counted()
	return n.WireSent, n.WireReceived
}

// RTT returns the round-trip time of the link below, if that measures it.
func (c *compressed) RTT() (time.Duration, bool) {
	if k, ok := c.Below().(interface{ RTT() (time.Duration, bool) }); ok {
		return k.RTT()
	}
	return 0, false
}

// LowerLinks returns the value of the resumable link's Made.
func (c *compressed) LowerLinks() int { return c.resumable.LowerLinks() }

// Pump calls the resumable link's Pump.
func (c *compressed) Pump() { c.resumable.Pump() }

// Reads reports whether an EndpointIO that has read p i times reads it again: MaxReads times, and
// after that only data that a compressed link has already read from the link below, which the poll
// set does not see.
func (p *Endpoint) Reads(i int) bool {
	if i < MaxReads {
		return true
	}
	if !p.Buffered() {
		return false
	}
	p.Compressed.ReadBufferedOnly()
	return true
}

// Buffered reports whether p has data to read that the link below has delivered already.
func (p *Endpoint) Buffered() bool { return p.Compressed != nil && p.Compressed.Buffered() }
