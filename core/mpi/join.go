package mpi

import (
	"fmt"
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

// Join is the function Join for one of several ranks that share the roster,
// which was made of job.Procs.
func (r *Roster) Join(job *wireup.Job, agent link.Link, m machine.Machine, node machine.Node) (*Proc, error) {
	if r.directory.Len() != len(job.Procs) {
		return nil, failed("Init", fmt.Errorf("%w: a roster of %d ranks for a job of %d", ErrNode, r.directory.Len(), len(job.Procs)))
	}
	p, err := r.newProcess(job, agent, m, node)
	if err != nil {
		return nil, failed("Init", err)
	}
	return &Proc{p}, nil
}

// CommJoin is the function CommJoin for this rank.
func (x *Proc) CommJoin(fd int) (*Comm, error) { return x.p.commJoin(fd) }

// PublishName is the function PublishName for this rank.
func (x *Proc) PublishName(service string, info *Info, port string) error {
	return x.p.publishName(service, info, port)
}

// UnpublishName is the function UnpublishName for this rank.
func (x *Proc) UnpublishName(service string, info *Info, port string) error {
	return x.p.unpublishName(service, info, port)
}

// LookupName is the function LookupName for this rank.
func (x *Proc) LookupName(service string, info *Info) (port string, err error) {
	return x.p.lookupName(service, info)
}

// OpenPort is the function OpenPort for this rank.
func (x *Proc) OpenPort(info *Info) (string, error) { return x.p.openPort(info) }

// ClosePort is the function ClosePort for this rank.
func (x *Proc) ClosePort(name string) error { return x.p.closePort(name) }

// Parent is the function Parent for this rank.
func (x *Proc) Parent() *Comm { return x.p.parents() }

// Remains tells what is left of this rank's dealings with other worlds.
func (x *Proc) Remains() Remains { return x.p.remains() }
