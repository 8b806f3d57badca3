package quic

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// granted is what the kernel gave UDP sockets of this process where that was less than
// they should have; 0: it was enough.
var granted atomic.Int64

// Health tells the node what works less well than it could: buffers that the kernel cut,
// a certificate that is about to expire.
func (t *Transport) Health() error {
	s := t.settings.Load()
	if s == nil {
		return nil
	}
	var small error
	if got := granted.Load(); got > 0 && got < int64(s.buffer) {
		small = tooSmall(got, s.buffer)
	}
	return errors.Join(small, s.id.Health())
}

// tooSmall is the sentence about a buffer.
func tooSmall(got int64, want int) error {
	return fmt.Errorf("the kernel gives UDP sockets buffers of %d bytes, not %d: fast transfers will lose packets; "+
		"as root: sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", got, want, want, want)
}
