package main

import "encoding/binary"

// primes counts the primes from first on and below end, by their last digits.
func primes(first, end int) (count [digits]int64) {
	for n := max(first, 2); n < end; n++ {
		if prime(n) {
			count[n%digits]++
		}
	}
	return count
}

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// store and load put a number into memory that other procs of this machine have,
// too.
func store(mem []byte, x int64) { binary.NativeEndian.PutUint64(mem, uint64(x)) }

func load(mem []byte) int64 { return int64(binary.NativeEndian.Uint64(mem)) }
