// Package mpierr says which MPI error class an error belongs to. The sentinels
// of core's packages are in one table; nothing else in core knows the classes.
package mpierr

import "errors"

// Of returns the class of an error: Success for nil, the class of the first sentinel in the table
// that err wraps, and otherwise Other.
func Of(err error) Class {
	if err == nil {
		return Success
	}
	if c, ok := Lookup(err, table); ok {
		return c
	}
	return Other
}

// Row assigns a class to a sentinel error.
type Row struct {
	Err   error
	Class Class
}

// Lookup returns the class of the first row whose sentinel err wraps; ok is false if there is none.
func Lookup(err error, rows []Row) (c Class, ok bool) {
	for _, r := range rows {
		if errors.Is(err, r.Err) {
			return r.Class, true
		}
	}
	return Other, false
}
