package mpi

import (
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Init joins this proc to its job and blocks until all sites of it are there.
// It must be called once, before anything else of this package but Initialized,
// Finalized and Wtime. A program that no impi-node started is a job of its own,
// with one rank, unless another launcher has started several of it: ErrLauncher.
//
// Every function of this package may be called from several goroutines at a
// time (MPI_THREAD_MULTIPLE).
func Init() error { return life.Init() }

// Finalize leaves the job. It is collective over World: it waits until every
// proc of every site has called it. Messages that were sent before are delivered.
// Before anything else it deletes the attributes of Self, the last one first; where
// that fails MPI goes on.
func Finalize() error { return life.Finalize() }

// Initialized tells whether Init has returned without error.
func Initialized() bool { return proc.Initialized() }

// Finalized tells whether Finalize has begun.
func Finalized() bool { return proc.Finalized() }

// Abort ends the whole job, on all sites, and does not return. code becomes the
// exit status of the job; why is printed with this rank's number.
func Abort(code int, why string) { proc.Abort(code, why) }

// Library names this MPI library and its version.
const Library = proc.Library

// Wtime gives the seconds since some moment before Init, by a clock that never
// goes back. Ranks' clocks are not synchronised.
func Wtime() float64 { return proc.Wtime() }

// Wtick gives the resolution of Wtime in seconds.
func Wtick() float64 { return proc.Wtick() }

// ProcessorName gives the name of the machine that this rank runs on.
func ProcessorName() string { return proc.ProcessorName() }
