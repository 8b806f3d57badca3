package quic

import (
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

type counts struct {
	failed, moved atomic.Int64

	mu    sync.Mutex
	alive map[*quic.Conn]struct{}
	made  int
	lost  uint64 // packets, on connections that have ended
	most  uint64 // lost packets that Retransmits has reported
}

func (c *counts) add(qc *quic.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive == nil {
		c.alive = make(map[*quic.Conn]struct{})
	}
	c.alive[qc] = struct{}{}
	c.made++
}

func (c *counts) remove(qc *quic.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.alive, qc)
	c.lost += qc.ConnectionStats().PacketsLost
}

// Retransmits returns how many packets were lost, whose data QUIC sends again in others. A packet
// that comes after all is not subtracted.
func (t *Transport) Retransmits() uint64 {
	c := &t.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := c.lost
	for qc := range c.alive {
		lost += qc.ConnectionStats().PacketsLost
	}
	c.most = max(c.most, lost)
	return c.most
}

// Stats returns numbers for the operator: connections, connections with segmentation in the
// kernel (GSO), lost packets, changes of path, and the longest smoothed round trip in
// microseconds.
func (t *Transport) Stats() map[string]float64 {
	c := &t.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, gso, rtt := c.lost, 0, int64(0)
	for qc := range c.alive {
		s := qc.ConnectionStats()
		lost += s.PacketsLost
		rtt = max(rtt, s.SmoothedRTT.Microseconds())
		if qc.ConnectionState().GSO {
			gso++
		}
	}
	return map[string]float64{
		"connections":        float64(len(c.alive)),
		"connections_made":   float64(c.made),
		"connections_gso":    float64(gso),
		"handshakes_failed":  float64(c.failed.Load()),
		"packets_lost":       float64(lost),
		"path_changes":       float64(c.moved.Load()),
		"round_trip_longest": float64(rtt),
	}
}
