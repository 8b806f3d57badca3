package mpi

import (
	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/plugins/sdk/link"
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

// Roster is what a rank has to know of all ranks of the job. It does not change
// and is the only thing that grows with the job: where a program has many ranks,
// those of one client share one.
type Roster proc.MemberTable

// NewRoster makes the roster of the ranks to which a job's procs look like this.
// like, if there is one, is of another client of the same job: what is the same
// is shared. procs is not kept.
func NewRoster(procs []life.Proc, like *Roster) (*Roster, error) {
	return outRoster(proc.NewMemberTable(procs, like.in()))
}

// Join is the function Join for one of several ranks that share the roster,
// which was made of job.Procs.
func (r *Roster) Join(job *life.Job, agent link.Link, m life.Machine, node life.Node) (*Proc, error) {
	return outProc(life.NewProcOf(r.in(), job, agent, m, node))
}

// Bell wakes one proc of a host for the others: see OnBoard.
type Bell = life.Bell

// OnBoard gives the rank the board that it shares with the ranks of its host, and what wakes each of
// them, by rank. It is called before any communication.
func (x *Proc) OnBoard(b *board.Board, bells []Bell) error { return x.p.Boards.OnBoard(b, bells, nil) }

// LendMemory tells how the rank and others of its host read each other's memory. It is called before
// OnBoard, if at all.
func (x *Proc) LendMemory(l *board.Lending) { x.p.Boards.Lends = l }

// FindParents connects a spawned world with the one that has spawned it, as Init does. All its
// ranks call it.
func (x *Proc) FindParents() error { return x.p.Failed("Init", meet.FindParents(x.p)) }
