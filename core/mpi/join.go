package mpi

import (
	"io"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// Proc is a rank that is not its whole program: one of several in a simulator.
// Programs use Init instead.
type Proc struct{ p *process }

// Join makes a rank of job on a machine of the caller's choice, which has to
// play the part of a node: agent is the link to the agent, and node hears what
// the rank wants. Both are nil in a job of one rank.
func Join(job *wireup.Job, agent link.Link, m machine.Machine, node machine.Node) (*Proc, error) {
	p, err := newProcess(job, agent, m, node)
	if err != nil {
		return nil, failed("Init", err)
	}
	return &Proc{p}, nil
}

// World is the rank's MPI_COMM_WORLD.
func (x *Proc) World() *Comm { return x.p.world }

// Self is the rank's MPI_COMM_SELF.
func (x *Proc) Self() *Comm { return x.p.self }

// Hear takes a message of the node's, with the link of a KindLink, which the
// rank then owns. It may be called at any time and does not block.
func (x *Proc) Hear(m wireup.Message, l link.Link) { x.p.hear(m, l) }

// BufferAttach is the function BufferAttach for this rank.
func (x *Proc) BufferAttach(size int) error {
	return x.p.failed("BufferAttach", x.p.bufferAttach(size))
}

// BufferDetach is the function BufferDetach for this rank.
func (x *Proc) BufferDetach() (size int, err error) {
	size, err = x.p.bufferDetach()
	return size, x.p.failed("BufferDetach", err)
}

// Finalize is the function Finalize for this rank.
func (x *Proc) Finalize() error { return x.p.failed("Finalize", x.p.finalize()) }

// Abort is the function Abort for this rank. It does not return.
func (x *Proc) Abort(code int, why string) { x.p.abort(code, why) }

// Dump writes what the rank's engine waits for, for people, a line for each
// request. The rank must not be in the middle of a call that does not sleep.
func (x *Proc) Dump(w io.Writer) { x.p.eng.Dump(w) }
