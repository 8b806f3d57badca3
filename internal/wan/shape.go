package wan

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Shape describes a line. The zero value forwards everything at once.
type Shape struct {
	// Rate is in bits per second, of IP packets with their headers; 0: no limit.
	Rate int64
	// Delay is the propagation in one direction: half of the round trip, without queue and
	// transmission.
	Delay time.Duration
	// Jitter is the maximum addition to Delay, uniformly drawn for each packet. Packets stay in
	// order.
	Jitter time.Duration
	// Queue is the maximum number of bytes that wait to be transmitted, including the rest of the
	// packet that is being transmitted. A packet that does not fit is dropped. 0: no limit.
	Queue int
	// Loss, Duplicate and Reorder are probabilities, of each packet by itself. Packets are lost
	// after the queue: a lost one has taken its time.
	Loss, Duplicate, Reorder float64
	// ReorderDelay is the additional delay of a reordered packet.
	ReorderDelay time.Duration
	// OutageInterval is the mean time between outages, each of which lasts OutageLength; 0: there are
	// none. Packets offered during an outage are lost; those offered before arrive.
	OutageInterval, OutageLength time.Duration
}

// maxDelay bounds times, so that sums cannot overflow.
const maxDelay = time.Hour

// Check returns all that is wrong with a shape, joined, or nil.
func (s Shape) Check() error {
	var errs []error
	for name, p := range map[string]float64{"loss": s.Loss, "duplicate": s.Duplicate, "reorder": s.Reorder} {
		if math.IsNaN(p) || p < 0 || p > 1 {
			errs = append(errs, fmt.Errorf("%s is %v: a probability from 0 to 1 is wanted", name, p))
		}
	}
	for name, d := range map[string]time.Duration{"delay": s.Delay, "jitter": s.Jitter, "behind": s.ReorderDelay, "every": s.OutageInterval, "for": s.OutageLength} {
		if d < 0 || d > maxDelay {
			errs = append(errs, fmt.Errorf("%s is %v: a time from 0 to %v is wanted", name, d, maxDelay))
		}
	}
	if s.Rate < 0 || s.Rate > 1e12 {
		errs = append(errs, fmt.Errorf("the rate is %d bit/s: at most 1e12 is wanted", s.Rate))
	}
	if s.Queue < 0 || s.Queue > 1<<32 {
		errs = append(errs, fmt.Errorf("the queue has %d bytes: at most %d is wanted", s.Queue, int64(1)<<32))
	}
	if s.OutageInterval > 0 && s.OutageLength == 0 {
		errs = append(errs, errors.New("outages last for 0 s: say how long, or leave out how often"))
	}
	return errors.Join(errs...)
}

// Lossless reports whether a line of this shape delivers every packet, once and in order, except
// those for which its queue has no room.
func (s Shape) Lossless() bool {
	return s.Loss == 0 && s.Duplicate == 0 && s.Reorder == 0 && s.OutageInterval == 0
}

// BandwidthDelay returns the number of bytes under way in a round trip of two lines of this shape.
func (s Shape) BandwidthDelay() int {
	return int(float64(s.Rate) / 8 * (2 * s.Delay).Seconds())
}
