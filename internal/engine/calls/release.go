//go:build (amd64 || arm64) && !race

package calls

import (
	"sync/atomic"
	"unsafe"
)

// These store 0. Go's own store waits, on amd64, until all stores before it have left the core,
// among them the one that reports room to a sender: some nanoseconds in which another proc waits
// for the program's next step.

// releaseLock stores 0 with release order: who reads the 0 sees all stores before it.
//
//go:noescape
func releaseLock(lock *atomic.Uint32)

// releaseCall needs no atomic store: who sees the 0 takes the lock before it looks at anything
// else. A plain store is inlined into the caller; assembly would be two calls.
func releaseCall(open *atomic.Uint64) { *(*uint64)(unsafe.Pointer(open)) = 0 }

// add adds to a number that no other thread writes: it is not atomic.
func add(n *atomic.Uint64, by uint64) { *(*uint64)(unsafe.Pointer(n)) += by }
