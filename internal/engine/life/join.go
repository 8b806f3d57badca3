package life

import (
	"fmt"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// What a simulator gives a rank that is not its whole program.
type (
	// Job is the job as the node tells it.
	Job = wireup.Job
	// Proc is a rank as the job tells it.
	Proc = wireup.Proc
	// Message is what the node and a rank say to each other.
	Message = wireup.Message
	// Machine has the clock and the poll set of a rank.
	Machine = machine.Machine
	// Node hears what a rank wants.
	Node = machine.Node
	// Bell wakes a rank for others of its host.
	Bell = machine.Bell
)

// NewProc makes a rank of a job: see mpi.Join.
func NewProc(job *Job, agent link.Link, m Machine, node Node) (*proc.Process, error) {
	p, err := proc.NewProcess(job, agent, m, node)
	if err != nil {
		return nil, proc.Failed("Init", err)
	}
	return p, nil
}

// NewProcOf makes one of several ranks that share a member table, which was made of job.Procs.
func NewProcOf(r *proc.MemberTable, job *Job, agent link.Link, m Machine, node Node) (*proc.Process, error) {
	if n := r.Directory().Len(); n != job.Size() {
		return nil, proc.Failed("Init", fmt.Errorf("%w: a table of %d ranks for a job of %d", proc.ErrNode, n, job.Size()))
	}
	p, err := r.NewProcess(job, agent, m, node)
	if err != nil {
		return nil, proc.Failed("Init", err)
	}
	return p, nil
}
