// Command run builds impi-sim with the faults of package mutant beside it, turns on one
// at a time, and lets it run seeds until one fails. `make sim-mutants` is how to call it.
//
// It exits with 1 if a fault was not found, and if seeds fail without any: then
// nothing is proved.
package main

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/internal/mutant"
	list "github.com/openimpi/impi/internal/sim/mutant"
)

func main() {
	all, err := list.All()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim-mutants:", err)
		os.Exit(mutant.Survived)
	}
	newSweeper(all).command.Main()
}
