//go:build (amd64 || arm64) && !race

package calls

import "sync/atomic"

// These store 0 so that what was stored before is seen first. Go's own store waits, on amd64, until all
// stores before it have left the core, among them the one that tells a sender that there is room: some
// nanoseconds in which somebody waits for what the program does next.

//go:noescape
func releaseLock(lock *atomic.Uint32)

//go:noescape
func releaseCall(open *atomic.Uint64)
