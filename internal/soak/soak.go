// Package soak says how often a test repeats what it does. Most faults show in a few
// repetitions; the rare ones need many, for which there is no time in every run of all
// tests. make soak runs those tests in full.
package soak

import "os"

// Variable is the environment variable that has tests repeat in full if it is not empty.
const Variable = "IMPI_TEST_SOAK"

// Times is how often to repeat: few times, or in full.
func Times(few, full int) int {
	if os.Getenv(Variable) != "" {
		return full
	}
	return few
}
