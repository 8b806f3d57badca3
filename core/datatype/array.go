package datatype

import "fmt"

// Order is the order of an array's elements in memory (MPI-4.1, 5.1.3). The values are those of
// MPI's ABI.
type Order int64

// The orders.
const (
	OrderC       Order = 12 // the last dimension is contiguous
	OrderFortran Order = 15 // the first dimension is contiguous
)

// Subarray returns the type of a part of an array of items of old: in each dimension, subsizes
// items starting at starts, of the array with these sizes (MPI-4.1, 5.1.3). Its extent is the whole
// array.
func Subarray(sizes, subsizes, starts []int64, order Order, old *Type) (*Type, error) {
	d, err := usable(old)
	if err != nil {
		return nil, err
	}
	if err := checkSubarray(sizes, subsizes, starts, order); err != nil {
		return nil, err
	}
	args := append([]int64{int64(len(sizes))}, sizes...)
	args = append(append(append(args, subsizes...), starts...), int64(order))

	g := grower{d: d, stride: d.extent(), order: order, dims: len(sizes)}
	for i := range sizes {
		dim := g.dim(i)
		g.take(sizes[dim], []piece{{starts[dim], subsizes[dim]}})
	}
	return g.finish(how{combiner: CombinerSubarray, args: args, old: d})
}

func checkSubarray(sizes, subsizes, starts []int64, order Order) error {
	if len(sizes) == 0 || len(subsizes) != len(sizes) || len(starts) != len(sizes) {
		return fmt.Errorf("datatype: %w: subarray with %d sizes, %d subsizes and %d starts", ErrArg, len(sizes), len(subsizes), len(starts))
	}
	for i := range sizes {
		if sizes[i] < 1 || subsizes[i] < 1 || starts[i] < 0 || subsizes[i] > sizes[i] || starts[i] > sizes[i]-subsizes[i] {
			return fmt.Errorf("datatype: %w: subarray: dimension %d of size %d cannot have %d from %d on", ErrArg, i, sizes[i], subsizes[i], starts[i])
		}
	}
	return checkOrder(order)
}

func checkOrder(order Order) error {
	if order != OrderC && order != OrderFortran {
		return fmt.Errorf("datatype: %w: order %d, want %d (C) or %d (Fortran)", ErrArg, order, OrderC, OrderFortran)
	}
	return nil
}

// piece is count consecutive indices of a dimension of an array, from first on.
type piece struct{ first, count int64 }

// grower makes the type of a part of an array, dimension by dimension, beginning with the
// contiguous one. After each dimension d is the type of the part in the dimensions so far, and
// stride the size in bytes of the whole array in these dimensions.
type grower struct {
	calc
	d      *def
	stride int64
	order  Order
	dims   int
	err    error
}

// dim returns the index of the i-th dimension, counted from the contiguous one.
func (g *grower) dim(i int) int {
	if g.order == OrderC {
		return g.dims - 1 - i
	}
	return i
}

func (g *grower) take(size int64, pieces []piece) {
	if g.err != nil {
		return
	}
	s := shape{form: formBlocks, unit: 1, lens: []int64{}, disps: []int64{}, child: g.strided()}
	for _, p := range pieces {
		if p.count > 0 {
			s.lens, s.disps = append(s.lens, p.count), append(s.disps, g.mul(p.first, g.stride))
		}
	}
	g.grow(size, s)
}

// strided returns d with the extent stride, so that items of it follow each other at that distance.
func (g *grower) strided() *def {
	if g.d.extent() == g.stride {
		return g.d
	}
	d := alias(g.d)
	d.ub = d.lb + g.stride
	d.marks = markLB | markUB
	return d
}

// cyclic selects every period-th block of length indices, from first on: count whole
// blocks, and rest indices of the next one.
func (g *grower) cyclic(size, first, length, period, count, rest int64) {
	if g.err != nil {
		return
	}
	d := g.strided()
	step := g.mul(period, g.stride)
	whole := &def{shape: shape{form: formBlocks, count: count, length: length, stride: step, child: d}}
	if g.err = whole.measure(g.calc); g.err != nil {
		return
	}
	begin := g.mul(first, g.stride)
	end := g.add(begin, g.mul(count, step))
	s := shape{form: formStruct, count: 2, unit: 1, lens: []int64{1, rest}, disps: []int64{begin, end}, children: []*def{whole, d}}
	g.grow(size, s)
}

func (g *grower) grow(size int64, s shape) {
	d := &def{shape: s}
	if g.err = d.measure(g.calc); g.err == nil {
		g.d, g.stride = d, g.mul(g.stride, size)
	}
}

// finish returns the type, whose bounds are the array's.
func (g *grower) finish(h how) (*Type, error) {
	if g.err == nil && g.over {
		g.err = fmt.Errorf("datatype: %w: by %v", ErrTooLarge, h.combiner)
	}
	if g.err != nil {
		return nil, g.err
	}
	d, err := resized(g.d, 0, g.stride)
	if err != nil {
		return nil, err
	}
	d.how = h
	return handle(d), nil
}
