package coll

import "math/bits"

// IMPI ch.4, Utility functions: dim is the smallest d with 2^d >= m, hibit the
// index of the highest bit set, -1 of 0.
func dim(m int) int   { return bits.Len(uint(m - 1)) }
func hibit(v int) int { return bits.Len(uint(v)) - 1 }

// subtree is how many of n places are at and below v in the binomial tree whose
// parents are v without its lowest bit.
func subtree(v, n int) int {
	if v == 0 {
		return n
	}
	return min(v&-v, n-v)
}

// top is the highest power of two below n, at least 1: the mask of the root's
// farthest child.
func top(n int) int {
	if n <= 2 {
		return 1
	}
	return 1 << (bits.Len(uint(n-1)) - 1)
}
