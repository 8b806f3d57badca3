package construct

import (
	"fmt"

	"github.com/openimpi/impi/internal/engine/proc"
)

// The types of SplitType (MPI-4.1, 7.4.2), with the values of the MPI ABI.
const (
	CommTypeShared         = 221 // procs that can share memory: those of one machine
	CommTypeHWUnguided     = 222 // smaller parts of machines; this package has none
	CommTypeHWGuided       = 223 // parts of machines that info names
	CommTypeResourceGuided = 224 // resources that info names
)

// The one part of a machine that MPI itself has a name for, and the key of info that names parts
// (MPI-4.1, 7.4.2).
const (
	hwResource   = "mpi_hw_resource_type"
	sharedMemory = "mpi_shared_memory"
)

func SplitType(c *proc.Comm, kind, key int, info *proc.Info) (*proc.Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	hints, bad := Snapshot(info)
	color := proc.Undefined
	switch kind {
	case CommTypeShared:
		color = neighbour(c)
	case CommTypeHWGuided, CommTypeResourceGuided:
		if namesSharedMemory(hints) {
			color = neighbour(c)
		}
	case CommTypeHWUnguided, proc.Undefined:
	default:
		bad = fmt.Errorf("%w: %d is no type of SplitType", proc.ErrArg, kind)
	}
	if bad != nil {
		color, key = badChoice, 0 // takes part with badChoice, so that all members get the error
	}
	d, err := splitFor(c, color, key, "SplitType")
	if bad != nil {
		return nil, bad
	}
	if d != nil {
		setHints(d, hints, lostNow(d.Process()))
	}
	return d, err
}

func namesSharedMemory(hints *proc.Info) bool {
	if hints == nil {
		return false
	}
	value, _, err := hints.Get(hwResource)
	return err == nil && value == sharedMemory
}

const badChoice = -1

// neighbour returns the lowest rank of c on this proc's machine.
func neighbour(c *proc.Comm) int {
	self := c.Process().Worlds.ProcOf(c.Self())
	for p, rank := range c.Comm.Group().All() {
		if x := c.Process().Worlds.ProcOf(p); p == c.Self() || x.Machine != "" && x.Machine == self.Machine ||
			x.Client == self.Client && x.Node == self.Node {
			return rank
		}
	}
	return c.Rank()
}
