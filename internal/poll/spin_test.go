package poll

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
		if s := spinner(t, setting); s.Budget() != want {
			t.Errorf("%q: budget %v, want %v", setting, s.Budget(), want)
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

func TestComputingNeighboursEndSpinning(t *testing.T) {
	s := spinner(t, "auto")
	var slept bool
	for range 10 {
		slept = s.observe(time.Millisecond)
	}
	if !slept || s.Budget() != spinMin {
		t.Errorf("after long yields: sleeps %v, budget %v", slept, s.Budget())
	}
	for range 30 {
		s.Hit()
	}
	if s.Budget() < spinMax {
		t.Errorf("after hits: budget %v", s.Budget())
	}
}

func TestOtherWaitersAreLetIn(t *testing.T) {
	s := spinner(t, "auto")
	if s.observe(2 * shared) {
		t.Error("sleeps although the core comes back at once")
	}
	if s.eager != 0 || s.Budget() != spinMax {
		t.Errorf("eager %d, budget %v", s.eager, s.Budget())
	}
	for range eagerMax {
		s.observe(shared / 10)
	}
	if s.eager != eagerMax {
		t.Errorf("alone again, but eager is %d", s.eager)
	}
}

func TestFixedBudgetStays(t *testing.T) {
	s := spinner(t, "20us")
	for range 10 {
		s.observe(time.Millisecond)
	}
	if s.Budget() != 20*time.Microsecond {
		t.Errorf("budget %v", s.Budget())
	}
}
