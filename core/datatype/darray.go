package datatype

import "fmt"

// Distribution is how a dimension of an array is distributed over processes (MPI-4.1, 5.1.4). The
// values are those of MPI's ABI.
type Distribution int64

// The distributions, and the argument for the default block size of the distribution.
const (
	DistributeBlock  Distribution = 17
	DistributeCyclic Distribution = 18
	DistributeNone   Distribution = 16

	DistributeDefault = 19
)

// Spread is the distribution of one dimension in Darray: Size indices over Procs processes,
// in blocks of Arg, which may be DistributeDefault.
type Spread struct {
	Size  int64
	How   Distribution
	Arg   int64
	Procs int64
}

// Darray returns the type of rank's part of an array of old that is distributed over size processes
// (MPI-4.1, 5.1.4). The processes form a grid whose last dimension varies fastest, whatever the
// order of the array. The extent is the whole array.
func Darray(size, rank int64, spreads []Spread, order Order, old *Type) (*Type, error) {
	d, err := usable(old)
	if err != nil {
		return nil, err
	}
	if err := checkDarray(size, rank, spreads, order); err != nil {
		return nil, err
	}
	coords := make([]int64, len(spreads))
	for i := len(spreads) - 1; i >= 0; i-- {
		coords[i], rank = rank%spreads[i].Procs, rank/spreads[i].Procs
	}
	g := grower{d: d, stride: d.extent(), order: order, dims: len(spreads)}
	for i := range spreads {
		dim := g.dim(i)
		spreads[dim].take(&g, coords[dim])
	}
	return g.finish(how{combiner: CombinerDarray, args: darrayArgs(size, coords, spreads, order), old: d})
}

func darrayArgs(size int64, coords []int64, spreads []Spread, order Order) []int64 {
	rank := int64(0)
	for i, s := range spreads {
		rank = rank*s.Procs + coords[i]
	}
	n := len(spreads)
	args := make([]int64, 3+4*n+1)
	args[0], args[1], args[2], args[3+4*n] = size, rank, int64(n), int64(order)
	for i, s := range spreads {
		args[3+i], args[3+n+i], args[3+2*n+i], args[3+3*n+i] = s.Size, int64(s.How), s.Arg, s.Procs
	}
	return args
}

func checkDarray(size, rank int64, spreads []Spread, order Order) error {
	if len(spreads) == 0 || size < 1 || rank < 0 || rank >= size {
		return fmt.Errorf("datatype: %w: darray of %d dimensions for rank %d of %d", ErrArg, len(spreads), rank, size)
	}
	grid := int64(1)
	for i, s := range spreads {
		if err := s.check(); err != nil {
			return fmt.Errorf("datatype: darray: dimension %d: %w", i, err)
		}
		if s.Procs > size/grid {
			return fmt.Errorf("datatype: %w: darray: a grid of more than %d processes", ErrArg, size)
		}
		grid *= s.Procs
	}
	if grid != size {
		return fmt.Errorf("datatype: %w: darray: a grid of %d processes for %d", ErrArg, grid, size)
	}
	return checkOrder(order)
}

func (s Spread) check() error {
	switch {
	case s.Size < 1 || s.Procs < 1:
		return fmt.Errorf("%w: size %d over %d processes", ErrArg, s.Size, s.Procs)
	case s.How == DistributeNone:
		if s.Procs != 1 {
			return fmt.Errorf("%w: not distributed, but over %d processes", ErrArg, s.Procs)
		}
		return nil
	case s.How != DistributeBlock && s.How != DistributeCyclic:
		return fmt.Errorf("%w: distribution %d, want block (%d), cyclic (%d) or none (%d)",
			ErrArg, s.How, DistributeBlock, DistributeCyclic, DistributeNone)
	}
	if s.Arg == DistributeDefault {
		return nil
	}
	if s.Arg < 1 || s.How == DistributeBlock && s.Arg < (s.Size-1)/s.Procs+1 {
		return fmt.Errorf("%w: blocks of %d for size %d over %d processes", ErrArg, s.Arg, s.Size, s.Procs)
	}
	return nil
}

// take selects the indices of a dimension that belong to the process at a coordinate.
func (s Spread) take(g *grower, at int64) {
	switch s.How {
	case DistributeNone:
		g.take(s.Size, []piece{{0, s.Size}})
	case DistributeBlock:
		length := s.Arg
		if length == DistributeDefault {
			length = (s.Size-1)/s.Procs + 1
		}
		first := min(g.mul(at, length), s.Size)
		g.take(s.Size, []piece{{first, min(length, s.Size-first)}})
	default:
		length := s.Arg
		if length == DistributeDefault {
			length = 1
		}
		first, period := g.mul(at, length), g.mul(s.Procs, length)
		if g.over || first >= s.Size {
			g.take(s.Size, nil)
			return
		}
		left := s.Size - first
		g.cyclic(s.Size, first, length, period, left/period, min(left%period, length))
	}
}
