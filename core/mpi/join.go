package mpi

import (
	"io"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Proc is a rank that is not its whole program: one of several in a simulator.
// Programs use Init instead.
type Proc struct{ p *proc.Process }

// Join makes a rank of job on a machine of the caller's choice, which has to
// play the part of a node: agent is the link to the agent, and node hears what
// the rank wants. Both are nil in a job of one rank.
func Join(job *life.Job, agent link.Link, m life.Machine, node life.Node) (*Proc, error) {
	return outProc(life.NewProc(job, agent, m, node))
}

// World is the rank's MPI_COMM_WORLD.
func (x *Proc) World() *Comm { return (*Comm)(x.p.Comms.World) }

// Self is the rank's MPI_COMM_SELF.
func (x *Proc) Self() *Comm { return (*Comm)(x.p.Comms.Self) }

// Hear takes a message of the node's, with the link of a KindLink, which the
// rank then owns. It may be called at any time and does not block.
func (x *Proc) Hear(m life.Message, l link.Link) { x.p.Node.Hear(m, l) }

// BufferAttach is the function BufferAttach for this rank.
func (x *Proc) BufferAttach(size int) error {
	return x.p.AttachedBuffer().Attach(size)
}

// BufferDetach is the function BufferDetach for this rank.
func (x *Proc) BufferDetach() (size int, err error) {
	return x.p.AttachedBuffer().Detach()
}

// Finalize is the function Finalize for this rank.
func (x *Proc) Finalize() error { return x.p.Failed("Finalize", life.FinalizeProc(x.p)) }

// Abort is the function Abort for this rank. It does not return.
func (x *Proc) Abort(code int, why string) { x.p.Abort(code, why) }

// Dump writes what the rank's engine waits for, for people, a line for each
// request. The rank must not be in the middle of a call that does not sleep.
func (x *Proc) Dump(w io.Writer) { x.p.Eng.Dump(w) }

// Join is the function Join for one of several ranks that share the roster,
// which was made of job.Procs.
func (r *Roster) Join(job *life.Job, agent link.Link, m life.Machine, node life.Node) (*Proc, error) {
	return outProc(life.NewProcOf(r.in(), job, agent, m, node))
}

// CommJoin is the function CommJoin for this rank.
func (x *Proc) CommJoin(fd int) (*Comm, error) { return outComm(meet.CommJoinOf(x.p, fd)) }

// PublishName is the function PublishName for this rank.
func (x *Proc) PublishName(service string, info *Info, port string) error {
	return meet.PublishNameOf(x.p, service, info.in(), port)
}

// UnpublishName is the function UnpublishName for this rank.
func (x *Proc) UnpublishName(service string, info *Info, port string) error {
	return meet.UnpublishNameOf(x.p, service, info.in(), port)
}

// LookupName is the function LookupName for this rank.
func (x *Proc) LookupName(service string, info *Info) (port string, err error) {
	return meet.LookupNameOf(x.p, service, info.in())
}

// OpenPort is the function OpenPort for this rank.
func (x *Proc) OpenPort(info *Info) (string, error) { return meet.OpenPortOf(x.p, info.in()) }

// ClosePort is the function ClosePort for this rank.
func (x *Proc) ClosePort(name string) error { return meet.ClosePortOf(x.p, name) }

// Parent is the function Parent for this rank.
func (x *Proc) Parent() *Comm { return (*Comm)(meet.Parents(x.p)) }

// FindParents connects a spawned world with the one that has spawned it, as Init does. All its
// ranks call it.
func (x *Proc) FindParents() error { return x.p.Failed("Init", meet.FindParents(x.p)) }

// Remains tells what is left of this rank's dealings with other worlds.
func (x *Proc) Remains() Remains { return Remains(meet.RemainsOf(x.p)) }
