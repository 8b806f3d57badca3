package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// field is all temperatures, row by row: 0 is cold, 1 is hot.
type field struct {
	width, height int
	t             []float64
}

func newField(width, height int) *field {
	return &field{width, height, make([]float64, width*height)}
}

// between returns the temperature at a place between the middles of cells.
func (f *field) between(x, y float64) float64 {
	x, y = min(max(x, 0), float64(f.width-1)), min(max(y, 0), float64(f.height-1))
	x0, y0 := int(x), int(y)
	x1, y1 := min(x0+1, f.width-1), min(y0+1, f.height-1)
	sx, sy := x-float64(x0), y-float64(y0)
	top := f.t[y0*f.width+x0]*(1-sx) + f.t[y0*f.width+x1]*sx
	bottom := f.t[y1*f.width+x0]*(1-sx) + f.t[y1*f.width+x1]*sx
	return top*(1-sy) + bottom*sy
}

// digest returns a hash of the field that depends on every bit.
func (f *field) digest() string {
	h := sha256.New()
	var b [8]byte
	for _, t := range f.t {
		binary.BigEndian.PutUint64(b[:], math.Float64bits(t))
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// difference describes the first difference between two fields, in any bit; "" if there is
// none.
func (f *field) difference(g *field) string {
	if f.width != g.width || f.height != g.height {
		return fmt.Sprintf("%d x %d cells against %d x %d", f.width, f.height, g.width, g.height)
	}
	for i, t := range f.t {
		if math.Float64bits(t) != math.Float64bits(g.t[i]) {
			return fmt.Sprintf("cell %d,%d is %v against %v", i%f.width, i/f.width, t, g.t[i])
		}
	}
	return ""
}

// layout says which rank has which part of a field: ranks stand in rows and
// columns as in the Cartesian communicator, row by row.
type layout struct {
	width, height int // of the field
	rows, cols    int // of the ranks
}

// rect is a part of a field: from x0 to before x1, from y0 to before y1.
type rect struct{ x0, y0, x1, y1 int }

func (r rect) width() int  { return r.x1 - r.x0 }
func (r rect) height() int { return r.y1 - r.y0 }
func (r rect) cells() int  { return r.width() * r.height() }

// part is what a rank has: parts differ by a row and a column at most.
func (l layout) part(rank int) rect {
	row, col := rank/l.cols, rank%l.cols
	return rect{
		x0: col * l.width / l.cols, x1: (col + 1) * l.width / l.cols,
		y0: row * l.height / l.rows, y1: (row + 1) * l.height / l.rows,
	}
}

func (l layout) ranks() int { return l.rows * l.cols }

func (l layout) check() error {
	if l.rows > l.height || l.cols > l.width {
		return fmt.Errorf("%d x %d cells are too few for %d x %d ranks: start fewer", l.width, l.height, l.cols, l.rows)
	}
	return nil
}

func (l layout) counts() []int {
	n := make([]int, l.ranks())
	for rank := range n {
		n[rank] = l.part(rank).cells()
	}
	return n
}

// split lists the cells of all parts, rank by rank.
func (l layout) split(f *field) []float64 {
	out := make([]float64, 0, len(f.t))
	for rank := range l.ranks() {
		p := l.part(rank)
		for y := p.y0; y < p.y1; y++ {
			out = append(out, f.t[y*f.width+p.x0:y*f.width+p.x1]...)
		}
	}
	return out
}

func (l layout) join(parts []float64) *field {
	f := newField(l.width, l.height)
	for rank := range l.ranks() {
		p := l.part(rank)
		for y := p.y0; y < p.y1; y++ {
			parts = parts[copy(f.t[y*f.width+p.x0:y*f.width+p.x1], parts):]
		}
	}
	return f
}
