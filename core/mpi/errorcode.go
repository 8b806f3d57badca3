package mpi

import (
	"errors"

	"github.com/openimpi/impi/core/mpierr"
)

// Class is an MPI error class, or a code of one: every class is a code.
type Class = mpierr.Class

// Error is an error with a code of its own. An error handler, a callback or a
// caller finds it with errors.As.
type Error = mpierr.Error

// codes are those that the program has added.
var codes mpierr.Codes

// NewError makes an error of a class or code, those of the program included:
// what a callback returns that wants its caller to see that code.
func NewError(code Class) error { return codes.New(code) }

// AddErrorClass makes an error class of the program's own. It can be called
// before Init and after Finalize, as all of the functions for codes.
func AddErrorClass() (Class, error) {
	class, err := codes.Add()
	return class, failed("AddErrorClass", err)
}

// AddErrorCode makes an error code of a class, which is the program's or MPI's.
func AddErrorCode(class Class) (Class, error) {
	code, err := codes.AddCode(class)
	return code, failed("AddErrorCode", err)
}

// AddErrorString sets the text of a code or class of the program's own.
func AddErrorString(code Class, text string) error {
	return failed("AddErrorString", codes.SetText(code, text))
}

// RemoveErrorClass forgets a class of the program's own that has no codes left.
func RemoveErrorClass(class Class) error {
	return failed("RemoveErrorClass", codes.Remove(class, true))
}

// RemoveErrorCode forgets a code of the program's own.
func RemoveErrorCode(code Class) error {
	return failed("RemoveErrorCode", codes.Remove(code, false))
}

// RemoveErrorString takes the text off a code or class of the program's own.
func RemoveErrorString(code Class) error {
	return failed("RemoveErrorString", codes.SetText(code, ""))
}

// ErrorString describes a code or class. A code of the program's own without a
// text has an empty one.
func ErrorString(code Class) (string, error) {
	text, err := codes.Text(code)
	return text, failed("ErrorString", err)
}

// ClassOf gives the class of a code; a class's is itself (MPI_Error_class).
func ClassOf(code Class) (Class, error) {
	class, err := codes.Class(code)
	return class, failed("ClassOf", err)
}

// ErrorClass gives the MPI error class of an error that a function of this
// package has returned.
func ErrorClass(err error) Class {
	if own := coded(err); own != nil {
		return own.Class
	}
	if c, ok := mpierr.Lookup(err, classes); ok {
		return c
	}
	return mpierr.Of(err)
}

// ErrorCode gives what C programs see of an error: the code of an Error that it
// wraps, else its class.
func ErrorCode(err error) Class {
	if own := coded(err); own != nil {
		return own.Code
	}
	return ErrorClass(err)
}

// coded is the Error that err wraps, unless that is one of several that failed.
func coded(err error) *Error {
	var own *Error
	if errors.Is(err, ErrInStatus) || !errors.As(err, &own) {
		return nil
	}
	return own
}
