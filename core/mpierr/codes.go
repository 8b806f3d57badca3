package mpierr

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrCode is wrapped if an error code or class is unknown, or the program may not change
// it.
var ErrCode = errors.New("invalid error code")

// MaxString is the maximum size in bytes of the text of an error (MPI_MAX_ERROR_STRING, which also
// counts a terminator).
const MaxString = 511

const maxCode = 1<<31 - 1

// Error is an error with a code: one of the program's, or a class of MPI. It carries the
// code through Go's error values: an error handler, a callback or a caller finds it with errors.As.
type Error struct {
	Code  Class // every class is a code
	Class Class
	Text  string
}

// Error returns the text, or the number if there is no text.
func (e *Error) Error() string {
	switch {
	case e.Text != "":
		return e.Text
	case e.Code != e.Class:
		return fmt.Sprintf("error code %d of %v", int(e.Code), e.Class)
	}
	return e.Class.String()
}

// Is reports whether target is an Error of the same code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Codes are the error classes and codes that a program has added to those of MPI. The zero
// value has none. The owner must serialize calls.
type Codes struct {
	last Class // last one added; 0: none
	own  map[Class]*ownCode
}

type ownCode struct {
	class Class
	text  string
	codes int // for a class: the number of its codes
}

// Add makes a class. Numbers of classes and codes are never reused.
func (c *Codes) Add() (Class, error) {
	return c.add(0)
}

// AddCode makes a code of a class, which may be one of MPI's.
func (c *Codes) AddCode(class Class) (Class, error) {
	if !class.Valid() {
		own := c.own[class]
		if own == nil || own.class != class {
			return 0, fmt.Errorf("%w: %d is no class", ErrCode, int(class))
		}
		own.codes++
	}
	return c.add(class)
}

// add gives out the next number: for a code of that class, or for a class of its own if class is 0.
func (c *Codes) add(class Class) (Class, error) {
	if c.own == nil {
		c.own, c.last = make(map[Class]*ownCode), LastCode
	}
	if c.last == maxCode {
		return 0, fmt.Errorf("%w: all were given out", ErrCode)
	}
	c.last++
	class = cmp.Or(class, c.last)
	c.own[c.last] = &ownCode{class: class}
	return c.last, nil
}

// SetText sets the text of a class or code that the program has added.
func (c *Codes) SetText(code Class, text string) error {
	own, err := c.find(code)
	switch {
	case err != nil:
		return err
	case len(text) > MaxString:
		return fmt.Errorf("%w: a text of %d bytes, at most %d", ErrCode, len(text), MaxString)
	}
	own.text = text
	return nil
}

// Remove removes one of the program's codes, or a class that has no codes any more.
func (c *Codes) Remove(code Class, isClass bool) error {
	own, err := c.find(code)
	switch {
	case err != nil:
		return err
	case isClass != (own.class == code):
		return fmt.Errorf("%w: %d is of class %d", ErrCode, int(code), int(own.class))
	case own.codes > 0:
		return fmt.Errorf("%w: class %d has %d codes", ErrCode, int(code), own.codes)
	}
	if class := c.own[own.class]; class != nil && !isClass {
		class.codes--
	}
	delete(c.own, code)
	return nil
}

func (c *Codes) find(code Class) (*ownCode, error) {
	own := c.own[code]
	switch {
	case code >= 0 && code <= LastCode:
		return nil, fmt.Errorf("%w: %d is MPI's", ErrCode, int(code))
	case own == nil:
		return nil, fmt.Errorf("%w: %d was never added, or is removed", ErrCode, int(code))
	}
	return own, nil
}

// Last returns the largest code in use: LastCode, or the last one that was added
// (MPI_LASTUSEDCODE). It never decreases.
func (c *Codes) Last() Class {
	return max(c.last, LastCode)
}

// Class returns the class of a code; a class is a code of itself (MPI_Error_class; MPI-4.1, 9.4).
// The error is ErrCode for numbers that were never given out, or removed.
func (c *Codes) Class(code Class) (Class, error) {
	if code.Valid() {
		return code, nil
	}
	if own := c.own[code]; own != nil {
		return own.class, nil
	}
	return Unknown, fmt.Errorf("%w: %d", ErrCode, int(code))
}

// Text returns the text of a code or class. It is empty for an added one without a text.
func (c *Codes) Text(code Class) (string, error) {
	if code.Valid() {
		return code.Text(), nil
	}
	if own := c.own[code]; own != nil {
		return own.text, nil
	}
	return "", fmt.Errorf("%w: %d", ErrCode, int(code))
}

// New returns an error with a code. For an unknown code its class is Unknown.
func (c *Codes) New(code Class) *Error {
	class, _ := c.Class(code)
	text, _ := c.Text(code)
	return &Error{code, class, text}
}
