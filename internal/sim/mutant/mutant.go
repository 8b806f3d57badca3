// Package mutant lists faults in core that the simulator must find. Package run builds the
// simulator with all of them, turns on one at a time, and runs seeds until one fails. A fault that
// no seed finds shows a gap in the generator of programs or in a checker, or is harmless.
//
// The list is faults.txt.
package mutant

import (
	_ "embed"

	"github.com/openimpi/impi/internal/mutant"
)

//go:embed faults.txt
var faults string

// All returns the faults of faults.txt, in its order.
func All() ([]mutant.Mutant, error) { return mutant.Parse(faults) }
