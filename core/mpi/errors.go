package mpi

import (
	"github.com/openimpi/impi/internal/engine/proc"
)

// The predefined handlers. ErrorsAbort ends the whole job, as ErrorsAreFatal does, and not only the
// procs of the object.
var (
	// ErrorsReturn makes the function return its error. It is the default.
	ErrorsReturn = (*Errhandler)(proc.ErrorsReturn)
	// ErrorsAreFatal ends the job: the function does not return.
	ErrorsAreFatal = (*Errhandler)(proc.ErrorsAreFatal)
	// ErrorsAbort ends the job on behalf of the procs of the object.
	ErrorsAbort = (*Errhandler)(proc.ErrorsAbort)
)
