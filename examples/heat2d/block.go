package main

import "math"

// rate is how much of the difference to its neighbours a cell takes over in one
// step. From 0.25 on the scheme would be unstable.
const rate = 0.22

type side int

const (
	north side = iota
	south
	west
	east
	sides
)

// opposite is the side of the neighbour that touches s.
func (s side) opposite() side { return s ^ 1 }

// block is the part of a field that one rank computes, with a rim of one cell
// (the halo) that has what the neighbours computed.
//
// Each cell is computed from the same five numbers by the same operations in the
// same order, wherever the borders between blocks are. That is why the result
// does not depend on the number of ranks, not even in the last bit.
type block struct {
	width, height int       // without the rim
	now, next     []float64 // with the rim
	rate          []float64 // 0 where the temperature is held
}

// newBlock makes a block from the cells of a part, row by row. Cells that are exactly 0 or
// 1 keep their temperature for ever.
func newBlock(width, height int, cells []float64) *block {
	n := (width + 2) * (height + 2)
	b := &block{width: width, height: height, now: make([]float64, n), next: make([]float64, n), rate: make([]float64, n)}
	for y := range height {
		for x := range width {
			i := b.at(x, y)
			b.now[i] = cells[y*width+x]
			if b.now[i] > 0 && b.now[i] < 1 {
				b.rate[i] = rate
			}
		}
	}
	return b
}

// at is the index of a cell; the rim is at -1 and at width or height.
func (b *block) at(x, y int) int { return (y+1)*(b.width+2) + x + 1 }

// cells copies the block's cells without the rim.
func (b *block) cells() []float64 {
	out := make([]float64, 0, b.width*b.height)
	for y := range b.height {
		out = append(out, b.now[b.at(0, y):b.at(b.width, y)]...)
	}
	return out
}

// strip is a row or column of cells: n of them from index first, step apart.
type strip struct{ first, step, n int }

// edge is the outermost row or column of cells on a side.
func (b *block) edge(s side) strip {
	switch s {
	case north:
		return strip{b.at(0, 0), 1, b.width}
	case south:
		return strip{b.at(0, b.height-1), 1, b.width}
	case west:
		return strip{b.at(0, 0), b.width + 2, b.height}
	default:
		return strip{b.at(b.width-1, 0), b.width + 2, b.height}
	}
}

// rim is the part of the halo on a side.
func (b *block) rim(s side) strip {
	r := b.edge(s)
	r.first += [sides]int{north: -(b.width + 2), south: b.width + 2, west: -1, east: 1}[s]
	return r
}

// pack copies the edge of a side to buf, which is as long as the edge.
func (b *block) pack(s side, buf []float64) {
	r := b.edge(s)
	for i := range buf {
		buf[i] = b.now[r.first+i*r.step]
	}
}

func (b *block) unpack(s side, buf []float64) {
	r := b.rim(s)
	for i, t := range buf {
		b.now[r.first+i*r.step] = t
	}
}

// insulate copies the edge of a side to the halo: no heat flows there.
func (b *block) insulate(s side) {
	from, to := b.edge(s), b.rim(s)
	for i := range from.n {
		b.now[to.first+i*to.step] = b.now[from.first+i*from.step]
	}
}

// relaxInner computes the cells that need no halo.
func (b *block) relaxInner() {
	for y := 1; y < b.height-1; y++ {
		b.relax(1, b.width-1, y)
	}
}

func (b *block) relaxEdges() {
	b.relax(0, b.width, 0)
	if b.height > 1 {
		b.relax(0, b.width, b.height-1)
	}
	for y := 1; y < b.height-1; y++ {
		b.relax(0, 1, y)
		if b.width > 1 {
			b.relax(b.width-1, b.width, y)
		}
	}
}

// relax computes the cells from x0 to before x1 of a row: one step of Jacobi's
// method for the heat equation. float64() keeps the compiler from fusing the
// product and the sum, which would round once instead of twice on some machines.
func (b *block) relax(x0, x1, y int) {
	n := x1 - x0
	if n <= 0 {
		return
	}
	i := b.at(x0, y)
	next, rate := b.next[i:][:n], b.rate[i:][:n]
	up, down := b.now[i-b.width-2:][:n], b.now[i+b.width+2:][:n]
	left, here, right := b.now[i-1:][:n], b.now[i:][:n], b.now[i+1:][:n]
	for k, t := range here {
		flow := (up[k] + down[k]) + (left[k] + right[k]) - 4*t
		next[k] = t + float64(rate[k]*flow)
	}
}

func (b *block) step() { b.now, b.next = b.next, b.now }

// change is the largest change of a cell in the last step. The largest of
// several numbers is the same in whatever order they are compared, so that all
// layouts stop after the same step.
func (b *block) change() float64 {
	largest := 0.0
	for y := range b.height {
		i := b.at(0, y)
		then := b.next[i:][:b.width]
		for k, t := range b.now[i:][:b.width] {
			largest = max(largest, math.Abs(t-then[k]))
		}
	}
	return largest
}
