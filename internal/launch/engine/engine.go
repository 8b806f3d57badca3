// Package engine starts one program on each machine of a site, by what the site has for that: Slurm,
// ssh, PBS, any command that runs another one elsewhere, or somebody's hands.
//
// An Engine differs from another in two things: which machines it says there are, and by which local
// command a shell on them is reached. All else is the same for all. The shell gets a small script by
// its standard input (guard.sh), which runs the program, passes signals on, and tells how it ended.
// So neither arguments nor the secret nor the environment stand in a command line, no shell of a user
// has to understand more than one simple line, and the end of standard input, which the kernel or the
// network sees to when the launcher is killed, ends the program, too.
package engine

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Machine is a computer that a program can be started on.
type Machine struct {
	Name    string // what the engine calls it
	Address string // where others reach it, a number or a DNS name; "": Name is that
	User    string // whom to log in as; "": what the engine does without being told
	Tasks   int    // how many procs it was given for; 0: nobody has said
}

// At is where others reach the machine.
func (m Machine) At() string {
	if m.Address != "" {
		return m.Address
	}
	return m.Name
}

// Variables that each program finds in its environment.
const (
	NameVariable  = "IMPI_MACHINE"       // Name of its machine
	IndexVariable = "IMPI_MACHINE_INDEX" // which one of the machines that Start was given, from 0
)

// Command is what runs on each machine.
type Command struct {
	Args []string // the program first; without a slash it is looked for in PATH there
	Env  []string // NAME=value, added to the environment there; nothing secret
	Dir  string   // the working folder; "": what the engine does without being told

	// Secret is the first line of the program's standard input. After it nothing comes but the
	// end, when the program is to be over. It has no line break.
	Secret string

	// Grace is how long a program that was asked to end by Stop, or by the death of its launcher,
	// may take until it is killed. Full seconds count; below one it is 5.
	Grace time.Duration

	// Output gives where what the program prints on a machine, by its number, goes. Nil, or a nil
	// writer: nowhere. It is called twice for each machine, from several goroutines, and gives the
	// same writers. Each is used by one goroutine at a time, and holds programs up while it blocks.
	Output func(machine int) (stdout, stderr io.Writer)
}

// End is how a program ended on a machine.
type End struct {
	Machine int    // its number among those that Start was given
	Status  int    // what a shell says: the exit status, or 128 and the number of a signal
	Lost    string // why the end is not known, or ""; then Status is 0
}

// Engine is a way to start programs on machines.
type Engine interface {
	// Allocation gives the machines that the scheduler, a hostfile or a job file has for us. An
	// engine that knows of none gives none.
	Allocation(ctx context.Context) ([]Machine, error)

	// Start starts a command on each of the machines, and returns when it runs on all. If it
	// cannot be started on one, or ctx is over before, it runs on none, and the error names the
	// machines and says what to do. After that ctx counts for nothing.
	Start(ctx context.Context, machines []Machine, c Command) (*Started, error)
}

// Detect returns the engine of the scheduler whose job this process is part of, by the variables of an
// environment, or nil if there is none.
func Detect(environ []string) Engine {
	switch {
	case InSlurm(environ):
		return Slurm{Environ: environ}
	case InPBS(environ):
		return PBS{Environ: environ}
	}
	return nil
}

// signals are those that can be sent to programs on machines.
var signals = map[syscall.Signal]string{
	syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1",
	syscall.SIGUSR2: "USR2", syscall.SIGALRM: "ALRM", syscall.SIGTERM: "TERM", syscall.SIGKILL: "KILL",
}

// describe names machines in a message, the first few of them.
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
