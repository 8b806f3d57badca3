package mpi

import (
	"errors"
	"fmt"
)

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
	// ErrInStatus means that some of several requests failed: the error wraps
	// each failure, and the statuses have them one by one.
	ErrInStatus = errors.New("requests failed")
)

// failed puts the function's name before an error.
func failed(fn string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mpi.%s: %w", fn, err)
}

// failed puts the function's name before an error of a call on c, which may be
// nil, and tells c's error handler. The process must not be locked.
func (c *Comm) failed(fn string, err error) error {
	return failed(fn, err)
}
