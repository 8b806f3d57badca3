package fileview

import (
	"fmt"
	"math"
	"sort"
)

// Series is N runs of Len bytes; the first begins at Off, and each other one Stride bytes after the
// beginning of the one before.
type Series struct{ Off, Len, Stride, N int64 }

func (s Series) end() int64 { return s.Off + (s.N-1)*s.Stride + s.Len }

func (s Series) moved(by int64) Series {
	s.Off += by
	return s
}

// List is runs of bytes of a file in their order, none of which overlap. The zero value has no
// runs.
type List struct {
	series []Series
	from   []int64 // bytes in the series before each one
	bytes  int64
	runs   int64
}

// Len returns the number of bytes of the runs.
func (l *List) Len() int64 { return l.bytes }

// Runs returns the number of runs. Series may contain many in one element.
func (l *List) Runs() int64 { return l.runs }

// Series returns the series, in their order.
func (l *List) Series() []Series { return l.series }

// First returns where the first run begins, or 0 if there is none.
func (l *List) First() int64 {
	if len(l.series) == 0 {
		return 0
	}
	return l.series[0].Off
}

// End returns where the last run ends, or 0 if there is none.
func (l *List) End() int64 {
	if len(l.series) == 0 {
		return 0
	}
	return l.series[len(l.series)-1].end()
}

func (l *List) grow(n int) {
	l.series, l.from = make([]Series, 0, n), make([]int64, 0, n)
}

// Add adds runs after those that the list has.
func (l *List) Add(s Series) {
	if s.N > 1 && s.Stride == s.Len {
		s.Len, s.N = s.Len*s.N, 1
	}
	l.bytes += s.Len * s.N
	l.runs += s.N
	if n := len(l.series); n > 0 && l.series[n-1].join(s) {
		if l.series[n-1].N == 1 {
			l.runs-- // two have become one
		}
		return
	}
	l.series = append(l.series, s)
	l.from = append(l.from, l.bytes-s.Len*s.N)
}

// join adds the runs of next to s and reports true, if both make one series.
func (s *Series) join(next Series) bool {
	switch {
	case s.N == 1 && next.N == 1 && next.Off == s.Off+s.Len:
		s.Len += next.Len
	case s.Len != next.Len:
		return false
	case s.N == 1 && (next.N == 1 || next.Off == s.Off+next.Stride):
		s.Stride, s.N = next.Off-s.Off, 1+next.N
	case s.N > 1 && next.Off == s.Off+s.N*s.Stride && (next.N == 1 || next.Stride == s.Stride):
		s.N += next.N
	default:
		return false
	}
	return true
}

// add is Add for series that nobody has checked.
func (l *List) add(s Series) error {
	switch {
	case s.N <= 0 || s.Len <= 0:
		return nil
	case len(l.series) == maxSeries:
		return fmt.Errorf("%w: it has more than %d parts that are not evenly spaced", ErrType, maxSeries)
	case s.N > 1 && s.Stride < s.Len, s.Off < l.End():
		return fmt.Errorf("%w: a part of it begins before the end of the part before", ErrType)
	}
	l.Add(s)
	return nil
}

// Parse makes a list of series from another proc, all of which are between lo and hi.
func Parse(series []Series, lo, hi int64) (l List, err error) {
	for _, s := range series {
		if s.N <= 0 || s.Len <= 0 || s.Off < lo || s.Len > hi-s.Off || s.N > 1 && (s.Stride <= 0 || s.N-1 > (hi-s.Off-s.Len)/s.Stride) {
			return l, fmt.Errorf("%w: %d runs of %d bytes from %d on, each %d behind the other, not between %d and %d", ErrOffset, s.N, s.Len, s.Off, s.Stride, lo, hi)
		}
		if err := l.add(s); err != nil {
			return l, err
		}
	}
	return l, nil
}

// Before returns the number of bytes of the runs before byte end of the file.
func (l *List) Before(end int64) int64 {
	i := sort.Search(len(l.series), func(i int) bool { return l.series[i].Off >= end }) - 1
	if i < 0 {
		return 0
	}
	s, in := l.series[i], end-l.series[i].Off
	if s.N == 1 {
		return l.from[i] + min(in, s.Len)
	}
	whole := min(in/s.Stride, s.N)
	n := whole * s.Len
	if whole < s.N {
		n += min(in-whole*s.Stride, s.Len)
	}
	return l.from[i] + n
}

// slice calls f for the series that hold the n bytes of the runs that follow the first pos bytes.
func (l *List) slice(pos, n int64, f func(s Series)) {
	for i := sort.Search(len(l.from), func(i int) bool { return l.from[i] > pos }) - 1; n > 0; i++ {
		s := l.series[i]
		skip := max(pos-l.from[i], 0)
		if k := skip / s.Len; k > 0 {
			s.Off, s.N, skip = s.Off+k*s.Stride, s.N-k, skip-k*s.Len
		}
		if part := min(s.Len-skip, n); skip > 0 || part < s.Len {
			f(Series{s.Off + skip, part, part, 1})
			n -= part
			s.Off, s.N = s.Off+s.Stride, s.N-1
		}
		if whole := min(s.N, n/s.Len); whole > 0 {
			f(Series{s.Off, s.Len, s.Stride, whole})
			n -= whole * s.Len
			s.Off, s.N = s.Off+whole*s.Stride, s.N-whole
		}
		if s.N > 0 && n > 0 {
			f(Series{s.Off, n, n, 1})
			n = 0
		}
	}
}

// Between returns the parts of the runs between bytes lo and hi of the file.
func (l *List) Between(lo, hi int64) (part List) {
	from := l.Before(lo)
	l.slice(from, l.Before(hi)-from, part.Add)
	return part
}

// Cursor goes through the runs of a list, which does not change meanwhile.
type Cursor struct {
	Extent      // the run, or the rest of it; Len is 0 after the last one
	left, next  int64
	stride, len int64 // of the series
	rest        []Series
}

// Cursor returns a cursor at the first run.
func (l *List) Cursor() Cursor {
	c := Cursor{rest: l.series}
	c.advance()
	return c
}

func (c *Cursor) advance() {
	if c.left == 0 {
		if len(c.rest) == 0 {
			c.Extent = Extent{Off: math.MaxInt64}
			return
		}
		s := c.rest[0]
		c.rest = c.rest[1:]
		c.left, c.next, c.stride, c.len = s.N, s.Off, s.Stride, s.Len
	}
	c.Extent = Extent{c.next, c.len}
	c.next += c.stride
	c.left--
}

// whole returns how many runs from here on are whole ones of one series, end at hi or before and
// have no more than room bytes together.
func (c *Cursor) whole(hi, room int64) int64 {
	if c.Len != c.len || hi-c.Off < c.len {
		return 0
	}
	n := min(c.left+1, room/c.len)
	if c.left > 0 {
		n = min(n, (hi-c.Off-c.len)/c.stride+1)
	}
	return n
}

// skip goes on by n runs, as whole has counted them.
func (c *Cursor) skip(n int64) {
	c.next += (n - 1) * c.stride
	c.left -= n - 1
	c.advance()
}

// Take advances by n bytes of the run.
func (c *Cursor) Take(n int64) {
	if n == c.Len {
		c.advance()
		return
	}
	c.Off, c.Len = c.Off+n, c.Len-n
}
