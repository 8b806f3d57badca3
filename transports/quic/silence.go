package quic

import (
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// watchesPerKeepalive is how often in a time of keepalive a connection is looked at.
	watchesPerKeepalive = 10
	// libraryIdle is the library's own idle timeout, which is longer than any of ours. The library
	// subtracts times, so that a process which has not run for a while gives up its connections before
	// it has read what came meanwhile.
	libraryIdle = 24 * time.Hour
	// maxAckDelay is how long a peer may keep back an acknowledgement.
	maxAckDelay = 25 * time.Millisecond
)

// silence counts for how long nothing has come of a peer, in ticks of this process. While the process
// does not run, it has no ticks, or one at most: so it never counts time in which it could not have
// heard anything.
type silence struct {
	heard uint64 // packets
	ticks int    // since the last one
}

// tick gets how many packets have come in all, and returns for how many ticks there was none.
func (s *silence) tick(received uint64) int {
	if s.ticks++; received != s.heard {
		s.heard, s.ticks = received, 0
	}
	return s.ticks
}

func ticksOf(d, every time.Duration) int { return int((d + every - 1) / every) }

// patience returns how long a peer may be silent: idle, or longer where packets that are lost take
// longer to be sent three times (RFC 9000, 10.1).
func patience(idle time.Duration, s quic.ConnectionStats) time.Duration {
	probe := s.SmoothedRTT + max(4*s.MeanDeviation, time.Millisecond) + maxAckDelay
	return max(idle, 3*probe)
}
