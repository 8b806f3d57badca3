package mpi

import (
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
)

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
