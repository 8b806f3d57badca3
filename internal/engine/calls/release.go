//go:build (amd64 || arm64) && !race

package calls

import (
	"sync/atomic"
	"unsafe"
)

// These store 0. Go's own store waits, on amd64, until all stores before it have left the core, among them the one
// that tells a sender that there is room: some nanoseconds in which somebody waits for what the program does next.

// releaseLock has what was stored before seen first.
//
//go:noescape
func releaseLock(lock *atomic.Uint32)

// releaseCall need not: who sees the 0 takes the lock before it looks at anything else. So it is a plain store, which
// the compiler puts where it is called; assembly would be two calls.
func releaseCall(open *atomic.Uint64) { *(*uint64)(unsafe.Pointer(open)) = 0 }

// add adds to a number that nobody else writes.
func add(n *atomic.Uint64, by uint64) { *(*uint64)(unsafe.Pointer(n)) += by }
