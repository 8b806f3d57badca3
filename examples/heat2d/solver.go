package main

import (
	"bytes"
	"io"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

// solver is a rank's part of the job. Its neighbours are ranks.
type solver struct {
	grid   *mpi.Comm
	layout layout
	block  *block

	ranks    [sides]int       // the neighbours; mpi.ProcNull at the border of the field
	out, in  [sides][]float64 // edges that are sent and received; columns are packed into them
	requests []mpi.Request    // persistent: started again in each step
}

// distribute reads the field at rank 0 and gives each rank its part. The field
// itself is nil elsewhere.
func distribute(o options) (s *solver, initial *field, err error) {
	s = new(solver)
	world := mpi.World()
	dims := []int{0, 0}
	if err := mpi.DimsCreate(world.Size(), dims); err != nil {
		return nil, nil, err
	}
	if s.grid, err = world.CartCreate(dims, []bool{false, false}, false); err != nil {
		return nil, nil, err
	}
	if s.grid.Rank() == 0 {
		if initial, err = load(o.image); err != nil {
			return nil, nil, err
		}
	}
	if err := s.scatter(initial, dims); err != nil {
		return nil, nil, err
	}
	return s, initial, s.connect()
}

func load(path string) (*field, error) {
	var r io.ReadSeeker = bytes.NewReader(board)
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	return readField(r)
}

func (s *solver) scatter(initial *field, dims []int) error {
	size := make([]int32, 2)
	var parts []float64
	if initial != nil {
		size[0], size[1] = int32(initial.width), int32(initial.height)
	}
	if err := mpi.Bcast(s.grid, size, 0); err != nil {
		return err
	}
	s.layout = layout{width: int(size[0]), height: int(size[1]), rows: dims[0], cols: dims[1]}
	if err := s.layout.check(); err != nil {
		return err
	}
	if initial != nil {
		parts = s.layout.split(initial)
	}
	part := s.layout.part(s.grid.Rank())
	cells := make([]float64, part.cells())
	if err := mpi.Scatterv(s.grid, parts, s.layout.counts(), nil, cells, 0); err != nil {
		return err
	}
	s.block = newBlock(part.width(), part.height(), cells)
	return nil
}

// connect finds the neighbours and prepares a message to and from each. A
// message's tag is the side where it leaves.
func (s *solver) connect() (err error) {
	if s.ranks[north], s.ranks[south], err = s.grid.CartShift(0, 1); err != nil {
		return err
	}
	if s.ranks[west], s.ranks[east], err = s.grid.CartShift(1, 1); err != nil {
		return err
	}
	for side := range sides {
		rank := s.ranks[side]
		if rank == mpi.ProcNull {
			continue
		}
		n := s.block.edge(side).n
		s.in[side], s.out[side] = make([]float64, n), make([]float64, n)
		in, err := mpi.RecvInit(s.grid, s.in[side], rank, int(side.opposite()))
		if err != nil {
			return err
		}
		out, err := mpi.SendInit(s.grid, s.out[side], rank, int(side))
		if err != nil {
			return err
		}
		s.requests = append(s.requests, in, out)
	}
	return nil
}

func (s *solver) start(b *block) error {
	for side := range sides {
		b.pack(side, s.out[side])
	}
	return mpi.Startall(s.requests)
}

func (s *solver) finish(b *block) error {
	if err := mpi.Waitall(s.requests, nil); err != nil {
		return err
	}
	for side := range sides {
		if s.ranks[side] == mpi.ProcNull {
			b.insulate(side)
		} else {
			b.unpack(side, s.in[side])
		}
	}
	return nil
}

func (s *solver) largest(v float64) (float64, error) {
	all := make([]float64, 1)
	err := mpi.Allreduce(s.grid, []float64{v}, all, mpi.Max)
	return all[0], err
}

// gather collects the parts at rank 0; on other ranks the result is nil.
func (s *solver) gather(b *block) (*field, error) {
	if s.grid.Rank() != 0 {
		return nil, mpi.Gatherv(s.grid, b.cells(), nil, nil, nil, 0)
	}
	parts := make([]float64, s.layout.width*s.layout.height)
	if err := mpi.Gatherv(s.grid, b.cells(), parts, s.layout.counts(), nil, 0); err != nil {
		return nil, err
	}
	return s.layout.join(parts), nil
}
