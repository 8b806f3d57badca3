package quic

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// granted is the buffer size that the kernel gave UDP sockets of this process if it was
// less than needed; 0 if it was enough.
var granted atomic.Int64

// Health returns an error if there are problems: buffers that the kernel reduced, a certificate
// that is about to expire.
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

func tooSmall(got int64, want int) error {
	return fmt.Errorf("the kernel gives UDP sockets buffers of %d bytes, not %d: fast transfers will lose packets; "+
		"as root: sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", got, want, want, want)
}
