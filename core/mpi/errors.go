package mpi

import (
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Errhandler says what becomes of a function's error before the function
// returns it. A program that calls Free gives back its own hold only: the objects
// that the handler is set on keep it.
type Errhandler proc.Errhandler

// The predefined handlers. An impi job cannot go on without some of its procs,
// so that ErrorsAbort ends all of it, as ErrorsAreFatal does.
var (
	// ErrorsReturn lets the function return its error. It is the default.
	ErrorsReturn = (*Errhandler)(proc.ErrorsReturn)
	// ErrorsAreFatal ends the job: the function does not return.
	ErrorsAreFatal = (*Errhandler)(proc.ErrorsAreFatal)
	// ErrorsAbort ends the job on behalf of the procs of the object.
	ErrorsAbort = (*Errhandler)(proc.ErrorsAbort)
)

// Class is an MPI error class, or a code of one: every class is a code.
type Class = mpierr.Class

// Error is an error with a code of its own. An error handler, a callback or a
// caller finds it with errors.As.
type Error = mpierr.Error

// The faults of arguments that no lower package knows.
var (
	// ErrTag means a tag outside 0 to the job's MPI_TAG_UB.
	ErrTag = proc.ErrTag
	// ErrRequest means a request that cannot be used so.
	ErrRequest = proc.ErrRequest
	// ErrMessage means a matched message that was received before, or never was one.
	ErrMessage = proc.ErrMessage
	// ErrArg means an argument that is wrong in itself.
	ErrArg = proc.ErrArg
	// ErrElsewhere means that the call failed on another member of the communicator.
	ErrElsewhere = proc.ErrElsewhere
	// ErrInStatus means that some of several requests failed: the error wraps
	// each failure, and the statuses have them one by one.
	ErrInStatus = proc.ErrInStatus
)

// ErrJoin means that nobody joins at the other end of a socket, or not in time.
var ErrJoin = proc.ErrJoin

// ErrPending is in the status of a request that is neither complete nor has
// failed, where another that was waited for with it has.
var ErrPending = proc.ErrPending

// ErrForeign means a constructor that IMPI has nothing for, of a communicator
// some of whose members run another MPI library.
var ErrForeign = proc.ErrForeign

// ErrJobOver is wrapped by whatever is reported once the job cannot go on.
var ErrJobOver = proc.ErrJobOver

// ErrPeerGone means that the other side of a link ended in the middle.
var ErrPeerGone = proc.ErrPeerGone

// ErrErrhandler means an error handler that is missing, freed or made for
// another sort of object.
var ErrErrhandler = proc.ErrErrhandler

// ErrNotInitialized means that Init has not been called, or failed.
var ErrNotInitialized = proc.ErrNotInitialized

// ErrFinalized means that Finalize has been called.
var ErrFinalized = proc.ErrFinalized

// ErrInitialized means that Init was called again.
var ErrInitialized = proc.ErrInitialized

// ErrNode means that the node that started this proc does not fit it.
var ErrNode = proc.ErrNode

// ErrCall means that nobody answers at a port: it is closed, its opener is gone or
// does not accept in time, or too many are waiting there.
var ErrCall = proc.ErrCall

// ErrLauncher means that something that is no launcher of ours has started this program several
// times.
var ErrLauncher = proc.ErrLauncher

// ErrService means that a name cannot be published, as it is published already, or
// unpublished, as this job has not published it.
var ErrService = proc.ErrService

// ErrName means that no such name is published.
var ErrName = proc.ErrName

// ErrNames means that the server for names does not answer, or not in time.
var ErrNames = proc.ErrNames

// ErrNamesDenied means that the server for names has another key than this job.
var ErrNamesDenied = proc.ErrNamesDenied

// ErrSignature means that the elements of a message are not those that its receive is for. What
// came is in the receive's memory all the same.
var ErrSignature = proc.ErrSignature

// ErrSpawn means that procs could not be started, or not connected with.
var ErrSpawn = proc.ErrSpawn

// ErrBuffer means a buffer without memory, or with less than its items touch.
var ErrBuffer = proc.ErrBuffer

// ErrAlone means that this proc cannot meet those of other jobs: its node does not
// know how, or it has none.
var ErrAlone = proc.ErrAlone

// ErrUnreachable means that there is no link to a proc of another job.
var ErrUnreachable = proc.ErrUnreachable
