package main

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

func barrier(a []int) error {
	for range a[0] {
		if err := mpi.Barrier(world); err != nil {
			return err
		}
	}
	return nil
}

// bcast: datalen, the most items, how many roots, the roots. At the edges of packets.
func bcast(a []int) error {
	d := a[0] / 4
	for _, root := range a[3:][:a[2]] {
		for _, n := range []int{0, 1, 100, d - 1, d, d + 1, 2*d + 1, 3} {
			if n > a[1] {
				continue
			}
			b := make([]int32, n)
			for k := range b {
				if b[k] = -1; rank == root {
					b[k] = int32(k*3 + root - 5)
				}
			}
			if err := mpi.Bcast(world, b, root); err != nil {
				return err
			}
			for k, x := range b {
				if int(x) != k*3+root-5 {
					return fmt.Errorf("%w: from %d: item %d of %d is %d", errContents, root, k, n, x)
				}
			}
			// LAM takes a second one that comes too early for a note of its own.
			if err := mpi.Barrier(world); err != nil {
				return err
			}
		}
	}
	return nil
}

// compose is the composition of maps x -> a x + b, which does not commute.
func compose(in, inout []int32) {
	for i := 0; i+1 < len(in); i += 2 {
		m, b := int64(in[i])*int64(inout[i]), int64(in[i])*int64(inout[i+1])+int64(in[i+1])
		inout[i], inout[i+1] = int32(m%1000003), int32(b%1000003)
	}
}

// reduce: how many roots, the roots.
func reduce(a []int) error {
	op := mpi.NewOp(compose, false)
	for _, root := range a[1:][:a[0]] {
		for _, f := range []func(int) error{sums, maxima, bits} {
			if err := f(root); err != nil {
				return err
			}
		}
		composed, want := make([]int32, 2), []int32{int32(size + 1), int32(size - 1)}
		if err := mpi.Reduce(world, []int32{int32(rank + 2), int32(rank)}, composed, op, root); err != nil {
			return err
		}
		for k := size - 2; k >= 0; k-- {
			compose([]int32{int32(k + 2), int32(k)}, want)
		}
		if rank == root && (composed[0] != want[0] || composed[1] != want[1]) {
			return fmt.Errorf("%w: maps to %d: %v, want %v", errContents, root, composed, want)
		}
	}
	return nil
}

func sums(root int) error {
	in, out := make([]int32, 100), make([]int32, 100)
	for k := range in {
		in[k] = int32(rank*100 + k)
	}
	if err := mpi.Reduce(world, in, out, mpi.Sum, root); err != nil {
		return err
	}
	for k, x := range out {
		if rank == root && int(x) != size*(size-1)/2*100+size*k {
			return fmt.Errorf("%w: sum to %d: item %d is %d", errContents, root, k, x)
		}
	}
	return nil
}

func maxima(root int) error {
	y := make([]float64, 3)
	if err := mpi.Reduce(world, []float64{float64(rank), -float64(rank), 0.5}, y, mpi.Max, root); err != nil {
		return err
	}
	if rank == root && (y[0] != float64(size-1) || y[1] != 0 || y[2] != 0.5) {
		return fmt.Errorf("%w: maxima to %d: %v", errContents, root, y)
	}
	return nil
}

// bits reduces C's longs.
func bits(root int) error {
	in, out := []int{1 << rank, -rank}, make([]int, 2)
	long := datatype.ByName("MPI_LONG")
	if err := world.Reduce(mpi.Typed(in, 2, long), mpi.Typed(out, 2, long), mpi.BOr, root); err != nil {
		return err
	}
	if rank == root && out[0] != 1<<size-1 {
		return fmt.Errorf("%w: bits to %d: %d", errContents, root, out[0])
	}
	return nil
}

// allreduce: items.
func allreduce(a []int) error {
	x, y := make([]float64, a[0]), make([]float64, a[0])
	for round := range 3 {
		for k := range x {
			x[k], y[k] = float64(rank+k+round), -1
		}
		if err := mpi.Allreduce(world, x, y, mpi.Sum); err != nil {
			return err
		}
		for k := range y {
			if y[k] != float64(size*(size-1)/2)+float64(size*(k+round)) {
				return fmt.Errorf("%w: round %d: item %d is %g", errContents, round, k, y[k])
			}
		}
	}
	return nil
}
