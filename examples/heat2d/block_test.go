package main

import (
	"fmt"
	"math"
	"testing"
)

// testField has hot and cold cells, and neighbours that differ in every bit.
func testField(width, height int) *field {
	f := newField(width, height)
	for i := range f.t {
		f.t[i] = 0.5 + 0.49*math.Sin(float64(i*i)*0.7+float64(i))
		switch i % 29 {
		case 3:
			f.t[i] = 0
		case 11:
			f.t[i] = 1
		}
	}
	return f
}

// plain computes as the equation is written, cell by cell, without blocks.
func plain(f *field, steps int) *field {
	at := func(f *field, x, y int) float64 {
		return f.t[min(max(y, 0), f.height-1)*f.width+min(max(x, 0), f.width-1)]
	}
	now := f
	for range steps {
		next := newField(f.width, f.height)
		for i := range next.t {
			x, y := i%f.width, i/f.width
			next.t[i] = at(now, x, y)
			if f.t[i] > 0 && f.t[i] < 1 {
				flow := (at(now, x, y-1) + at(now, x, y+1)) + (at(now, x-1, y) + at(now, x+1, y)) - 4*at(now, x, y)
				next.t[i] += float64(rate * flow)
			}
		}
		now = next
	}
	return now
}

func TestOneBlockIsTheEquation(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {1, 7}, {7, 1}, {2, 2}, {31, 17}} {
		f := testField(size[0], size[1])
		got, steps := solveAlone(f, rules{steps: 40, check: 7, tolerance: -1})
		if steps != 40 {
			t.Errorf("%v: %d steps, want 40", size, steps)
		}
		if d := got.difference(plain(f, 40)); d != "" {
			t.Errorf("%v: %s", size, d)
		}
	}
}

// stitched computes with a block per rank and carries the edges over by hand.
func stitched(f *field, l layout, steps int) (*field, []float64) {
	parts, blocks := l.split(f), make([]*block, l.ranks())
	for rank := range blocks {
		p := l.part(rank)
		blocks[rank] = newBlock(p.width(), p.height(), parts[:p.cells()])
		parts = parts[p.cells():]
	}
	var changes []float64
	for range steps {
		for _, b := range blocks {
			b.relaxInner() // before any halo is there
		}
		change := 0.0
		for rank, b := range blocks {
			fillHalo(blocks, l, rank)
			b.relaxEdges()
		}
		for _, b := range blocks {
			b.step()
			change = max(change, b.change())
		}
		changes = append(changes, change)
	}
	var all []float64
	for _, b := range blocks {
		all = append(all, b.cells()...)
	}
	return l.join(all), changes
}

func fillHalo(blocks []*block, l layout, rank int) {
	row, col := rank/l.cols, rank%l.cols
	there := [sides]bool{north: row > 0, south: row < l.rows-1, west: col > 0, east: col < l.cols-1}
	offset := [sides]int{north: -l.cols, south: l.cols, west: -1, east: 1}
	b := blocks[rank]
	for s := range sides {
		if !there[s] {
			b.insulate(s)
			continue
		}
		buf := make([]float64, b.edge(s).n)
		blocks[rank+offset[s]].pack(s.opposite(), buf)
		b.unpack(s, buf)
	}
}

// The result does not depend on the layout, in no bit, and neither does the
// change that tells when to stop.
func TestAnyLayoutGivesTheSameBits(t *testing.T) {
	const steps = 60
	f := testField(23, 14)
	want, changes := stitched(f, layout{23, 14, 1, 1}, steps)
	if d := want.difference(plain(f, steps)); d != "" {
		t.Fatal("one block: ", d)
	}
	for _, grid := range [][2]int{{1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 3}, {4, 5}, {14, 23}} {
		l := layout{23, 14, grid[0], grid[1]}
		got, gotChanges := stitched(f, l, steps)
		if d := got.difference(want); d != "" {
			t.Errorf("%d x %d ranks: %s", l.cols, l.rows, d)
		}
		if fmt.Sprint(gotChanges) != fmt.Sprint(changes) {
			t.Errorf("%d x %d ranks: other changes", l.cols, l.rows)
		}
	}
}

func TestStopsWhenNothingChanges(t *testing.T) {
	f := newField(9, 9)
	for i := range f.t {
		f.t[i] = 0.25
	}
	if _, steps := solveAlone(f, rules{steps: 1000, check: 10, tolerance: 0}); steps != 10 {
		t.Errorf("%d steps for a field at rest, want those until the first check", steps)
	}
	f.t[40] = 1
	_, steps := solveAlone(f, rules{steps: 1_000_000, check: 10, tolerance: 1e-9})
	if steps%10 != 0 || steps < 100 || steps >= 1_000_000 {
		t.Errorf("stopped after %d steps", steps)
	}
}

func TestHeldCellsKeepTheirTemperature(t *testing.T) {
	f := testField(12, 12)
	got, _ := solveAlone(f, rules{steps: 200, check: 50})
	for i, v := range f.t {
		if held := v == 0 || v == 1; held != (got.t[i] == v) {
			t.Errorf("cell %d: %v became %v", i, v, got.t[i])
		}
	}
}

// Without held cells all heat stays in the field.
func TestNoHeatCrossesTheBorder(t *testing.T) {
	f := newField(20, 10)
	for i := range f.t {
		f.t[i] = 0.2 + 0.003*float64(i%20)
	}
	got, _ := solveAlone(f, rules{steps: 500, check: 100})
	sum := func(f *field) (s float64) {
		for _, v := range f.t {
			s += v
		}
		return s
	}
	if d := math.Abs(sum(got) - sum(f)); d > 1e-10 {
		t.Errorf("%g of heat came or went", d)
	}
}
