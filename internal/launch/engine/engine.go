// Package engine starts one program on each machine of a site, with what the site has for that:
// Slurm, ssh, PBS, or another command that runs commands elsewhere.
//
// Engines differ in two things only: which machines they list, and by which local command they
// reach a shell on a machine. The shell gets a small script on its standard input (guard.sh), which
// runs the program and reports how it ended. So no arguments, secrets
// or environment are in a command line, a user's shell must understand a single simple line only,
// and the program ends when standard input ends, which happens also when the launcher is killed.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"
)

// Machine is a computer that a program can be started on.
type Machine struct {
	Name    string // what the engine calls it
	Address string // by which others reach it, an IP address or a DNS name; "": Name
	User    string // to log in as; "": the engine's default
	Tasks   int    // number of procs allocated to it; 0: not known
}

// At returns the address at which others reach the machine.
func (m Machine) At() string {
	return cmp.Or(m.Address, m.Name)
}

// Variables in the environment of each program.
const (
	NameVariable  = "IMPI_MACHINE"       // Name of its machine
	IndexVariable = "IMPI_MACHINE_INDEX" // its index among the machines that Start was given, from 0
)

// Command is what runs on each machine.
type Command struct {
	Args []string // the program first; without a slash it is looked up in PATH there
	Env  []string // NAME=value, added to the environment there; nothing secret
	Dir  string   // the working folder; "": the engine's default

	// Secret is the first line of the program's standard input. Only the end of the input follows,
	// when the program has to end. It must not contain a line break.
	Secret string

	// Grace is the time that a program has to end, after Stop or the death of its launcher, before
	// it is killed. Fractions of a second are ignored; less than one second means 5 seconds.
	Grace time.Duration

	// Output returns the writers for what the program prints on a machine, given by its index. If
	// Output or a writer is nil the output is dropped. It is called twice for each machine, from
	// several goroutines, and must return the same writers. Each is used by one goroutine at a
	// time, and blocks the program while it blocks.
	Output func(machine int) (stdout, stderr io.Writer)

	// Failing, if not nil, is called with the reason why the program cannot be started on all
	// machines, before Start ends it on the others, which may take long. Start then returns the
	// same reason with what else is known by then.
	Failing func(err error)
}

// End is how a program ended on a machine.
type End struct {
	Machine int    // its index among those that Start was given
	Status  int    // as a shell reports it: the exit status, or 128 and the number of a signal
	Lost    string // why the end is not known, or ""; then Status is 0
}

// Engine is a way to start programs on machines.
type Engine interface {
	// Allocation returns the machines that the scheduler, a hostfile or a job file has for us; none
	// if the engine knows of none.
	Allocation(ctx context.Context) ([]Machine, error)

	// Start starts a command on each of the machines, and returns when it runs on all. If it cannot
	// be started on one of them, or ctx ends before, it is stopped on all, and the error names the
	// machines and says what to do. After Start has returned, ctx has no effect.
	Start(ctx context.Context, machines []Machine, c Command) (*Started, error)
}

func describe(machines []Machine) string {
	const most = 5
	text := ""
	for i, m := range machines {
		switch {
		case i == most:
			return fmt.Sprintf("%s and %d more", text, len(machines)-most)
		case i > 0:
			text += ", "
		}
		text += m.Name
	}
	return text
}
