package life

import (
	"fmt"

	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The types that a simulator needs for a rank that shares its process with others.
type (
	// Job is the job as its node describes it.
	Job = wireup.Job
	// Proc is a rank as the job describes it.
	Proc = wireup.Proc
	// Message is a message between the node and a rank.
	Message = wireup.Message
	// Machine provides the clock and the poll set of a rank.
	Machine = machine.Machine
	// Node receives the messages of a rank to its node.
	Node = machine.Node
	// Bell wakes a sleeping rank, for others of its host.
	Bell = machine.Bell
)

// NewProc makes a rank of a job: see mpi.Join.
func NewProc(job *Job, agent link.Link, m Machine, node Node) (*proc.Process, error) {
	p, err := proc.NewProcess(job, agent, m, node)
	if err != nil {
		return nil, proc.Failed("Init", err)
	}
	construct.Recover(p)
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
	construct.Recover(p)
	return p, nil
}
