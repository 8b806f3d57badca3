package main

import "testing"

// There are 168 primes below 1000; of those below 10 each digit has one.
func TestPrimes(t *testing.T) {
	if got, want := primes(0, 10), [digits]int64{2: 1, 3: 1, 5: 1, 7: 1}; got != want {
		t.Errorf("below 10: %v", got)
	}
	sum := int64(0)
	for first := 0; first < 1000; first += 7 { // blocks are all there is, and nothing twice
		for _, n := range primes(first, min(first+7, 1000)) {
			sum += n
		}
	}
	if sum != 168 {
		t.Errorf("%d below 1000", sum)
	}
}

func TestStored(t *testing.T) {
	mem := make([]byte, 8)
	if store(mem, -5); load(mem) != -5 {
		t.Error(load(mem))
	}
}
