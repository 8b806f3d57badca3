package mpi

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/internal/poll"
)

const (
	// spinMax is the longest that a waiting proc polls before it sleeps. It is
	// more than what a message and its answer take between two busy cores, and
	// less than what anybody would miss of a core.
	spinMax = 200 * time.Microsecond
	// spinMin keeps one short look: the answer may be there already.
	spinMin = 2 * time.Microsecond
	// stolen is how long a yield takes only when somebody else ran.
	stolen = 15 * time.Microsecond
	// eager is how many polls are made before the core is offered to others.
	eager = 64
)

// spinner decides how long to poll before sleeping. Polling is fastest while
// every runnable thread has a core; when not, it takes the core from the very
// peer that is waited for. So a yield that took long, which means that others
// want the core, halves the budget, and data found while polling raises it.
type spinner struct {
	budget time.Duration
	fixed  bool // the operator has set it
	start  time.Time
}

// newSpinner reads the wait setting: "auto", empty, "0" or a duration.
func newSpinner(setting string) (spinner, error) {
	switch setting {
	case "", "auto":
		return spinner{budget: spinMax}, nil
	case "0":
		return spinner{fixed: true}, nil
	}
	d, err := time.ParseDuration(setting)
	if err != nil || d < 0 {
		return spinner{}, fmt.Errorf("spin %q: want \"auto\", \"0\" or a duration like \"20us\"", setting)
	}
	return spinner{budget: d, fixed: true}, nil
}

func (s *spinner) begin() { s.start = time.Time{} }

// over tells whether poll number i was the last before sleeping. From time to
// time it offers the core to whoever else can run.
func (s *spinner) over(i int) bool {
	if s.budget == 0 {
		return true
	}
	if i < eager {
		return false
	}
	before := time.Now()
	if s.start.IsZero() {
		s.start = before
	}
	poll.Yield()
	if !s.fixed && time.Since(before) > stolen {
		s.budget = max(s.budget/2, spinMin)
		return s.budget <= spinMin
	}
	return before.Sub(s.start) >= s.budget
}

// hit says that polling found something.
func (s *spinner) hit() {
	if !s.fixed && s.budget < spinMax {
		s.budget += s.budget/8 + 1
	}
}

// slept says that the proc woke up from a sleep.
func (s *spinner) slept() {}
