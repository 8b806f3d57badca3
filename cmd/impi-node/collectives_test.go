package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpi"
)

// TestCollectivesOfSeveralMachines: two sites of three machines of two procs get the results
// that MPI says, by direct links and through the agents, also where the ranks of a machine do
// not follow each other.
func TestCollectivesOfSeveralMachines(t *testing.T) {
	for name, more := range map[string]string{"direct": "", "agents": `route "*" { direct = false }`} {
		t.Run(name, func(t *testing.T) {
			file, machines := machineJob(t, more)
			nodes := startOn(t, file, "collectives", machines)
			for i, s := range ends(nodes) {
				if s != 0 {
					t.Errorf("machine %d: status %d", i, s)
				}
			}
			for rank := range 12 {
				if head := nodes[rank/6*3]; !strings.Contains(head.out.String(), fmt.Sprintf("[%d] alike\n", rank)) {
					t.Errorf("the head of site %d has nothing of rank %d", rank/6, rank)
				}
			}
		})
	}
}

// collectives does collective operations in the world, in each site, and in these with the
// ranks dealt out to the machines, and checks what comes of them.
func collectives() error {
	world := mpi.World()
	dealt, err := world.Split(0, world.Rank()%2*12+world.Rank())
	if err != nil {
		return err
	}
	for _, of := range []*mpi.Comm{world, dealt} {
		site, err := of.Split(world.Rank()/6, of.Rank())
		if err != nil {
			return err
		}
		for _, c := range []*mpi.Comm{of, site} {
			for _, n := range []int{1, 300, 40000} {
				if err := rooted(c, n); err != nil {
					return fmt.Errorf("%d of %d, %d elements: %w", c.Rank(), c.Size(), n, err)
				}
				if err := reductions(c, n); err != nil {
					return fmt.Errorf("%d of %d, %d elements: %w", c.Rank(), c.Size(), n, err)
				}
			}
		}
	}
	return nil
}

// contribution is what a rank gives to operations.
func contribution(rank, n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = uint64(2*rank+3)<<32 | uint64(rank*n+i)&(1<<32-1)
	}
	return v
}

// all is what ranks before n give, one after the other.
func all(n, each int) (v []uint64) {
	for r := range n {
		v = append(v, contribution(r, each)...)
	}
	return v
}

// expect compares.
func expect(what string, got, want []uint64) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s gives %d elements that are not what they should be", what, len(got))
	}
	return nil
}

// rooted does the operations that move data.
func rooted(c *mpi.Comm, n int) error {
	size, me, root := c.Size(), c.Rank(), c.Size()-2
	if err := mpi.Barrier(c); err != nil {
		return err
	}
	buf := make([]uint64, n)
	if me == root {
		copy(buf, contribution(root, n))
	}
	if err := mpi.Bcast(c, buf, root); err != nil {
		return err
	}
	if err := expect("Bcast", buf, contribution(root, n)); err != nil {
		return err
	}
	whole := make([]uint64, size*n)
	if err := mpi.Gather(c, contribution(me, n), whole, root); err != nil {
		return err
	}
	if me == root {
		if err := expect("Gather", whole, all(size, n)); err != nil {
			return err
		}
	}
	if err := mpi.Scatter(c, all(size, n), buf, root); err != nil {
		return err
	}
	if err := expect("Scatter", buf, contribution(me, n)); err != nil {
		return err
	}
	clear(whole)
	if err := mpi.Allgather(c, contribution(me, n), whole); err != nil {
		return err
	}
	if err := expect("Allgather", whole, all(size, n)); err != nil {
		return err
	}
	// Block q of rank r is that of rank r*size+q.
	var send, want []uint64
	for q := range size {
		send = append(send, contribution(me*size+q, n)...)
		want = append(want, contribution(q*size+me, n)...)
	}
	if err := mpi.Alltoall(c, send, whole); err != nil {
		return err
	}
	return expect("Alltoall", whole, want)
}

// compose applies linear functions one after the other, which does not commute.
var compose = mpi.NewOp(func(in, inout []uint64) {
	for i, f := range in {
		inout[i] = composed(f, inout[i])
	}
}, false)

func composed(f, g uint64) uint64 {
	a, b := f>>32, f&(1<<32-1)
	return a*(g>>32)<<32 | (a*g+b)&(1<<32-1)
}

// combined is the combination of what ranks from first to before end give.
func combined(first, end, n int, f func(x, y uint64) uint64) []uint64 {
	v := contribution(first, n)
	for r := first + 1; r < end; r++ {
		for i, y := range contribution(r, n) {
			v[i] = f(v[i], y)
		}
	}
	return v
}

// reductions does the operations that combine.
func reductions(c *mpi.Comm, n int) error {
	size, me, root := c.Size(), c.Rank(), c.Size()/2
	for _, op := range []struct {
		op mpi.Op
		f  func(x, y uint64) uint64
	}{{mpi.Sum, func(x, y uint64) uint64 { return x + y }}, {compose, composed}} {
		got := make([]uint64, n)
		if err := mpi.Reduce(c, contribution(me, n), got, op.op, root); err != nil {
			return err
		}
		if me == root {
			if err := expect("Reduce", got, combined(0, size, n, op.f)); err != nil {
				return err
			}
		}
		if err := mpi.Allreduce(c, contribution(me, n), got, op.op); err != nil {
			return err
		}
		if err := expect("Allreduce", got, combined(0, size, n, op.f)); err != nil {
			return err
		}
		if err := mpi.Scan(c, contribution(me, n), got, op.op); err != nil {
			return err
		}
		if err := expect("Scan", got, combined(0, me+1, n, op.f)); err != nil {
			return err
		}
		if err := mpi.Exscan(c, contribution(me, n), got, op.op); err != nil {
			return err
		}
		if me > 0 {
			if err := expect("Exscan", got, combined(0, me, n, op.f)); err != nil {
				return err
			}
		}
		if err := mpi.ReduceScatterBlock(c, contribution(me, size*n), got, op.op); err != nil {
			return err
		}
		if err := expect("Reduce_scatter_block", got, combined(0, size, size*n, op.f)[me*n:][:n]); err != nil {
			return err
		}
	}
	return nil
}
