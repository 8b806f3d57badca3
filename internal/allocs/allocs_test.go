package allocs

import "testing"

var sink []byte

func TestLargeObjectsAreSeenAtOnce(t *testing.T) {
	const n = 32 << 20
	for name, measure := range map[string]func(func()) uint64{"bytes": Bytes, "exactly": BytesExact} {
		if got := measure(func() { sink = make([]byte, n) }); got < n || got > n+MaxError {
			t.Errorf("%s: %d bytes for %d", name, got, n)
		}
	}
}

func TestSmallObjectsAddUp(t *testing.T) {
	const n, size = 40000, 1000
	small := func() {
		for range n {
			sink = make([]byte, size)
		}
	}
	if got := BytesExact(small); got < n*size || got > n*size*5/4 {
		t.Errorf("exactly %d bytes for %d", got, n*size)
	}
	if got := Bytes(small); got+MaxError < n*size || got > n*size*5/4+MaxError {
		t.Errorf("%d bytes for %d", got, n*size)
	}
}

// What is measured is f alone: the samples cost next to nothing.
func TestNothingCostsNothing(t *testing.T) {
	for range 2 { // the first samples make the runtime's table of metrics
		Bytes(func() {})
		BytesExact(func() {})
	}
	const n = 100
	if got := BytesExact(func() {
		for range n {
			Bytes(func() {})
		}
	}); got > n*1024 {
		t.Errorf("%d bytes for %d measurements", got, n)
	}
}

func BenchmarkBytes(b *testing.B) {
	for b.Loop() {
		Bytes(func() {})
	}
}
