package main

import (
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

// rooted are the operations with a root. The ranks take turns as root, so that none runs
// far ahead of the others, and a barrier follows the last one.
var rooted = []string{"bcast", "reduce", "gather", "scatter"}

func (w *worker) collectives(bench string, n int64) (err error) {
	root, size := 0, w.world.Size()
	for i := int64(0); i < n && err == nil; i++ {
		if err = w.collective(bench, root); root == size-1 {
			root = 0
		} else {
			root++
		}
	}
	if err == nil && slices.Contains(rooted, bench) {
		err = mpi.Barrier(w.world)
	}
	return err
}

func (w *worker) collective(bench string, root int) error {
	switch bench {
	case "barrier":
		return mpi.Barrier(w.world)
	case "bcast":
		return mpi.Bcast(w.world, w.out[:w.size], root)
	case "reduce":
		return mpi.Reduce(w.world, w.numbers(0), w.numbers(1), mpi.Sum, root)
	case "allreduce":
		return mpi.Allreduce(w.world, w.numbers(0), w.numbers(1), mpi.Sum)
	case "alltoall":
		return mpi.Alltoall(w.world, w.out, w.in)
	case "gather":
		return mpi.Gather(w.world, w.out[:w.size], w.in, root)
	case "scatter":
		return mpi.Scatter(w.world, w.out, w.in[:w.size], root)
	case "allgather":
		return mpi.Allgather(w.world, w.out[:w.size], w.in)
	case "reduce_scatter":
		return mpi.ReduceScatterBlock(w.world, w.sums[0], w.numbers(1), mpi.Sum)
	case "comm_dup":
		return free(w.world.Dup())
	default:
		return free(w.world.Split(w.rank%2, w.rank))
	}
}

func (w *worker) numbers(i int) []float64 { return w.sums[i][:w.size/8] }

func free(c *mpi.Comm, err error) error {
	if err != nil {
		return err
	}
	return c.Free()
}
