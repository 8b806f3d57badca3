package mpi

import "github.com/openimpi/impi/internal/engine/meet"

// MaxServiceName is the most bytes of a service's name.
const MaxServiceName = meet.MaxServiceName

// Remains counts what a rank has to do with other worlds, and what it waits for. All
// is 0 once it has left them in order.
type Remains struct {
	Worlds    int // that were met and are remembered
	Guests    int // at the other ends of calls
	Links     int // to procs of other worlds
	Early     int // links from worlds that are not known yet
	Ports     int // that are open
	Questions int // that the node has not answered
	Requests  int // and messages that nobody has received
}

// String names what there is.
func (r Remains) String() string { return meet.Remains(r).String() }

// Command is a program that Spawn starts.
type Command struct {
	Path  string   // a name without a slash is looked up; a relative path starts from the program's folder of the job file
	Args  []string // without the name of the program
	Procs int      // at least 1
	Info  *Info    // nil: none
}
