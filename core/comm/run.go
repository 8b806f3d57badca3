package comm

// run is part of a group: n members, from first on in equal steps, whose ranks begin with
// rank. The groups that programs make of the world by ranges have few runs, however large
// the world is.
type run struct {
	first, step int32
	rank, n     int32
}

func (r *run) at(i int) Proc { return Proc(int64(r.first) + int64(i)*int64(r.step)) }

func (r *run) ends() (low, high Proc) {
	low, high = Proc(r.first), r.at(int(r.n)-1)
	if low > high {
		low, high = high, low
	}
	return low, high
}

func (r *run) low() Proc {
	low, _ := r.ends()
	return low
}

func (r *run) index(p Proc) (i int, ok bool) {
	steps := int(p) - int(r.first)
	if r.step != 1 {
		if r.n == 1 {
			return 0, steps == 0
		}
		if steps%int(r.step) != 0 {
			return 0, false
		}
		steps /= int(r.step)
	}
	return steps, uint(steps) < uint(r.n)
}

// hits are members of a run: n of them, those with the indices from, from+step, …
type hits struct{ from, step, n int }

func (h hits) last() int { return h.from + (h.n-1)*h.step }

// common returns the members of r that are in s too. The intersection of two arithmetic
// sequences is one.
func (r *run) common(s *run) hits {
	low, high := r.ends()
	slow, shigh := s.ends()
	low, high = max(low, slow), min(high, shigh)
	if low > high {
		return hits{}
	}
	if r.n == 1 || s.n == 1 {
		return r.single(s)
	}
	a, b := int(r.step), abs(int(s.step))
	g, x := invert(abs(a), b)
	distance := int(s.first) - int(r.first)
	if distance%g != 0 {
		return hits{}
	}
	// i·a ≡ distance (mod b): the solutions are every (b/g)th.
	step := b / g
	i := wrap(distance/g, step) * x % step
	if a < 0 {
		i = wrap(-i, step)
	}
	from, to := r.between(low, high)
	if i < from {
		i += (from - i + step - 1) / step * step
	}
	if i > to {
		return hits{}
	}
	return hits{from: i, step: step, n: (to-i)/step + 1}
}

func (r *run) single(s *run) hits {
	if s.n == 1 {
		if i, ok := r.index(Proc(s.first)); ok {
			return hits{i, 1, 1}
		}
	} else if _, ok := s.index(Proc(r.first)); ok {
		return hits{0, 1, 1}
	}
	return hits{}
}

// between returns the indices of the members from low to high, both of which must be within
// the ends of the run. from is greater than to if there are none.
func (r *run) between(low, high Proc) (from, to int) {
	if r.step < 0 {
		low, high = high, low
	}
	step := int(r.step)
	from = (int(low) - int(r.first) + step - sign(step)) / step
	return from, (int(high) - int(r.first)) / step
}

// invert returns the greatest common divisor g of a and b, and x for which a·x ≡ g (mod b),
// reduced modulo b/g.
func invert(a, b int) (g, x int) {
	g, r := a, b
	x, y := 1, 0
	for r != 0 {
		q := g / r
		g, r = r, g-q*r
		x, y = y, x-q*y
	}
	return g, wrap(x, b/g)
}

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}

func sign(x int) int {
	if x < 0 {
		return -1
	}
	return 1
}
