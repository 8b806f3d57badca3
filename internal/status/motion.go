package status

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// StallTracker remembers from one look to the next which bytes were under way, so that a look can
// report since when none of them has arrived. Its zero value has seen nothing.
type StallTracker struct{ ways map[string]standing }

// standing is how much had arrived when bytes were under way, and since when that has not changed.
type standing struct {
	arrived uint64
	since   time.Time
}

// Update sets in jobs for how long the bytes that are under way have stood still.
func (m *StallTracker) Update(jobs []Job, now time.Time) {
	before := m.ways
	m.ways = make(map[string]standing)
	still := func(way string, sent, left *uint64) time.Duration {
		if sent == nil || links.ValueOf(left) == 0 {
			return 0
		}
		s := standing{*sent - *left, now}
		if b, known := before[way]; known && b.arrived == s.arrived {
			s.since = b.since
		}
		m.ways[way] = s
		return now.Sub(s.since)
	}
	for i := range jobs {
		j := &jobs[i]
		for k := range j.Pairs {
			p := &j.Pairs[k]
			p.AToB.NoArrivalFor = still(fmt.Sprint(jobName(j), " rank ", p.A, " ", p.B), p.AToB.Bytes, p.AToB.UnderWay)
			p.BToA.NoArrivalFor = still(fmt.Sprint(jobName(j), " rank ", p.B, " ", p.A), p.BToA.Bytes, p.BToA.UnderWay)
		}
		for k := range j.Channels {
			c := &j.Channels[k]
			c.NoArrivalFor = still(fmt.Sprint(jobName(j), " host ", c.From, " ", c.To), c.Sent, c.UnderWay)
		}
	}
}

// stalledAfter is how long bytes under way must have stood still for their link to be called
// stalled.
const stalledAfter = 2 * time.Second

// Stalls reports whether a link does not carry what it should: bytes have stood still on it, and
// the proc that they are for is in MPI, so that it would take them.
func Stalls(still time.Duration, to *links.Proc) bool {
	return still >= stalledAfter && (to == nil || to.Wait.State != "computing")
}
