package comm

import (
	"fmt"
	"slices"
)

// DimsCreate replaces the zeros of dims by factors, in non-increasing order and as close to each
// other as possible, so that the product of all entries is n (MPI-4.1, 8.5.2). Other entries stay.
// The error is ErrDims if n is not positive, an entry is negative, or there are no such factors.
func DimsCreate(n int, dims []int) error {
	if n < 1 {
		return fmt.Errorf("comm: %w: for %d processes", ErrDims, n)
	}
	rest, free := n, 0
	for i, d := range dims {
		switch {
		case d < 0:
			return fmt.Errorf("comm: %w: dimension %d has size %d", ErrDims, i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return fmt.Errorf("comm: %w: %v does not divide %d processes", ErrDims, dims, n)
		default:
			rest /= d
		}
	}
	if free == 0 {
		if rest != 1 {
			return fmt.Errorf("comm: %w: %v is not %d processes", ErrDims, dims, n)
		}
		return nil
	}
	factors := balanced(rest, free)
	for i, d := range dims {
		if d == 0 {
			dims[i], factors = factors[0], factors[1:]
		}
	}
	return nil
}

// balanced splits n into k factors, non-increasing. Of all possibilities it takes those
// with the smallest largest factor, and of those the one with the largest smallest factor.
func balanced(n, k int) []int {
	divisors := divisorsOf(n)
	s := splitter{best: make([]int, k), current: make([]int, 0, k)}
	s.best[0] = n
	for i := 1; i < k; i++ {
		s.best[i] = 1
	}
	s.split(n, k, divisors)
	return s.best
}

func divisorsOf(n int) []int {
	var low, high []int
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			low = append(low, d)
			if d != n/d {
				high = append(high, n/d)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

type splitter struct {
	best, current []int
}

// split appends k factors with product n, none larger than the last one chosen. divisors
// are those of the number that the search began with, ascending.
func (s *splitter) split(n, k int, divisors []int) {
	if k == 1 {
		if len(s.current) > 0 && n > s.current[len(s.current)-1] {
			return
		}
		s.offer(append(s.current, n))
		return
	}
	for _, d := range divisors {
		if power(d, k, n) < n {
			continue // d to the power of k is too small: a later factor would exceed d
		}
		if d > s.best[0] || len(s.current) > 0 && d > s.current[len(s.current)-1] {
			return
		}
		if n%d == 0 {
			s.current = append(s.current, d)
			s.split(n/d, k-1, divisors)
			s.current = s.current[:len(s.current)-1]
		}
	}
}

// power is d to the k, or anything at least limit if it is that large.
func power(d, k, limit int) int {
	p := 1
	for range k {
		if p >= limit {
			return limit
		}
		p *= d
	}
	return p
}

func (s *splitter) offer(c []int) {
	last := len(c) - 1
	if c[0] < s.best[0] || c[0] == s.best[0] && c[last] > s.best[last] {
		copy(s.best, c)
	}
}
