// Package mutant has a list of faults in core, to prove that the simulator sees them:
// run builds it with all of them, turns on one at a time, and runs seeds until one
// fails. A fault that no seed finds is a hole in the generator of programs or in a
// checker, or none.
//
// The list is faults.txt.
package mutant

import (
	_ "embed"

	"github.com/openimpi/impi/internal/mutant"
)

//go:embed faults.txt
var faults string

// All gives the list.
func All() ([]mutant.Mutant, error) { return mutant.Parse(faults) }
