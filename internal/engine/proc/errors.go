package proc

import (
	"errors"
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/native"
)

// Errors of arguments that the packages below do not define.
var (
	// ErrTag means a tag outside 0 to the job's MPI_TAG_UB.
	ErrTag = errors.New("invalid tag")
	// ErrRequest means a request in a state in which the call is not allowed.
	ErrRequest = errors.New("invalid request")
	// ErrMessage means a matched message that was received before, or that was never matched.
	ErrMessage = errors.New("invalid message")
	// ErrArg means an argument that is invalid by itself.
	ErrArg = errors.New("invalid argument")
	// ErrMemory means that the system has no memory of that size.
	ErrMemory = errors.New("out of memory")
	// ErrElsewhere means that the call failed on another member of the communicator.
	ErrElsewhere = errors.New("another member could not make the communicator")
	// ErrInStatus means that some of several requests failed: the error wraps each failure, and the
	// statuses contain them one by one.
	ErrInStatus = errors.New("requests failed")
)

// ErrJoin means that no proc joins at the other end of a socket, or not in time.
var ErrJoin = errors.New("the other end of the socket does not join")

// ErrPending is in the status of a request that neither is complete nor has failed, if another one
// of the same call has failed.
var ErrPending = errors.New("request is pending")

// ErrForeign means a constructor that IMPI does not define, of a communicator some of whose members
// use another MPI library.
var ErrForeign = errors.New("not among different MPI libraries")

// ForeignError returns ErrForeign with the name of what IMPI does not define.
func ForeignError(what string) error {
	return fmt.Errorf("%w: %s here, which IMPI does not define", ErrForeign, what)
}

// ErrJobOver is wrapped by all errors that are returned once the job cannot continue.
var ErrJobOver = errors.New("the job is over")

// ErrPeerGone means that the other side of a link ended in the middle.
var ErrPeerGone = errors.New("peer is gone")

// ErrErrhandler means an error handler that is missing, freed or made for
// another sort of object.
var ErrErrhandler = errors.New("invalid error handler")

// ErrNotInitialized means that Init has not been called, or failed.
var ErrNotInitialized = errors.New("mpi.Init has not been called")

// ErrFinalized means that Finalize has been called.
var ErrFinalized = errors.New("mpi.Finalize has been called")

// ErrInitialized means that Init was called again.
var ErrInitialized = errors.New("mpi.Init has been called before")

// ErrNode means that the node that started this proc and this program do not fit together.
var ErrNode = errors.New("the node and this program do not fit together")

// ErrCall means that no proc answers at a port: it is closed, its opener is gone or does not accept
// in time, or too many are waiting there.
var ErrCall = errors.New("the port does not answer")

// ErrLauncher means that another program than our launchers has started this program several times.
var ErrLauncher = errors.New("this program was not started by impiexec or impi-node")

// ErrService means that a service name cannot be published, as it is published already, or
// unpublished, as this job has not published it.
var ErrService = errors.New("invalid service name")

// ErrName means that a service name is not published.
var ErrName = errors.New("the service name is not published")

// ErrNames means that the name service does not answer, or not in time.
var ErrNames = errors.New("the service for names does not answer")

// ErrNamesDenied means that the name service has another key than this job.
var ErrNamesDenied = errors.New("the service for names denies access")

// ErrSignature means that the elements of a message do not match the datatype of its receive. The
// data is in the receive's memory all the same.
var ErrSignature = errors.New("the datatypes of a send and its receive do not match")

// ErrSpawn means that procs could not be started, or not connected with.
var ErrSpawn = errors.New("processes could not be spawned")

// ErrBuffer means a buffer without memory, or with less than its items touch.
var ErrBuffer = errors.New("invalid buffer")

// ErrAlone means that this proc cannot meet procs of other jobs: its node does not support it, or
// it has no node.
var ErrAlone = errors.New("this proc cannot meet other jobs")

// ErrUnreachable means that there is no link to a proc of another job.
var ErrUnreachable = errors.New("the proc cannot be reached")

// ErrProcFailed means that a proc that takes part in an operation is lost, in a job that continues
// without it.
var ErrProcFailed = errors.New("a process has failed")

// ErrProcFailedPending means that a receive from any source continues, but that a proc is lost that
// might have matched it.
var ErrProcFailedPending = errors.New("a process has failed that might match a pending receive")

// ErrRevoked means that a communicator was revoked.
var ErrRevoked = errors.New("the communicator is revoked")

