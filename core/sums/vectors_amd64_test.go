package sums

import "testing"

// Processors without vectors of 32 bytes get the same sums.
func TestLoopsWithoutVectors(t *testing.T) {
	defer func(was bool) { vectors = was }(vectors)
	vectors = false
	TestLoops(t)
}
