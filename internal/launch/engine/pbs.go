package engine

import (
	"context"
	"fmt"
	"os"
)

// PBS starts programs on the machines of a job of PBS Pro, OpenPBS or Torque, by ssh. The pbsdsh that
// these come with gives programs no standard input: neither a secret nor the news that the launcher
// is gone would reach them.
type PBS struct {
	SSH // how; its Machines are not looked at

	Environ []string // in which the variables of the job are; nil: ours
}

// InPBS reports whether variables are those of a job of PBS.
func InPBS(environ []string) bool { return lookup(environ, "PBS_NODEFILE") != "" }

// Allocation gives the machines of the file that PBS_NODEFILE names, which has one in a line, as often
// as it has procs.
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