// ErrNoSurvival means a call of a function for jobs that continue without procs that are lost.
var ErrNoSurvival = errors.New("the job ends with its first lost process: its file has no survive = true")

// Classes lists the error classes of this package's sentinels; mpierr has the classes of the
// packages below.
var Classes = []mpierr.Row{
	{Err: ErrInStatus, Class: mpierr.InStatus},
	{Err: ErrProcFailedPending, Class: mpierr.ProcFailedPending},
	{Err: ErrRevoked, Class: mpierr.Revoked},
	{Err: ErrProcFailed, Class: mpierr.ProcFailed},
	{Err: ErrNoSurvival, Class: mpierr.UnsupportedOperation},
	{Err: ErrSpawn, Class: mpierr.Spawn},
	{Err: ErrTag, Class: mpierr.Tag},
	{Err: ErrRequest, Class: mpierr.Request},
	{Err: ErrMessage, Class: mpierr.Request},
	{Err: ErrArg, Class: mpierr.Arg},
	{Err: ErrMemory, Class: mpierr.NoMem},
	{Err: ErrErrhandler, Class: mpierr.Errhandler},
	{Err: mpierr.ErrCode, Class: mpierr.Arg},
	{Err: ErrBuffer, Class: mpierr.Buffer},
	{Err: ErrPending, Class: mpierr.Pending},
	{Err: ErrInfo, Class: mpierr.Info},
	{Err: ErrInfoKey, Class: mpierr.InfoKey},
	{Err: ErrInfoValue, Class: mpierr.InfoValue},
	{Err: ErrInfoNoKey, Class: mpierr.InfoNoKey},
	{Err: ErrElsewhere, Class: mpierr.Other},
	{Err: ErrForeign, Class: mpierr.UnsupportedOperation},
	{Err: ErrNotInitialized, Class: mpierr.Other},
	{Err: ErrFinalized, Class: mpierr.Other},
	{Err: ErrInitialized, Class: mpierr.Other},
	{Err: ErrNode, Class: mpierr.Other},
	{Err: ErrSignature, Class: mpierr.Type},
	{Err: ErrLauncher, Class: mpierr.Other},
	{Err: ErrJobOver, Class: mpierr.Other},
	{Err: ErrCall, Class: mpierr.Port},
	{Err: ErrUnreachable, Class: mpierr.ProcAborted},
	{Err: ErrAlone, Class: mpierr.Other},
	{Err: ErrJoin, Class: mpierr.Other},
	{Err: ErrService, Class: mpierr.Service},
	{Err: ErrName, Class: mpierr.Name},
	{Err: ErrNames, Class: mpierr.Other},
	{Err: ErrNamesDenied, Class: mpierr.Access},
	{Err: ErrPeerGone, Class: mpierr.ProcAborted},
	{Err: native.ErrLonger, Class: mpierr.Truncate},
	{Err: native.ErrShorter, Class: mpierr.Count},
	{Err: native.ErrCount, Class: mpierr.Count},
	{Err: native.ErrNoMemory, Class: mpierr.NoMem},
}

// Class is an MPI error class, or a code of one: every class is a code.
type Class = mpierr.Class

// Error is an error with a code of its own. errors.As finds it in the errors that functions return.
type Error = mpierr.Error

var codes struct {
	sync.Mutex
	added mpierr.Codes
}

// WithCodes calls f with the codes locked.
func WithCodes[T any](f func(*mpierr.Codes) (T, error)) (T, error) {
	codes.Lock()
	defer codes.Unlock()
	return f(&codes.added)
}

// ChangeCodes is WithCodes for functions without a result.
func ChangeCodes(f func(*mpierr.Codes) error) error {
	codes.Lock()
	defer codes.Unlock()
	return f(&codes.added)
}

func NewError(code Class) error {
	codes.Lock()
	defer codes.Unlock()
	return codes.added.New(code)
}

func ErrorClass(err error) Class {
	if own := coded(err); own != nil {
		return own.Class
	}
	if c, ok := mpierr.Lookup(err, Classes); ok {
		return c
	}
	return mpierr.Of(err)
}

func ErrorCode(err error) Class {
	if own := coded(err); own != nil {
		return own.Code
	}
	return ErrorClass(err)
}

// coded returns the Error that err wraps, or nil; for ErrInStatus, which wraps several errors, it
// returns nil.
func coded(err error) *Error {
	var own *Error
	if errors.Is(err, ErrInStatus) || !errors.As(err, &own) {
		return nil
	}
	return own
}
