// Package polling decides how long a waiter polls before it sleeps, and when it offers its core to
// others meanwhile.
package polling

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// spinMax is the longest time that a waiter polls before it sleeps. It is longer than
	// waking a sleeper on an idle core takes, so that a chain of waiters in which one slept
	// returns to polling, and too short for other programs to miss the core.
	spinMax = 200 * time.Microsecond
	// stolen is how long a yield and a poll take only if another thread used the core to
	// compute.
	stolen = 20 * time.Microsecond
	// pollsMax is how many polls a waiter with a core of its own makes before it offers the
	// core for the first time.
	pollsMax = 64
	// askEvery is how often a waiter checks whether the core is still shared, in waits,
	// after other threads have run on it.
	askEvery = 4
	// retryEvery is how often a waiter that nobody wakes checks whether other threads still compute,
	// in waits: if they do, the yield lasts as long as they keep the core.
	retryEvery = 256
	// glance is how many polls come before a sleep on an oversubscribed machine: the message may
	// have come already.
	glance = 4
)

// shared is how long a yield and a poll take only if another thread ran at all. The system call
// itself is the least of it on most machines, but takes a microsecond on a virtual one whose host
// handles each: there a waiter must not take its own yields for other threads.
var shared = sync.OnceValue(func() time.Duration { return sharedWith(callTime()) })

// sharedWith is shared on a machine on which a system call takes that long. Another thread costs
// two switches and its own yield beside ours.
func sharedWith(call time.Duration) time.Duration { return 1100*time.Nanosecond + call*3/2 }

// callTime returns the shortest time that one of several system calls took.
func callTime() time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 20 {
		before := time.Since(origin)
		_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		best = min(best, time.Since(origin)-before)
	}
	return best
}

// The score of oversubscription: more threads compute than there are cores. Each stolen yield
// raises it, and each other yield and each sleep lowers it, so that a waiter which has given up
// polling tries it again from time to time.
const (
	scoreStolen         = 4
	scoreOversubscribed = 8
	scoreMax            = 16

	// dozes is how many sleeps of a waiter that nobody wakes count as one: each polling that finds
	// other threads computing costs as much time as they take.
	dozes = 64
)

// Spinner decides how long to poll before sleeping, and when to offer the core to others
// meanwhile; see docs/decisions/0012-yields-tell-when-to-spin.md. Polling is fastest while
// every runnable thread has a core; otherwise it takes the core from the peer that is
// waited for. The time of a yield shows which is the case. No time: no other thread wanted
// the core. A little: another waiter looked and gave it back; then yielding at each poll is
// fastest. Long: another thread computes; then sleeping is best, since the kernel runs a
// thread that was woken before one that only waits for its turn.
type Spinner struct {
	budget  time.Duration
	fixed   bool          // the operator has set the budget
	shared  time.Duration // a yield and a poll that take longer let another thread run
	polls   int           // polls before the first yield
	unwoken bool          // nothing wakes the waiter
	dozes   uint          // sleeps of the waiter
	begun   uint          // waits since the core was first found to be shared
	score   int           // see scoreStolen
	start   time.Duration // when this wait first offered the core; 0: not yet
	last    time.Duration // when it last offered the core
}

// origin is the start of time measurements, which are durations since it: they are cheaper
// than a time.Time.
var origin = time.Now()

// NewSpinner reads a wait setting: "auto", empty, "0" for none, or a duration.
func NewSpinner(setting string) (Spinner, error) {
	switch setting {
	case "", "auto":
		return Spinner{budget: spinMax, polls: pollsMax, shared: shared()}, nil
	case "0":
		return Spinner{fixed: true}, nil
	}
	d, err := time.ParseDuration(setting)
	if err != nil || d < 0 {
		return Spinner{}, fmt.Errorf("spin %q: write \"auto\", \"0\" or a duration like \"20us\"", setting)
	}
	return Spinner{budget: d, fixed: true, polls: pollsMax, shared: shared()}, nil
}

