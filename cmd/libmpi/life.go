//go:build cgo && !386 && !arm

package main

/*
#include <stdint.h>
#include <pthread.h>

static inline uintptr_t thisThread(void) { return (uintptr_t)pthread_self(); }
*/
import "C"

import (
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/engine/proc"
)

func thread() uintptr { return uintptr(C.thisThread()) }

// Thread levels.
const (
	threadSingle   = 0
	threadMultiple = 4096
)

// level is the thread level; mainThread is the thread that called MPI_Init or MPI_Init_thread.
var (
	level      int32
	mainThread C.uintptr_t
)

func initializeThread(fn string, required int32, provided uintptr) int32 {
	given := threadLevel(required)
	if code := initialize(fn, given); code != success {
		return code
	}
	return anytime(fn, func() error { return put("provided", provided, given) })
}

// threadLevel returns the level to provide for a required one: the same, or the next higher one
// that MPI has.
func threadLevel(required int32) int32 {
	return min(max((required+1023)/1024*1024, threadSingle), threadMultiple)
}

var started, ended atomic.Bool

func initialize(fn string, given int32) int32 {
	return anytime(fn, func() error {
		if ended.Load() {
			return mpi.ErrFinalized
		}
		if !started.CompareAndSwap(false, true) {
			return mpi.ErrInitialized
		}
		if err := join(); err != nil {
			started.Store(false)
			return err
		}
		level, mainThread = given, C.thisThread()
		if given < threadMultiple {
			proc.OneThread()
		}
		return nil
	})
}

func finalize() error {
	if !started.Load() {
		return mpi.ErrNotInitialized
	}
	if ended.Load() {
		return mpi.ErrFinalized
	}
	err := leave(true)
	if err == nil {
		ended.Store(true)
	}
	return err
}

func isMainThread() bool { return C.thisThread() == mainThread }

// abort ends the job, whatever communicator it was called with, also if that is invalid.
func abort(code int) error {
	mpi.Abort(code, fmt.Sprintf("MPI_Abort with code %d", code))
	return nil
}

// numbers returns its arguments, for generated calls that store two results.
func numbers(m, n int) (int, int) { return m, n }
