package soak_test

import (
	"testing"

	"github.com/openimpi/impi/internal/soak"
)

func TestTimes(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 3, soak.Long: 500} {
		t.Setenv(soak.Variable, value)
		if got := soak.Repetitions(3, 500); got != want {
			t.Errorf("%s=%q: %d times, want %d", soak.Variable, value, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for value, want := range map[string]int{"": 8, "1": 32, soak.Long: 32} {
		t.Setenv(soak.Variable, value)
		if got := soak.Size(8, 32); got != want {
			t.Errorf("%s=%q: %d, want %d", soak.Variable, value, got, want)
		}
	}
}

// fake counts skips.
type fake int

func (*fake) Helper()       {}
func (f *fake) Skip(...any) { *f++ }

func TestOnly(t *testing.T) {
	for value, want := range map[string]fake{"": 1, "1": 0, soak.Long: 0} {
		t.Setenv(soak.Variable, value)
		var f fake
		if soak.SkipUnlessSoak(&f, "it takes long"); f != want {
			t.Errorf("%s=%q: %d skips, want %d", soak.Variable, value, f, want)
		}
	}
}
