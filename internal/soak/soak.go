// Package soak says how often a test repeats what it does. Most faults show in a few
// repetitions; the rare ones need many, for which there is no time in every run of all
// tests. make soak runs those tests in full.
package soak

import (
	"os"

	"github.com/openimpi/impi/internal/skips"
)

// Variable is the environment variable that makes tests repeat more if it is not empty: as make
// soak does it in CI, or for hours if it is Long.
const Variable = "IMPI_TEST_SOAK"

// Long is the value of Variable for hours of repetition.
const Long = "long"

// Enabled reports whether make soak runs the tests.
func Enabled() bool { return os.Getenv(Variable) != "" }

// Repetitions returns the number of repetitions: few, or full if Variable is Long.
func Repetitions(few, full int) int {
	if os.Getenv(Variable) == Long {
		return full
	}
	return few
}

// Size returns the size of a test: little, or all if make soak runs it.
func Size(little, all int) int {
	if Enabled() {
		return all
	}
	return little
}

// SkipUnlessSoak ends a test, or a case of one, that only make soak runs, and reports why.
func SkipUnlessSoak(t skips.TB, why string) {
	if !Enabled() {
		t.Helper()
		skips.Soak(t, why)
	}
}
