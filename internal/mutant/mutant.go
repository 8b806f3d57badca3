// Package mutant tries faults: each a small change of a function of our sources, put in
// on purpose, to prove that somebody sees it: a simulator, a tester. Programs are built
// once with all faults of a list, each behind a switch, and run with one of them on at a
// time. Nothing is ever written to the sources.
//
// The lists are kept by those who use them. One looks like this:
//
//	== name: what it breaks
//	file
//	-a line that goes
//	+a line that comes in its place
//	 a line around them, there to say which place is meant
package mutant

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrList is wrapped by the errors of a list that cannot be read, and of a
// fault that does not fit its file any more.
var ErrList = errors.New("mutant")

// Mutant is one deliberate fault: lines of a source file, and what takes their place.
type Mutant struct {
	Name string
	What string // what it breaks, in words
	File string // from the root of the module, with slashes
	Old  string // whole lines of the file
	New  string // lines that replace them
}

// Parse reads a list. It ignores lines that begin with #.
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

// Apply returns the file with the fault. The lines that it changes must be there
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
