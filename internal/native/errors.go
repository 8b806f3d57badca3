package native

import "errors"

// Errors of a site's MPI.
var (
	// ErrNoLibrary means that the site's MPI, or the shim for it, cannot be used by this program.
	ErrNoLibrary = errors.New("the site's MPI cannot be loaded")
	// ErrLinked means that the program itself is linked to another MPI.
	ErrLinked = errors.New("two MPI libraries are in one process")
	// ErrFailed wraps the errors of the site's MPI.
	ErrFailed = errors.New("the site's MPI has failed")
	// ErrLonger means that more bytes have come than were expected; ErrFailed too.
	ErrLonger = errors.New("more bytes have come than are expected")
	// ErrShorter means that fewer bytes have come than were expected; ErrFailed too.
	ErrShorter = errors.New("fewer bytes have come than are expected")
	// ErrCount means that the site's MPI does not take a count; ErrFailed too.
	ErrCount = errors.New("invalid count")
	// ErrNoMemory means that there is no memory for an operation; ErrFailed too.
	ErrNoMemory = errors.New("out of memory")
)
