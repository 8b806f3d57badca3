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
)

// thread tells the calling thread from others.
func thread() uintptr { return uintptr(C.thisThread()) }

// Thread levels.
const (
	threadSingle   = 0
	threadMultiple = 4096
)

// level and mainThread are of the call of MPI_Init or MPI_Init_thread.
var (
	level      int32
	mainThread C.uintptr_t
)

//export abiInit
func abiInit(argc, argv uintptr) int32 { return initialize("Init", threadSingle) }

//export abiInitThread
func abiInitThread(argc, argv uintptr, required int32, provided uintptr) int32 {
	given := threadLevel(required)
	if code := initialize("Init_thread", given); code != success {
		return code
	}
	return anytime("Init_thread", func() error { return put("provided", provided, given) })
}

// threadLevel is the level that is given where one is required: that, or the next
// above.
func threadLevel(required int32) int32 {
	return min(max((required+1023)/1024*1024, threadSingle), threadMultiple)
}

// started and ended tell that MPI_Init and MPI_Finalize were called.
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
		return nil
	})
}

//export abiFinalize
func abiFinalize() int32 {
	return on("Finalize", 0, func() error {
		if !started.Load() {
			return mpi.ErrNotInitialized
		}
		if ended.Load() {
			return mpi.ErrFinalized
		}
		if err := leave(true); err != nil {
			return err
		}
		ended.Store(true)
		return nil
	})
}

//export abiInitialized
func abiInitialized(flag uintptr) int32 {
	return anytime("Initialized", func() error { return putFlag("flag", flag, started.Load()) })
}

//export abiFinalized
func abiFinalized(flag uintptr) int32 {
	return anytime("Finalized", func() error { return putFlag("flag", flag, ended.Load()) })
}

//export abiQueryThread
func abiQueryThread(provided uintptr) int32 {
	return on("Query_thread", 0, func() error { return put("provided", provided, level) })
}

//export abiIsThreadMain
func abiIsThreadMain(flag uintptr) int32 {
	return on("Is_thread_main", 0, func() error { return putFlag("flag", flag, C.thisThread() == mainThread) })
}

//export abiAbort
func abiAbort(c uintptr, code int32) int32 {
	return on("Abort", 0, func() error { // with any communicator: who calls it is in trouble
		mpi.Abort(int(code), fmt.Sprintf("MPI_Abort with code %d", code))
		return nil
	})
}

//export abiGetProcessorName
func abiGetProcessorName(name, length uintptr) int32 {
	return on("Get_processor_name", 0, func() error {
		n, err := putText("name", name, 256, mpi.ProcessorName())
		if err != nil {
			return err
		}
		return putInt("resultlen", length, n)
	})
}

//export abiGetLibraryVersion
func abiGetLibraryVersion(version, length uintptr) int32 {
	return anytime("Get_library_version", func() error {
		n, err := putText("version", version, 8192, mpi.Library)
		if err != nil {
			return err
		}
		return putInt("resultlen", length, n)
	})
}

//export abiGetVersion
func abiGetVersion(version, subversion uintptr) int32 {
	return numbers("Get_version", version, subversion, 5, 0)
}

//export abiAbiGetVersion
func abiAbiGetVersion(major, minor uintptr) int32 {
	return numbers("Abi_get_version", major, minor, 1, 0)
}

// numbers stores a version, at any time.
func numbers(fn string, major, minor uintptr, m, n int) int32 {
	return anytime(fn, func() error {
		if err := putInt("version", major, m); err != nil {
			return err
		}
		return putInt("subversion", minor, n)
	})
}
