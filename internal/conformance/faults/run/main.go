// Command run builds impi-node, impi-server and impi-conform with the faults of package
// faults, turns on one at a time, and plays the cases that are named for it: all of them
// must fail. `make conform-mutants` is how to call it.
//
// It exits with 1 if a case has not noticed a fault, and if one fails without any: then
// nothing is proved.
package main

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/internal/conformance/faults"
	"github.com/openimpi/impi/internal/mutant"
)

func main() {
	all, err := faults.All()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conform-mutants:", err)
		os.Exit(mutant.Survived)
	}
	newJudge(all).command.Main()
}
