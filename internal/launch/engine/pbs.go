package engine

import (
	"context"
	"fmt"
	"os"
)

// PBS starts programs on the machines of a job of PBS Pro, OpenPBS or Torque, by ssh. It does not
// use their pbsdsh, which gives programs no standard input: the secret, and the end of the
// launcher, would not reach them.
type PBS struct {
	SSH // starts them; its Machines are ignored

	Environ []string // has the variables of the job; nil: os.Environ
}

// InPBS reports whether environ is that of a process in a job of PBS, which has a file of nodes.
func InPBS(environ []string) bool { return lookup(environ, "PBS_NODEFILE") != "" }

// Allocation returns the machines of the file that PBS_NODEFILE names, which has one line for each
// proc.
func (e PBS) Allocation(context.Context) ([]Machine, error) {
	environ := e.Environ
	if environ == nil {
		environ = os.Environ()
	}
	path := lookup(environ, "PBS_NODEFILE")
	if path == "" {
		return nil, fmt.Errorf("this is not inside of a job of PBS, as PBS_NODEFILE is not in the environment. Get one by qsub")
	}
	machines, err := ReadHostFile(path)
	if err != nil {
		return nil, fmt.Errorf("PBS_NODEFILE: %w", err)
	}
	for i := range machines {
		machines[i].Tasks = max(machines[i].Tasks, 1)
	}
	return machines, nil
}
