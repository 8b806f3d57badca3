package main

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

// lengths are the lengths of the vectors, per rank, for short and long protocols.
var lengths = []int{1, 37, 9000}

// collectives calls every collective and checks its result. Element i of rank r's vector is
// value(r, i).
func collectives(w *mpi.Comm, n int) error {
	if err := mpi.Barrier(w); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	for _, k := range lengths {
		x := round{w: w, n: n, k: k, me: w.Rank(), size: w.Size(), root: n % w.Size()}
		for _, c := range []struct {
			name string
			call func() error
		}{
			{"bcast", x.bcast}, {"gather and scatter", x.gatherScatter}, {"gatherv and scatterv", x.ragged},
			{"allgather", x.allgather}, {"alltoall", x.alltoall}, {"reduce", x.reduce}, {"scan", x.scan},
		} {
			if err := c.call(); err != nil {
				return fmt.Errorf("%s of %d elements: %w", c.name, k, err)
			}
		}
	}
	return nil
}

type round struct {
	w              *mpi.Comm
	n, k           int
	me, size, root int
}

func (x *round) value(rank, i int) int64 { return int64(rank*1_000_003 + i*17 + x.n) }

func (x *round) vector(rank, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = x.value(rank, i)
	}
	return v
}

func same(got, want []int64) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("it begins with %v, not with %v", got[:min(3, len(got))], want[:min(3, len(want))])
	}
	return nil
}

func (x *round) all(n func(rank int) int) (all []int64) {
	for r := range x.size {
		all = append(all, x.vector(r, n(r))...)
	}
	return all
}

func (x *round) even(int) int { return x.k }

func (x *round) bcast() error {
	v := x.vector(x.me, x.k)
	if err := mpi.Bcast(x.w, v, x.root); err != nil {
		return err
	}
	return same(v, x.vector(x.root, x.k))
}

func (x *round) gatherScatter() error {
	var all []int64
	if x.me == x.root {
		all = make([]int64, x.k*x.size)
	}
	if err := mpi.Gather(x.w, x.vector(x.me, x.k), all, x.root); err != nil {
		return err
	}
	if x.me == x.root {
		if err := same(all, x.all(x.even)); err != nil {
			return err
		}
	}
	back := make([]int64, x.k)
	if err := mpi.Scatter(x.w, all, back, x.root); err != nil {
		return err
	}
	return same(back, x.vector(x.me, x.k))
}

// ragged calls the collectives whose ranks have different counts: rank r has k+r elements.
func (x *round) ragged() error {
	counts, displs, total := make([]int, x.size), make([]int, x.size), 0
	for r := range x.size {
		counts[r], displs[r] = x.k+r, total
		total += x.k + r
	}
	all := make([]int64, total)
	mine := x.vector(x.me, counts[x.me])
	if err := mpi.Gatherv(x.w, mine, all, counts, displs, x.root); err != nil {
		return err
	}
	want := x.all(func(r int) int { return counts[r] })
	if x.me == x.root {
		if err := same(all, want); err != nil {
			return err
		}
	}
	back := make([]int64, counts[x.me])
	if err := mpi.Scatterv(x.w, all, counts, displs, back, x.root); err != nil {
		return err
	}
	if err := same(back, mine); err != nil {
		return err
	}
	if err := mpi.Allgatherv(x.w, mine, all, counts, displs); err != nil {
		return err
	}
	return same(all, want)
}

func (x *round) allgather() error {
	all := make([]int64, x.k*x.size)
	if err := mpi.Allgather(x.w, x.vector(x.me, x.k), all); err != nil {
		return err
	}
	return same(all, x.all(x.even))
}

func (x *round) alltoall() error {
	got, want := make([]int64, x.k*x.size), []int64{}
	for r := range x.size {
		want = append(want, x.vector(r, x.k*x.size)[x.me*x.k:][:x.k]...)
	}
	if err := mpi.Alltoall(x.w, x.vector(x.me, x.k*x.size), got); err != nil {
		return err
	}
	return same(got, want)
}

func (x *round) sum(last, n int) []int64 {
	s := make([]int64, n)
	for r := range last + 1 {
		for i := range s {
			s[i] += x.value(r, i)
		}
	}
	return s
}

func (x *round) reduce() error {
	mine, got := x.vector(x.me, x.k), make([]int64, x.k)
	if err := mpi.Allreduce(x.w, mine, got, mpi.Sum); err != nil {
		return err
	}
	want := x.sum(x.size-1, x.k)
	if err := same(got, want); err != nil {
		return err
	}
	clear(got)
	if err := mpi.Reduce(x.w, mine, got, mpi.Sum, x.root); err != nil {
		return err
	}
	if x.me == x.root {
		if err := same(got, want); err != nil {
			return err
		}
	}
	part := make([]int64, x.k)
	if err := mpi.ReduceScatterBlock(x.w, x.vector(x.me, x.k*x.size), part, mpi.Sum); err != nil {
		return err
	}
	return same(part, x.sum(x.size-1, x.k*x.size)[x.me*x.k:][:x.k])
}

func (x *round) scan() error {
	got := make([]int64, x.k)
	if err := mpi.Scan(x.w, x.vector(x.me, x.k), got, mpi.Sum); err != nil {
		return err
	}
	return same(got, x.sum(x.me, x.k))
}
