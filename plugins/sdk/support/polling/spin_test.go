package polling

import (
	"testing"
	"time"
)

func spinner(t *testing.T, setting string) Spinner {
	t.Helper()
	s, err := NewSpinner(setting)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpinSettings(t *testing.T) {
	for setting, want := range map[string]time.Duration{"": spinMax, "auto": spinMax, "0": 0, "20us": 20 * time.Microsecond} {
		if s := spinner(t, setting); s.budget != want {
			t.Errorf("%q: budget %v, want %v", setting, s.budget, want)
		}
	}
	for _, setting := range []string{"x", "20", "-1us"} {
		if _, err := NewSpinner(setting); err == nil {
			t.Errorf("%q was taken", setting)
		}
	}
}

func TestNoBudgetSleepsAtOnce(t *testing.T) {
	s := spinner(t, "0")
	if s.Begin(); !s.Over(0) {
		t.Error("it polls")
	}
}

// TestWaitsThatEndAtOnceFindTheirCoreFree: waits whose first polls bring something never get to
// Over, and still find out that nobody else wants the core any more.
func TestWaitsThatEndAtOnceFindTheirCoreFree(t *testing.T) {
	took := 2 * shared()
	defer func(real func() time.Duration) { yieldTime = real }(yieldTime)
	yieldTime = func() time.Duration { return took }
	s := spinner(t, "auto")
	s.observe(took)
	waits := func() {
		for range askEvery * 8 {
			s.Begin()
		}
	}
	if waits(); s.PollsBeforeYield() != 0 {
		t.Errorf("%d polls where others run", s.PollsBeforeYield())
	}
	took = shared()
	if waits(); s.PollsBeforeYield() != pollsMax {
		t.Errorf("%d polls where nobody does, want %d", s.PollsBeforeYield(), pollsMax)
	}
}

// polls is how many polls a wait that finds nothing makes.
func polls(s *Spinner) int {
	s.Begin()
	for i := 0; ; i++ {
		if s.Over(i) {
			return i
		}
	}
}

func TestComputingNeighboursEndSpinning(t *testing.T) {
	s := spinner(t, "auto")
	if s.observe(time.Millisecond); s.Oversubscribed() {
		t.Error("one stolen yield is an accident")
	}
	s.observe(time.Millisecond)
	if !s.Oversubscribed() || polls(&s) != glance {
		t.Errorf("oversubscribed %v", s.Oversubscribed())
	}
	for range scoreMax {
		s.sleep()
	}
	if s.Oversubscribed() {
		t.Error("it never tries again")
	}
}

func TestOtherWaitersAreLetIn(t *testing.T) {
	s := spinner(t, "auto")
	for range 100 {
		s.observe(2 * shared())
	}
	if s.polls != 0 || s.Oversubscribed() {
		t.Errorf("polls %d, oversubscribed %v", s.polls, s.Oversubscribed())
	}
	const soon = 8 // yields
	for range soon {
		s.observe(shared() / 10)
	}
	if s.polls != pollsMax {
		t.Errorf("alone again, but polls is %d", s.polls)
	}
}

func TestFixedBudgetStays(t *testing.T) {
	s := spinner(t, "20us")
	for range 10 {
		s.observe(time.Millisecond)
	}
	if s.Oversubscribed() {
		t.Error("what the operator has set was overruled")
	}
}

func TestSharedCoresAreNoticed(t *testing.T) {
	s := spinner(t, "auto")
	if s.Shared() {
		t.Error("before anything was seen")
	}
	s.observe(2 * shared())
	if !s.Shared() {
		t.Error("somebody else ran")
	}
	for range pollsMax {
		s.observe(shared() / 2)
	}
	if s.Shared() {
		t.Error("nobody else has run for long")
	}
	if s := spinner(t, "0"); s.Shared() {
		t.Error("who never polls cannot know")
	}
}

// TestNobodyWakes: a waiter that nobody wakes keeps to short sleeps for longer, where other threads
// compute.
func TestNobodyWakes(t *testing.T) {
	sleeps := func(unwoken bool) (n int) {
		s, err := NewSpinner("auto")
		if err != nil {
			t.Fatal(err)
		}
		if unwoken {
			s.SetUnwoken()
		}
		s.score = scoreMax
		for s.Oversubscribed() {
			s.sleep()
			n++
		}
		return n
	}
	if woken, unwoken := sleeps(false), sleeps(true); unwoken < dozes/2*woken {
		t.Errorf("it polls again after %d sleeps, and after %d if somebody wakes it", unwoken, woken)
	}
}

// TestNobodyWakesWaitsThatEndSoon: a waiter that nobody wakes and whose waits end at their first
// polls, so that it never sleeps, finds out that other threads compute no more, and that they still
// do.
func TestNobodyWakesWaitsThatEndSoon(t *testing.T) {
	defer func(real func() time.Duration) { yieldTime = real }(yieldTime)
	for _, c := range []struct {
		took        time.Duration
		unwoken, is bool
	}{{shared(), true, false}, {2 * shared(), true, true}, {shared(), false, true}} {
		yields := 0
		yieldTime = func() time.Duration { yields++; return c.took }
		s := spinner(t, "auto")
		if c.unwoken {
			s.SetUnwoken()
		}
		s.score = scoreMax
		for range retryEvery {
			s.Begin()
		}
		if s.Oversubscribed() != c.is {
			t.Errorf("yields of %v, woken by nobody: %v: it believes that others compute: %v", c.took, c.unwoken, s.Oversubscribed())
		}
		if c.unwoken && yields != 1 {
			t.Errorf("it has offered the core %d times in %d waits", yields, retryEvery)
		}
	}
}

// TestSlowSystemCalls: where each system call takes a microsecond, as on some virtual machines, a
// yield of little more is no other thread's, and one that takes as long as three calls is.
func TestSlowSystemCalls(t *testing.T) {
	for _, call := range []time.Duration{100 * time.Nanosecond, time.Microsecond} {
		s := spinner(t, "auto")
		s.shared = sharedWith(call)
		for range 100 {
			s.observe(call + 500*time.Nanosecond)
		}
		if s.PollsBeforeYield() != pollsMax {
			t.Errorf("%v: %d polls where nobody else runs", call, s.PollsBeforeYield())
		}
		if s.observe(3*call + time.Microsecond); s.PollsBeforeYield() != 0 {
			t.Errorf("%v: %d polls where others run", call, s.PollsBeforeYield())
		}
	}
	if call := callTime(); call <= 0 || call > time.Second {
		t.Errorf("a system call takes %v", call)
	}
}

// TestPollsFoundBySomebodyElse: what C has found is taken over, within bounds, but not by a waiter
// that makes no polls.
func TestPollsFoundBySomebodyElse(t *testing.T) {
	s, err := NewSpinner("auto")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, want int }{{0, 0}, {5, 5}, {-1, 0}, {pollsMax + 1, pollsMax}} {
		if s.SetPolls(c.set); s.PollsBeforeYield() != c.want {
			t.Errorf("set to %d: %d polls, want %d", c.set, s.PollsBeforeYield(), c.want)
		}
	}
	if s, err = NewSpinner("0"); err != nil {
		t.Fatal(err)
	}
	if s.SetPolls(5); s.polls != 0 {
		t.Errorf("%d polls of a waiter that makes none", s.polls)
	}
}
