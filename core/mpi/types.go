package mpi

// Generalized are the functions of a generalized request: an operation of the
// program's own that is waited for like those of MPI. Each may be nil. They are
// called in the goroutine of the MPI call that needs them, and may call MPI.
type Generalized struct {
	// Query fills in the status of the operation, which is complete. It may be
	// called more than once.
	Query func(st *Status) error
	// Free is called once, last of all: when the operation is complete and
	// the request has been completed or freed.
	Free func() error
	// Cancel is asked to take the operation back, complete or not. If that works,
	// Query says so by SetCancelled; Complete is to be called in any case.
	Cancel func(complete bool) error
}
