// Package faults has a list of faults, each a small change of a function of ours, to
// prove that "impi-conform protocol" sees them: run builds the node, the server and the
// interpreter with all of them, turns on one at a time, and plays the cases that must
// catch it. A case that no fault is named for proves nothing.
//
// The list is faults.txt, in the form of package mutant; the numbers of
// the cases are at the end of a fault's head, in brackets. Nothing is ever written to the
// sources.
package faults

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/openimpi/impi/internal/mutant"
)

//go:embed faults.txt
var list string

// Fault is a change of the sources and the cases that must fail because of it.
type Fault struct {
	mutant.Mutant
	Cases []string
}

// All returns the list. The numbers of faults, for mutant.Switch, begin with 1.
func All() ([]Fault, error) {
	mutants, err := mutant.Parse(list)
	if err != nil {
		return nil, err
	}
	all := make([]Fault, len(mutants))
	for i, m := range mutants {
		what, cases, ok := strings.Cut(strings.TrimSuffix(m.What, "]"), " [")
		if !ok {
			return nil, fmt.Errorf("%w: %s names no cases", mutant.ErrList, m.Name)
		}
		m.What = what
		all[i] = Fault{m, strings.Fields(cases)}
		for n, id := range all[i].Cases {
			all[i].Cases[n] = "IMPI-" + id
		}
	}
	return all, nil
}

// Mutants returns the changes without their cases.
func Mutants(all []Fault) []mutant.Mutant {
	list := make([]mutant.Mutant, len(all))
	for i, f := range all {
		list[i] = f.Mutant
	}
	return list
}
