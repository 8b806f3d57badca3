package mpi

import (
	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Proc is a rank that is not a whole program: one of several in a simulator. Programs use Init
// instead.
type Proc struct{ p *proc.Process }

// Join makes a rank of job on a machine of the caller's choice, which has to act as the node: agent
// is the link to the agent, and node receives the rank's requests. Both are nil in a job of one
// rank.
func Join(job *life.Job, agent link.Link, m life.Machine, node life.Node) (*Proc, error) {
	return outProc(life.NewProc(job, agent, m, node))
}

// Roster is a rank's data about all ranks of the job. It does not change and is the only thing that
// grows with the job: if a program has many ranks, those of one client share one.
type Roster proc.MemberTable

// NewRoster returns the roster of the ranks for which the job's procs are described by procs. like,
// if it is not nil, is the roster of another client of the same job: equal parts are shared. procs
// is not kept.
func NewRoster(procs []life.Proc, like *Roster) (*Roster, error) {
	return outRoster(proc.NewMemberTable(procs, like.in()))
}

// Join is like the function Join, for one of several ranks that share the roster, which was made
// from job.Procs.
func (r *Roster) Join(job *life.Job, agent link.Link, m life.Machine, node life.Node) (*Proc, error) {
	return outProc(life.NewProcOf(r.in(), job, agent, m, node))
}

// Bell wakes one proc of a host for the others: see OnBoard.
type Bell = life.Bell

// OnBoard passes to the rank the board that it shares with the ranks of its host, and the bell of
// each of them, by rank. It is called before any communication.
func (x *Proc) OnBoard(b *board.Board, bells []Bell) error { return x.p.Boards.OnBoard(b, bells, nil) }

// LendMemory sets how the rank and others of its host read each other's memory. It must be
// called before OnBoard, if at all.
func (x *Proc) LendMemory(l *board.Lending) { x.p.Boards.Lending = l }

// FindParents connects a spawned world with the world that has spawned it, as Init does. All its
// ranks call it.
func (x *Proc) FindParents() error { return x.p.Failed("Init", meet.FindParents(x.p)) }
