package node

import (
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// spinMax is the longest that a switch polls before it sleeps.
	spinMax = 100 * time.Microsecond
	// spinMin keeps one short look.
	spinMin = 2 * time.Microsecond
	// stolen is how long a yield takes only if somebody else ran for long.
	stolen = 30 * time.Microsecond
)

// spinner decides how long a switch polls before it sleeps. It offers its core
// to others at each poll: the procs whose packets it waits for need one too.
// A yield that took long means that they do, so that sleeping is cheaper.
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
	if !s.fixed && time.Since(before) > stolen {
		s.budget = max(s.budget/2, spinMin)
	}
	return before.Sub(s.start) >= s.budget
}

// hit says that polling found something.
func (s *spinner) hit() {
	if !s.fixed && s.budget < spinMax {
		s.budget += s.budget/8 + 1
	}
}
