package main

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

func barrier(a []int) {
	for range a[0] {
		check(mpi.Barrier(world))
	}
}

// bcast: datalen, the most items, how many roots, the roots. Lengths around the limits of
// packets.
func bcast(a []int) {
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
			check(mpi.Bcast(world, b, root))
			for k, x := range b {
				if int(x) != k*3+root-5 {
					fail("from %d: item %d of %d is %d", root, k, n, x)
				}
			}
			// If the second message comes too early, LAM may take it for an internal message.
			check(mpi.Barrier(world))
		}
	}
}

// compose is the composition of maps x -> a x + b, which does not commute.
func compose(in, inout []int32) {
	for i := 0; i+1 < len(in); i += 2 {
		m, b := int64(in[i])*int64(inout[i]), int64(in[i])*int64(inout[i+1])+int64(in[i+1])
		inout[i], inout[i+1] = int32(m%1000003), int32(b%1000003)
	}
}

// reduce: how many roots, the roots.
func reduce(a []int) {
	op := mpi.NewOp(compose, false)
	for _, root := range a[1:][:a[0]] {
		for _, f := range []func(int){sums, maxima, bits} {
			f(root)
		}
		composed, want := make([]int32, 2), []int32{int32(size + 1), int32(size - 1)}
		check(mpi.Reduce(world, []int32{int32(rank + 2), int32(rank)}, composed, op, root))
		for k := size - 2; k >= 0; k-- {
			compose([]int32{int32(k + 2), int32(k)}, want)
		}
		if rank == root && (composed[0] != want[0] || composed[1] != want[1]) {
			fail("maps to %d: %v, want %v", root, composed, want)
		}
	}
}

func sums(root int) {
	in, out := make([]int32, 100), make([]int32, 100)
	for k := range in {
		in[k] = int32(rank*100 + k)
	}
	check(mpi.Reduce(world, in, out, mpi.Sum, root))
	for k, x := range out {
		if rank == root && int(x) != size*(size-1)/2*100+size*k {
			fail("sum to %d: item %d is %d", root, k, x)
		}
	}
}

func maxima(root int) {
	y := make([]float64, 3)
	check(mpi.Reduce(world, []float64{float64(rank), -float64(rank), 0.5}, y, mpi.Max, root))
	if rank == root && (y[0] != float64(size-1) || y[1] != 0 || y[2] != 0.5) {
		fail("maxima to %d: %v", root, y)
	}
}

// bits reduces C's longs.
func bits(root int) {
	in, out := []int{1 << rank, -rank}, make([]int, 2)
	long := datatype.ByName("MPI_LONG")
	check(world.Reduce(mpi.Typed(in, 2, long), mpi.Typed(out, 2, long), mpi.BOr, root))
	if rank == root && out[0] != 1<<size-1 {
		fail("bits to %d: %d", root, out[0])
	}
}

// allreduce sums vectors of a[0] items at all procs, three times.
func allreduce(a []int) {
	x, y := make([]float64, a[0]), make([]float64, a[0])
	for round := range 3 {
		for k := range x {
			x[k], y[k] = float64(rank+k+round), -1
		}
		check(mpi.Allreduce(world, x, y, mpi.Sum))
		for k := range y {
			if y[k] != float64(size*(size-1)/2)+float64(size*(k+round)) {
				fail("round %d: item %d is %g", round, k, y[k])
			}
		}
	}
}
