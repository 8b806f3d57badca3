package script

import (
	"math/bits"

	"pgregory.net/rapid"
)

// Draws makes a generator's decisions from rapid's bits. Rapid makes a failing case smaller by
// leaving out bits and setting bits to 0, so zeros must give the simplest result.
type Draws struct{ T *rapid.T }

// Bit draws one bit. It is the only draw, so that rapid can make all decisions smaller alike.
var Bit = rapid.Bool()

// IntN returns a number below n, all with about the same probability. The number of bits that it
// takes depends only roughly on n, so that the following bits keep their meaning for a slightly
// different n.
func (d *Draws) IntN(n int) int {
	width := 40
	switch {
	case n <= 16:
		width = 7
	case n <= 1<<8:
		width = 12
	case n <= 1<<16:
		width = 20
	}
	u := uint64(0)
	for i := range width {
		if Bit.Draw(d.T, "") {
			u |= 1 << (63 - i)
		}
	}
	hi, _ := bits.Mul64(u, uint64(n))
	return int(hi)
}

// OneIn returns true once in n times.
func (d *Draws) OneIn(n int) bool { return d.IntN(n) == n-1 }

// Between returns a number from lo to hi, both included.
func (d *Draws) Between(lo, hi int) int { return lo + d.IntN(max(hi-lo, 0)+1) }

// Pick returns one of some values; the simplest one should be the first.
func Pick[V any](d *Draws, of ...V) V { return of[d.IntN(len(of))] }

// Shuffle is like that of math/rand.
func (d *Draws) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, i-d.IntN(i+1))
	}
}

// Perm returns the numbers below n in random order.
func (d *Draws) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	d.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// Repeat calls f about n times on average, while while returns true. Rapid can leave out what a
// call draws.
func (d *Draws) Repeat(n int, while func() bool, f func()) {
	for more := true; more && while(); {
		more = rapid.Custom(func(t *rapid.T) bool {
			outer := d.T
			defer func() { d.T = outer }()
			d.T = t
			if d.IntN(n) == 0 {
				return false
			}
			f()
			return true
		}).Draw(d.T, "")
	}
}
