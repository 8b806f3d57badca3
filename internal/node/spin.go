package node

import (
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// spinMax is the longest that a switch polls before it sleeps: more than what
	// a message and its answer take, less than what anybody misses of a core.
	spinMax = 50 * time.Microsecond
	// crowded is how long a yield takes only if somebody else ran on this core.
	crowded = 2 * time.Microsecond
)

// spinner decides how long a switch polls before it sleeps. Between polls it
// offers its core to the procs whose packets it waits for. While nobody takes
// it, polling goes on: waking from sleep costs more than a packet. When somebody
// does, cores are short, and the kernel knows better who is to run next.
type spinner struct {
	budget time.Duration
	fixed  bool // the operator has set it
	start  time.Time
}

func newSpinner(w config.Wait) spinner {
	if w.Auto {
		return spinner{budget: spinMax}
	}
	return spinner{budget: w.Spin, fixed: true}
}

// over tells whether poll number i, from 0, was the last before sleeping.
func (s *spinner) over(i int) bool {
	if s.budget == 0 {
		return true
	}
	before := time.Now()
	if i == 0 {
		s.start = before
	}
	poll.Yield()
	if !s.fixed && time.Since(before) > crowded {
		return true
	}
	return before.Sub(s.start) >= s.budget
}
