package transporttest

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"time"
)

var leakCases = []Case{
	{"T-LEAK-01", "no-descriptors-left", "links that were closed leave no descriptor behind", noDescriptorsLeft},
	{"T-LEAK-02", "no-memory-left", "links that were closed leave no goroutine, no mapped memory and no heap behind", noMemoryLeft},
}

func noDescriptorsLeft(e *env) {
	round := func() {
		ln := e.listen()
		for range 20 {
			a, b := e.pairAt(ln)
			e.must(e.greet(a, b, "hello"))
			e.must(errors.Join(a.Close(), b.Close()))
		}
		e.must(ln.Close())
	}
	round() // descriptors that stay open are open after this round
	before := descriptors(e)
	for range 10 {
		round()
	}
	// 400 descriptors were open meanwhile; a few may belong to other code. Links may end what they
	// have under way in the background.
	after := descriptors(e)
	for deadline := time.Now().Add(e.h.Patience); after > before+10; after = descriptors(e) {
		if time.Now().After(deadline) {
			e.Fatalf("%d descriptors were open, after 200 links more it is %d", before, after)
		}
		time.Sleep(slice * time.Millisecond)
	}
}

func descriptors(e *env) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		e.Skipf("count descriptors: %v", err)
	}
	return len(list)
}

type holdings struct {
	goroutines, mappings int
	heap                 uint64
}

// Closed links may hold this much more than earlier ones did: far less than 200 links hold, and
// more than other code takes meanwhile.
const (
	spareGoroutines = 50
	spareMappings   = 50
	spareHeap       = 8 << 20
)

func (h holdings) moreThan(before holdings) bool {
	return h.goroutines > before.goroutines+spareGoroutines || h.mappings > before.mappings+spareMappings || h.heap > before.heap+spareHeap
}

func held(e *env) holdings {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		e.Skipf("count mappings: %v", err)
	}
	return holdings{runtime.NumGoroutine(), bytes.Count(maps, []byte("\n")), m.HeapAlloc}
}

func noMemoryLeft(e *env) {
	ln := e.listen()
	round := func() {
		for range 20 {
			a, b := e.pairAt(ln)
			e.must(e.greet(a, b, "hello"))
			e.must(errors.Join(a.Close(), b.Close()))
		}
	}
	round()
	before := held(e)
	for range 10 {
		round()
	}
	// Links may end what they have under way in the background.
	after := held(e)
	for deadline := time.Now().Add(e.h.Patience); after.moreThan(before); after = held(e) {
		if time.Now().After(deadline) {
			e.Fatalf("there were %d goroutines, %d mappings and %d bytes of heap; after 200 links more there are %d, %d and %d",
				before.goroutines, before.mappings, before.heap, after.goroutines, after.mappings, after.heap)
		}
		time.Sleep(slice * time.Millisecond)
	}
}
