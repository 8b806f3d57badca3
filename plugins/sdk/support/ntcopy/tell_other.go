//go:build !amd64 || race

package ntcopy

import "sync/atomic"

// Tell stores a value for other cores, which then also see everything that was stored before.
func Tell(word *uint64, value uint64) { atomic.StoreUint64(word, value) }