// Begin starts a wait. Where cores are shared it offers the core at once, since the peer that is
// waited for may be waiting for the core.
func (s *Spinner) Begin() {
	s.start = 0
	if s.unwoken && s.Oversubscribed() {
		s.retry()
	}
	if s.polls == pollsMax || s.budget == 0 || s.Oversubscribed() {
		return
	}
	if s.begun++; s.begun%askEvery == 0 {
		s.ask()
	} else if s.polls == 0 {
		Yield()
	}
}

// ask offers the core to find out whether it is still shared. Waits that end at their first
// polls would never notice.
func (s *Spinner) ask() {
	if yieldTime() <= s.shared {
		s.raise()
	}
}

// retry offers the core now and then to find out whether other threads still compute: waits that
// end at their first polls would never notice, and a waiter that nobody wakes looks seldom while it
// believes that they do.
func (s *Spinner) retry() {
	if s.begun++; s.begun%retryEvery == 0 && yieldTime() <= s.shared {
		s.score = scoreOversubscribed - 1
	}
}

// raise is called after a yield in which nobody else ran. The polls double, so that one thread that
// ran for a moment costs a waiter a few yields and not pollsMax; where the core is shared the next
// yield shows it.
func (s *Spinner) raise() { s.polls = min(max(1, 2*s.polls), pollsMax) }

// yieldTime offers the core and returns how long that took; tests replace it.
var yieldTime = func() time.Duration {
	before := time.Since(origin)
	Yield()
	return time.Since(origin) - before
}

// Over reports whether poll number i of a wait, from 0, was the last before sleeping. It
// may have offered the core to others.
func (s *Spinner) Over(i int) bool {
	switch {
	case s.budget == 0:
		return true
	case s.Oversubscribed():
		return i >= glance && s.sleep()
	case i < s.polls:
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

// observe updates the score from the time of a yield and the poll after it.
func (s *Spinner) observe(yield time.Duration) {
	switch {
	case yield > stolen:
		s.polls = 0
		s.score = min(s.score+scoreStolen, scoreMax)
		return
	case yield > s.shared:
		s.polls = 0
	default:
		s.raise()
	}
	s.score = max(s.score-1, 0)
}

// SetUnwoken records that nothing wakes the waiter, so that its sleeps are short and many.
func (s *Spinner) SetUnwoken() { s.unwoken = true }

func (s *Spinner) sleep() bool {
	if s.unwoken {
		if s.dozes++; s.dozes%dozes != 0 {
			return true
		}
	}
	s.score = max(s.score-1, 0)
	return true
}

// PollsBeforeYield returns how many polls a waiter makes before it offers the core.
func (s *Spinner) PollsBeforeYield() int {
	if s.budget == 0 || s.Oversubscribed() {
		return 0
	}
	return s.polls
}

// SetPolls sets how many polls a waiter makes before it offers the core, as found by a waiter that
// has followed the same rules since PollsBeforeYield returned its number. It does nothing if no
// polls are made.
func (s *Spinner) SetPolls(n int) {
	if s.Yields() {
		s.polls = min(max(n, 0), pollsMax)
	}
}

// SharedAfter returns how many nanoseconds a yield and a poll take only if another thread ran.
func (s *Spinner) SharedAfter() uint32 { return uint32(min(s.shared, math.MaxUint32)) }

// Yields reports whether a waiter yields before it sleeps.
func (s *Spinner) Yields() bool { return s.budget > 0 && !s.Oversubscribed() }

// Shared reports whether other threads have run on this core lately, so that the peer may
// have to wait for a core first.
func (s *Spinner) Shared() bool { return s.budget > 0 && s.polls < pollsMax/2 }

// Oversubscribed reports whether other threads compute on the cores, so that polling would keep the
// cores from them.
func (s *Spinner) Oversubscribed() bool { return !s.fixed && s.score >= scoreOversubscribed }

// Yield lets another runnable thread of this core go first.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
