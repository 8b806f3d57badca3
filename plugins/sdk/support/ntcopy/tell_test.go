package ntcopy

import (
	"sync/atomic"
	"testing"
)

// Who sees what Tell stores sees what was stored before.
func TestTell(t *testing.T) {
	const rounds = 2000
	var word, data [2]uint64
	go func() {
		for i := uint64(1); i <= rounds; i++ {
			for atomic.LoadUint64(&word[1]) != i-1 {
			}
			data[0] = 3 * i
			Tell(&word[0], i)
		}
	}()
	for i := uint64(1); i <= rounds; i++ {
		for atomic.LoadUint64(&word[0]) != i {
		}
		if data[0] != 3*i {
			t.Fatalf("round %d: %d", i, data[0])
		}
		Tell(&word[1], i)
	}
}
