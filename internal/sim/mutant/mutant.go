// Package mutant has a list of faults, each a small change of a function of core,
// to prove that the simulator sees: run builds it with all of them, turns on one at
// a time, and runs seeds until one fails. A fault that no seed finds is a hole in
// the generator of programs or in a checker, or none.
//
// The list is faults.txt. Nothing is ever written to the sources.
package mutant

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrList is wrapped by the errors of a list that cannot be read, and of a
// fault that does not fit its file any more.
var ErrList = errors.New("mutant")

//go:embed faults.txt
var faults string

// Mutant is one fault.
type Mutant struct {
	Name string
	What string // it breaks, in words
	File string // from the root of the module, with slashes
	Old  string // whole lines of it
	New  string // in their place
}

// All gives the list.
func All() ([]Mutant, error) { return Parse(faults) }

// Parse reads a list; faults.txt says how one looks.
func Parse(text string) (all []Mutant, err error) {
	names := map[string]bool{}
	at := 0 // what comes next: 0: a head, 1: a file, 2: lines
	for i, line := range strings.Split(text, "\n") {
		bad := func(what string) ([]Mutant, error) {
			return nil, fmt.Errorf("%w: line %d: %s", ErrList, i+1, what)
		}
		head, isHead := strings.CutPrefix(line, "== ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			if at == 1 {
				return bad("the file is missing")
			}
		case isHead:
			name, what, ok := strings.Cut(head, ": ")
			if !ok || name == "" || what == "" || names[name] {
				return bad("a fault needs a name of its own, and words that say what it breaks")
			}
			names[name] = true
			all = append(all, Mutant{Name: name, What: what})
			at = 1
		case at == 0:
			return bad("a fault begins with ==")
		case at == 1:
			all[len(all)-1].File = line
			at = 2
		case !all[len(all)-1].add(line):
			return bad("lines of a fault begin with -, + or a blank")
		}
	}
	for i := range all {
		if m := &all[i]; m.Old == "" || m.Old == m.New {
			return nil, fmt.Errorf("%w: %s changes nothing", ErrList, m.Name)
		}
	}
	return all, nil
}

// add takes one line of the change.
func (m *Mutant) add(line string) bool {
	text := line[1:] + "\n"
	switch line[0] {
	case '-':
		m.Old += text
	case '+':
		m.New += text
	case ' ':
		m.Old += text
		m.New += text
	default:
		return false
	}
	return true
}

// Apply gives the file with the fault. The lines that it changes must be there
// exactly once.
func (m *Mutant) Apply(source []byte) ([]byte, error) {
	text := append([]byte("\n"), source...)
	old := []byte("\n" + m.Old) // with the end of the line before
	at := bytes.Index(text, old)
	switch {
	case at < 0:
		return nil, fmt.Errorf("%w: %s: its lines are not in %s; make it fit again:\n%s", ErrList, m.Name, m.File, m.Old)
	case bytes.Contains(text[at+1:], old):
		return nil, fmt.Errorf("%w: %s: its lines are in %s more than once; add some around them:\n%s", ErrList, m.Name, m.File, m.Old)
	}
	return slices.Concat(text[1:at+1], []byte(m.New), text[at+len(old):]), nil
}
