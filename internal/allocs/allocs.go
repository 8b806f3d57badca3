// Package allocs measures how many bytes a piece of code takes from the heap.
// Tests use it to hold decoders to their bounds: a length that a peer only
// announces must cost nothing.
package allocs

import (
	"runtime"
	"runtime/metrics"
)

// MaxError is the maximum error of Bytes, in bytes. The runtime counts small objects when it
// continues with the next span of their size, or when it collects garbage: then objects count that
// were there before. There are 136 kinds of spans, of 8 to 32 KiB, for each thread that runs Go
// code.
const MaxError = 8 << 20

// Bytes runs f and returns about how many bytes f has allocated, freed ones included. Allocations
// of other goroutines meanwhile count too. It takes a few microseconds, so that a fuzz target can
// afford it.
func Bytes(f func()) uint64 {
	s := [...]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s[:])
	before := s[0].Value.Uint64()
	f()
	metrics.Read(s[:])
	return s[0].Value.Uint64() - before
}

// BytesExact is Bytes without the error of up to MaxError bytes. It stops the world twice.
func BytesExact(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
