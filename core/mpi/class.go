package mpi

import "github.com/openimpi/impi/core/mpierr"

// ErrorClass gives the MPI error class of an error that a function of this
// package has returned.
func ErrorClass(err error) mpierr.Class {
	if c, ok := mpierr.Lookup(err, classes); ok {
		return c
	}
	return mpierr.Of(err)
}

// classes has the sentinels of this package; those of the packages below are in
// mpierr.
var classes = []mpierr.Row{
	{Err: ErrInStatus, Class: mpierr.InStatus},
	{Err: ErrTag, Class: mpierr.Tag},
	{Err: ErrRequest, Class: mpierr.Request},
	{Err: ErrMessage, Class: mpierr.Request},
	{Err: ErrArg, Class: mpierr.Arg},
	{Err: ErrErrhandler, Class: mpierr.Errhandler},
	{Err: ErrNotInitialized, Class: mpierr.Other},
	{Err: ErrFinalized, Class: mpierr.Other},
	{Err: ErrInitialized, Class: mpierr.Other},
	{Err: ErrNode, Class: mpierr.Other},
	{Err: ErrJobOver, Class: mpierr.Other},
	{Err: ErrPeerGone, Class: mpierr.ProcAborted},
}
