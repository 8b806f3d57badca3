// Package mpierr says which MPI error class an error belongs to. The sentinels
// of core's packages are in one table; nothing else in core knows the classes.
package mpierr

import (
	"errors"
	"fmt"
)

// Error is an error of an MPI function with its class.
type Error struct {
	Class Class
	Func  string // the MPI function that failed, without a prefix
	Err   error  // why; may be nil
}

// Wrap gives err, which an MPI function reported, its class. nil stays nil; an
// Error that is inside keeps its class.
func Wrap(function string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: Of(err), Func: function, Err: err}
}

// Error names the function, the class and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s (%v)", e.Func, e.Class.Text(), e.Class)
	}
	return fmt.Sprintf("%s: %v (%v)", e.Func, e.Err, e.Class)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Of gives the class of an error: Success of nil, the class of an Error that it
// is or wraps, the class of the first of the table's sentinels that it wraps,
// Other of any other.
func Of(err error) Class {
	if err == nil {
		return Success
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Lookup(err, table)
}

// Row gives a sentinel its class.
type Row struct {
	Err   error
	Class Class
}

// Lookup gives the class of the first row whose sentinel err wraps, Other if
// there is none.
func Lookup(err error, rows []Row) Class {
	for _, r := range rows {
		if errors.Is(err, r.Err) {
			return r.Class
		}
	}
	return Other
}
