package mpi

import (
	"errors"
	"sync"

	"github.com/openimpi/impi/core/mpierr"
)

// Class is an MPI error class, or a code of one: every class is a code.
type Class = mpierr.Class

// Error is an error with a code of its own. An error handler, a callback or a
// caller finds it with errors.As.
type Error = mpierr.Error

// codes are those that the program has added, from any goroutine.
var codes struct {
	sync.Mutex
	added mpierr.Codes
}

// withCodes has f use the codes.
func withCodes[T any](f func(*mpierr.Codes) (T, error)) (T, error) {
	codes.Lock()
	defer codes.Unlock()
	return f(&codes.added)
}

// changeCodes is withCodes for what has no result.
func changeCodes(f func(*mpierr.Codes) error) error {
	codes.Lock()
	defer codes.Unlock()
	return f(&codes.added)
}

// NewError makes an error of a class or code, those of the program included:
// what a callback returns that wants its caller to see that code.
func NewError(code Class) error {
	codes.Lock()
	defer codes.Unlock()
	return codes.added.New(code)
}

// AddErrorClass makes an error class of the program's own. It can be called
// before Init and after Finalize, as all of the functions for codes.
func AddErrorClass() (Class, error) {
	class, err := withCodes((*mpierr.Codes).Add)
	return class, failed("AddErrorClass", err)
}

// AddErrorCode makes an error code of a class, which is the program's or MPI's.
func AddErrorCode(class Class) (Class, error) {
	code, err := withCodes(func(c *mpierr.Codes) (Class, error) { return c.AddCode(class) })
	return code, failed("AddErrorCode", err)
}

// AddErrorString sets the text of a code or class of the program's own.
func AddErrorString(code Class, text string) error {
	return failed("AddErrorString", changeCodes(func(c *mpierr.Codes) error { return c.SetText(code, text) }))
}

// RemoveErrorClass forgets a class of the program's own that has no codes left.
func RemoveErrorClass(class Class) error {
	return failed("RemoveErrorClass", changeCodes(func(c *mpierr.Codes) error { return c.Remove(class, true) }))
}

// RemoveErrorCode forgets a code of the program's own.
func RemoveErrorCode(code Class) error {
	return failed("RemoveErrorCode", changeCodes(func(c *mpierr.Codes) error { return c.Remove(code, false) }))
}

// RemoveErrorString takes the text off a code or class of the program's own.
func RemoveErrorString(code Class) error {
	return failed("RemoveErrorString", changeCodes(func(c *mpierr.Codes) error { return c.SetText(code, "") }))
}

// ErrorString describes a code or class. A code of the program's own without a
// text has an empty one.
func ErrorString(code Class) (string, error) {
	text, err := withCodes(func(c *mpierr.Codes) (string, error) { return c.Text(code) })
	return text, failed("ErrorString", err)
}

// ClassOf gives the class of a code; a class's is itself (MPI_Error_class).
func ClassOf(code Class) (Class, error) {
	class, err := withCodes(func(c *mpierr.Codes) (Class, error) { return c.Class(code) })
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
