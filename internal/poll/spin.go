package poll

import (
	"fmt"
	"time"
)

const (
	// spinMax is the longest that a waiter polls before it sleeps. It is more than
	// what it takes to wake a sleeper on an idle core, so that a chain of waiters
	// in which one slept finds back to polling, and less than what anybody would
	// miss of a core.
	spinMax = 200 * time.Microsecond
	// stolen is how long a yield and a poll take only if somebody used the core to
	// compute.
	stolen = 20 * time.Microsecond
	// shared is how long they take only if somebody else ran at all.
	shared = 1200 * time.Nanosecond
	// eagerMax is how many polls a waiter that has the core for itself makes
	// before it offers the core for the first time.
	eagerMax = 64
	// askEvery is how many waits begin, where others have run on the core, between two that
	// find out whether they still do.
	askEvery = 4
	// glance is how many polls precede a sleep on a crowded machine: what is
	// waited for may be there already.
	glance = 4
)

// The score of crowding: a stolen yield counts against polling, each other one
// and each sleep for it, so that a waiter which has given polling up tries it
// again from time to time.
const (
	scoreStolen  = 4
	scoreCrowded = 8
	scoreMax     = 16
)

// Spinner decides how long to poll before sleeping, and when to offer the core
// to others meanwhile. Polling is fastest while every runnable thread has a
// core. When not, it takes the core from the very peer that is waited for. How
// long a yield takes tells which is the case: no time means that nobody else
// wanted the core; a little, that another waiter looked and gave it back, and
// then yielding at each poll passes a message on soonest; long, that somebody
// computes, and then sleeping is best, as the kernel runs a sleeper that is
// woken before one that only waits for its turn.
type Spinner struct {
	budget time.Duration
	fixed  bool          // the operator has set it
	eager  int           // polls before the first yield
	begun  uint          // waits since the core seemed to be shared
	score  int           // how crowded the machine seems
	start  time.Duration // when the wait offered the core for the first time; 0: not yet
	last   time.Duration // when it did so last
}

// origin makes moments durations, which are cheaper to come by than a Time.
var origin = time.Now()

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

// Begin says that a wait begins. Where cores are shared, whoever is to bring
// about what is waited for may be waiting for this one.
func (s *Spinner) Begin() {
	s.start = 0
	if s.eager == eagerMax || s.budget == 0 || s.Crowded() {
		return
	}
	if s.begun++; s.begun%askEvery == 0 {
		s.ask()
	} else if s.eager == 0 {
		Yield()
	}
}

// ask finds out whether the core is shared no longer. Waits that end at their first polls
// would never tell.
func (s *Spinner) ask() {
	if yieldTime() <= shared {
		s.eager++
	}
}

// yieldTime offers the core and gives how long it was away; tests replace it.
var yieldTime = func() time.Duration {
	before := time.Since(origin)
	Yield()
	return time.Since(origin) - before
}

// Over reports whether poll number i of a wait, from 0, was the last before
// sleeping. It may have offered the core to others.
func (s *Spinner) Over(i int) bool {
	switch {
	case s.budget == 0:
		return true
	case s.Crowded():
		return i >= glance && s.sleep()
	case i < s.eager:
		return false
	}
	now := time.Since(origin)
	if s.start == 0 {
		s.start = now
	} else {
		s.observe(now - s.last)
	}
	s.last = now
	if now-s.start >= s.budget {
		return s.sleep()
	}
	Yield()
	return false
}

// observe learns from how long a yield took, together with the poll after it.
func (s *Spinner) observe(yield time.Duration) {
	switch {
	case yield > stolen:
		s.eager = 0
		s.score = min(s.score+scoreStolen, scoreMax)
		return
	case yield > shared:
		s.eager = 0
	case s.eager < eagerMax:
		s.eager++
	}
	s.score = max(s.score-1, 0)
}

// sleep says that the waiter goes to sleep.
func (s *Spinner) sleep() bool {
	s.score = max(s.score-1, 0)
	return true
}

// Eager is how many polls a waiter makes before it offers the core.
func (s *Spinner) Eager() int {
	if s.budget == 0 || s.Crowded() {
		return 0
	}
	return s.eager
}

// Shared reports whether others have run on this core lately, so that whoever is
// waited for may have to wait for a core first.
func (s *Spinner) Shared() bool { return s.budget > 0 && s.eager < eagerMax/2 }

// Crowded reports whether others compute on the cores, so that polling would keep
// them from it.
func (s *Spinner) Crowded() bool { return !s.fixed && s.score >= scoreCrowded }
