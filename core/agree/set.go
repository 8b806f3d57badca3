package agree

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of ranks of a group. The zero Set is empty.
type Set struct {
	words []uint64 // the last one is not 0
}

// SetOf makes a set of ranks, which must not be negative.
func SetOf(ranks ...int) (s Set) {
	for _, r := range ranks {
		s.add(r)
	}
	return s
}

// Has reports whether a rank is in the set; any number may be asked for, and negative ones never
// are.
func (s Set) Has(rank int) bool {
	return rank >= 0 && rank/64 < len(s.words) && s.words[rank/64]>>(rank%64)&1 != 0
}

// Len returns the number of ranks in the set.
func (s Set) Len() (n int) {
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// All returns the ranks in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Equal reports whether two sets have the same ranks.
func (s Set) Equal(o Set) bool { return slices.Equal(s.words, o.words) }

// Without returns the ranks of s that are not in o.
func (s Set) Without(o Set) Set {
	d := s.clone()
	for i := range min(len(d.words), len(o.words)) {
		d.words[i] &^= o.words[i]
	}
	return d.trim()
}

func (s Set) String() string { return fmt.Sprint(slices.Collect(s.All())) }

func (s *Set) add(rank int) {
	if n := rank/64 + 1 - len(s.words); n > 0 {
		s.words = append(s.words, make([]uint64, n)...)
	}
	s.words[rank/64] |= 1 << (rank % 64)
}

// nextIn returns the lowest rank of the set that is at least from, or -1.
func (s Set) nextIn(from int) int {
	for i := from / 64; i < len(s.words); i++ {
		w := s.words[i]
		if i == from/64 {
			w &= ^uint64(0) << (from % 64)
		}
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// firstNot returns the lowest rank that is not in the set.
func (s Set) firstNot() int {
	for i, w := range s.words {
		if w != ^uint64(0) {
			return i*64 + bits.TrailingZeros64(^w)
		}
	}
	return len(s.words) * 64
}

func (s Set) clone() Set { return Set{slices.Clone(s.words)} }

func (s Set) union(o Set) Set {
	if len(s.words) < len(o.words) {
		s, o = o, s
	}
	u := s.clone()
	for i, w := range o.words {
		u.words[i] |= w
	}
	return u
}

func (s Set) intersect(o Set) Set {
	d := Set{slices.Clone(s.words[:min(len(s.words), len(o.words))])}
	for i := range d.words {
		d.words[i] &= o.words[i]
	}
	return d.trim()
}

func (s Set) within(o Set) bool { return len(s.Without(o).words) == 0 }

func (s Set) trim() Set {
	for n := len(s.words); n > 0 && s.words[n-1] == 0; n-- {
		s.words = s.words[:n-1]
	}
	return s
}
