package poll

import (
	"fmt"
	"time"
)

const (
	// spinMax is the longest that a waiter polls before it sleeps. It is more than
	// what a message and its answer take between busy cores, and less than what
	// anybody would miss of a core.
	spinMax = 200 * time.Microsecond
	// spinMin keeps one short look: what is waited for may be there already.
	spinMin = 2 * time.Microsecond
	// stolen is how long a yield takes only if somebody used the core to compute.
	stolen = 20 * time.Microsecond
	// shared is how long a yield takes only if somebody else ran at all.
	shared = 1 * time.Microsecond
	// eagerMax is how many polls a waiter that has the core for itself makes
	// before it offers the core for the first time.
	eagerMax = 64
)

// Spinner decides how long to poll before sleeping, and when to offer the core
// to others meanwhile. Polling is fastest while every runnable thread has a
// core. When not, it takes the core from the very peer that is waited for. How
// long a yield takes tells which is the case: at once means that nobody else
// wanted the core; a little, that another waiter looked and gave it back, and
// then yielding at each poll passes a message on soonest; long, that somebody
// computes, and then sleeping is best, as the kernel runs a sleeper that is
// woken before one that only waits for its turn.
type Spinner struct {
	budget time.Duration
	fixed  bool // the operator has set it
	eager  int  // polls before the first yield
	start  time.Time
}

// NewSpinner reads a wait setting: "auto", empty, "0" for none, or a duration.
func NewSpinner(setting string) (Spinner, error) {
	switch setting {
	case "", "auto":
		return Spinner{budget: spinMax, eager: eagerMax}, nil
	case "0":
		return Spinner{fixed: true}, nil
	}
	d, err := time.ParseDuration(setting)
	if err != nil || d < 0 {
		return Spinner{}, fmt.Errorf("spin %q: write \"auto\", \"0\" or a duration like \"20us\"", setting)
	}
	return Spinner{budget: d, fixed: true, eager: eagerMax}, nil
}

// Begin says that a wait begins.
func (s *Spinner) Begin() { s.start = time.Time{} }

// Over tells whether poll number i of a wait was the last before sleeping. It
// may have offered the core to others.
func (s *Spinner) Over(i int) bool {
	if s.budget == 0 {
		return true
	}
	if i < s.eager {
		return false
	}
	before := time.Now()
	if s.start.IsZero() {
		s.start = before
	}
	Yield()
	if s.observe(time.Since(before)) {
		return true
	}
	return before.Sub(s.start) >= s.budget
}

// observe learns from how long a yield took. It tells whether to sleep now.
func (s *Spinner) observe(yield time.Duration) (sleep bool) {
	switch {
	case yield > stolen:
		s.eager = 0
		if s.fixed {
			return false
		}
		s.budget = max(s.budget/2, spinMin)
		return s.budget == spinMin
	case yield > shared:
		s.eager = 0
	case s.eager < eagerMax:
		s.eager++
	}
	return false
}

// Hit says that polling found something.
func (s *Spinner) Hit() {
	if !s.fixed && s.budget < spinMax {
		s.budget += s.budget/4 + 1
	}
}

// Budget is how long the next wait polls at most.
func (s *Spinner) Budget() time.Duration { return s.budget }
