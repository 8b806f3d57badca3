package mpi

import "github.com/openimpi/impi/internal/engine/meet"

// String names what there is.
func (r Remains) String() string { return meet.Remains(r).String() }

// Command is a program that Spawn starts.
type Command struct {
	Path  string   // a name without a slash is looked up; a relative path starts from the program's folder of the job file
	Args  []string // without the name of the program
	Procs int      // at least 1
	Info  *Info    // nil: none
}
