package mpi

import "errors"

// The faults of arguments that no lower package knows.
var (
	// ErrTag means a tag outside 0 to the job's MPI_TAG_UB.
	ErrTag = errors.New("invalid tag")
	// ErrRequest means a request that cannot be used so.
	ErrRequest = errors.New("invalid request")
	// ErrMessage means a matched message that was received before, or never was one.
	ErrMessage = errors.New("invalid message")
	// ErrArg means an argument that is wrong in itself.
	ErrArg = errors.New("invalid argument")
	// ErrElsewhere means that the call failed on another member of the communicator.
	ErrElsewhere = errors.New("another member could not make the communicator")
	// ErrInStatus means that some of several requests failed: the error wraps
	// each failure, and the statuses have them one by one.
	ErrInStatus = errors.New("requests failed")
)
