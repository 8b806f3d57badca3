package comm

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrDims is wrapped by the errors for impossible sizes of dimensions.
var ErrDims = errors.New("invalid dimensions")

// Cart is a Cartesian topology: ranks in row-major order, so that the last dimension varies fastest
// (MPI-4.1, 8.5.1). It is immutable.
type Cart struct {
	dims     []int
	periodic []bool
	size     int
}

// NewCart returns a topology of at most size processes. periodic reports for each dimension whether
// it is periodic. Without dimensions the topology has one process. The error is ErrDims if a
// dimension is smaller than 1, or if there are more places than processes.
func NewCart(dims []int, periodic []bool, size int) (*Cart, error) {
	if len(periodic) != len(dims) {
		return nil, fmt.Errorf("comm: %w: %d dimensions but %d periods", ErrDims, len(dims), len(periodic))
	}
	places := 1
	for i, d := range dims {
		if d < 1 {
			return nil, fmt.Errorf("comm: %w: dimension %d has size %d", ErrDims, i, d)
		}
		if places > math.MaxInt32/d {
			return nil, fmt.Errorf("comm: %w: %v has too many places", ErrDims, dims)
		}
		places *= d
	}
	if places > size {
		return nil, fmt.Errorf("comm: %w: %v has %d places for %d processes", ErrDims, dims, places, size)
	}
	return &Cart{dims: slices.Clone(dims), periodic: slices.Clone(periodic), size: places}, nil
}

// Size returns the number of places; the ranks below it are in the topology.
func (c *Cart) Size() int { return c.size }

// Dims returns a copy of the sizes of the dimensions.
func (c *Cart) Dims() []int { return slices.Clone(c.dims) }

// Periodic returns a copy of the flags that are set for periodic dimensions.
func (c *Cart) Periodic() []bool { return slices.Clone(c.periodic) }

// Coords returns the coordinates of a rank, the last one of which varies fastest (MPI-4.1, 8.2).
// The error is ErrRank if the rank has no place in the topology.
func (c *Cart) Coords(rank int) ([]int, error) {
	if uint(rank) >= uint(c.size) {
		return nil, fmt.Errorf("comm: %w: %d, the topology has %d places", ErrRank, rank, c.size)
	}
	coords := make([]int, len(c.dims))
	for i := len(c.dims) - 1; i >= 0; i-- {
		coords[i] = rank % c.dims[i]
		rank /= c.dims[i]
	}
	return coords, nil
}

// Rank returns the rank at coordinates. Coordinates in periodic dimensions wrap; for others out of
// range the error is ErrRank (MPI-4.1, 8.5.5).
func (c *Cart) Rank(coords []int) (int, error) {
	if len(coords) != len(c.dims) {
		return 0, fmt.Errorf("comm: %w: %d coordinates for %d dimensions", ErrDims, len(coords), len(c.dims))
	}
	rank := 0
	for i, x := range coords {
		d := c.dims[i]
		if c.periodic[i] {
			x = wrap(x, d)
		}
		if uint(x) >= uint(d) {
			return 0, fmt.Errorf("comm: %w: coordinate %d of dimension %d, which has size %d", ErrRank, x, i, d)
		}
		rank = rank*d + x
	}
	return rank, nil
}

func wrap(x, d int) int {
	x %= d
	if x < 0 {
		x += d
	}
	return x
}

// Shift returns rank's partners for moving data by disp along a dimension: the rank to receive from
// and the one to send to, ProcNull beyond the end of a dimension that is not periodic (MPI-4.1,
// 8.5.6).
func (c *Cart) Shift(rank, dim, disp int) (source, dest int, err error) {
	if uint(dim) >= uint(len(c.dims)) {
		return 0, 0, fmt.Errorf("comm: %w: no dimension %d among %d", ErrDims, dim, len(c.dims))
	}
	coords, err := c.Coords(rank)
	if err != nil {
		return 0, 0, err
	}
	stride := 1
	for _, d := range c.dims[dim+1:] {
		stride *= d
	}
	x := coords[dim]
	base := rank - x*stride
	return c.neighbour(base, stride, dim, x, -disp), c.neighbour(base, stride, dim, x, disp), nil
}

func (c *Cart) neighbour(base, stride, dim, x, disp int) int {
	d := c.dims[dim]
	if c.periodic[dim] {
		return base + wrap(x+disp%d, d)*stride
	}
	if disp > d || disp < -d || uint(x+disp) >= uint(d) {
		return ProcNull
	}
	return base + (x+disp)*stride
}

// Neighbours returns for each dimension the partners of a shift by one: the rank below and the rank
// above, ProcNull beyond the end (MPI-4.1, 8.6).
func (c *Cart) Neighbours(rank int) (Neighbours, error) {
	all := make([]int, 0, 2*len(c.dims))
	for dim := range c.dims {
		below, above, err := c.Shift(rank, dim, 1)
		if err != nil {
			return Neighbours{}, err
		}
		all = append(all, below, above)
	}
	return Neighbours{In: all, Out: all, Opposite: true}, nil
}

// Sub keeps the dimensions for which keep is set (MPI-4.1, 8.5.7). It returns the topology of the
// part that contains rank, a colour that the ranks of this part and no others have, and rank's
// number in the part.
func (c *Cart) Sub(rank int, keep []bool) (sub *Cart, color, key int, err error) {
	if len(keep) != len(c.dims) {
		return nil, 0, 0, fmt.Errorf("comm: %w: %d choices for %d dimensions", ErrDims, len(keep), len(c.dims))
	}
	coords, err := c.Coords(rank)
	if err != nil {
		return nil, 0, 0, err
	}
	sub = &Cart{size: 1}
	for i, d := range c.dims {
		if keep[i] {
			sub.dims = append(sub.dims, d)
			sub.periodic = append(sub.periodic, c.periodic[i])
			sub.size *= d
			key = key*d + coords[i]
		} else {
			color = color*d + coords[i]
		}
	}
	return sub, color, key, nil
}
