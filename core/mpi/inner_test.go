package mpi

import (
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/engine/window"
)

// What tests compare with, and use, of the engine's own.
var (
	emptyStatus    = Status(proc.EmptyStatus)
	procNullStatus = Status(proc.ProcNullStatus)
)

func elementsAt[T Type](s []T, rank int, disp int64) Target {
	return Target(window.ElementsAt(s, rank, disp))
}

// outComm is a communicator of the engine's as programs have it.
func outComm(c *proc.Comm, err error) (*Comm, error) { return (*Comm)(c), err }
