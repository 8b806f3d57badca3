package coll

import "math/bits"

// IMPI ch.4, Utility functions: dim is the smallest d with 2^d >= m, hibit the
// index of the highest bit set, -1 of 0.
func dim(m int) int   { return bits.Len(uint(m - 1)) }
func hibit(v int) int { return bits.Len(uint(v)) - 1 }

// subtree returns how many of n places are in the subtree at v of the binomial tree in which a
// place's parent is the place without its lowest bit.
func subtree(v, n int) int {
	if v == 0 {
		return n
	}
	return min(v&-v, n-v)
}

// top returns the highest power of two below n, at least 1: the distance of the root's farthest
// child.
func top(n int) int {
	if n <= 2 {
		return 1
	}
	return 1 << (bits.Len(uint(n-1)) - 1)
}
