package mpi

import (
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpierr"
)

// bridge makes an intercommunicator of the first n ranks of c and the others,
// without talking to them.
func bridge(c *Comm, n int) (inter *Comm, left bool, err error) {
	self := comm.Proc(c.in().Process().Job.Rank)
	groups := [2]*comm.Group{comm.NewGroup(0, n), comm.NewGroup(comm.Proc(n), c.Size()-n)}
	left = int(self) < n
	if !left {
		groups[0], groups[1] = groups[1], groups[0]
	}
	inter, err = outComm(c.in().Process().Comms.NewComm(comm.Spec{Context: 40, Group: groups[0], Remote: groups[1]}))
	return inter, left, err
}

// acrossGroups runs body on both sides of intercommunicators in several layouts.
func acrossGroups(t *testing.T, body func(c *Comm, left bool) error) {
	for name, l := range collLayouts {
		if l.procs < 3 {
			continue
		}
		for _, n := range []int{1, l.procs / 2} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				l.run(t, func(t *testing.T, world *Comm) error {
					c, left, err := bridge(world, n)
					if err != nil {
						return err
					}
					return body(c, left)
				})
			})
		}
	}
}

// argument is the root that a member gives when the root is rank of a side.
func argument(c *Comm, here bool, rank int) int {
	switch {
	case !here:
		return rank
	case c.Rank() == rank:
		return Root
	}
	return ProcNull
}

func TestIntercommRooted(t *testing.T) {
	acrossGroups(t, func(c *Comm, left bool) error {
		const n = 5
		far := c.Comm.Remote().Size()
		for _, side := range []bool{true, false} {
			here := left == side
			root := argument(c, here, 0)
			buf := make([]float64, n)
			if root == Root {
				buf = mine(3, n)
			}
			if err := Bcast(c, buf, root); err != nil {
				return err
			}
			if want := mine(3, n); !here || root == Root {
				if err := same("Bcast", buf, want); err != nil {
					return err
				}
			}
			whole, sum, part := make([]float64, n*far), make([]int64, n), make([]float64, n)
			err := first(Gather(c, mine(c.Rank(), n), whole, root), Reduce(c, ints(c.Rank(), n), sum, Sum, root))
			if err != nil {
				return err
			}
			if root == Root {
				if err := first(same("Gather", whole, all(far, n)), same("Reduce", sum, sums(far, n))); err != nil {
					return err
				}
			}
			if err := Scatter(c, whole, part, root); err != nil {
				return err
			}
			if !here {
				if err := same("Scatter", part, mine(c.Rank(), n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestIntercommRootless(t *testing.T) {
	acrossGroups(t, func(c *Comm, left bool) error {
		const n = 5
		far := c.Comm.Remote().Size()
		if err := Barrier(c); err != nil {
			return err
		}
		recv, sum := make([]float64, n*far), make([]int64, n)
		if err := first(Allgather(c, mine(c.Rank(), n), recv), same("Allgather", recv, all(far, n))); err != nil {
			return err
		}
		if err := first(Allreduce(c, ints(c.Rank(), n), sum, Sum), same("Allreduce", sum, sums(far, n))); err != nil {
			return err
		}
		var want []float64
		for q := range far {
			want = append(want, mine(q, n*c.Size())[n*c.Rank():][:n]...)
		}
		if err := first(Alltoall(c, mine(c.Rank(), n*far), recv), same("Alltoall", recv, want)); err != nil {
			return err
		}
		// As many elements for both groups, divided by each among its own.
		total := n * c.Size() * far
		block := make([]int64, total/c.Size())
		return first(ReduceScatterBlock(c, ints(c.Rank(), total), block, Sum),
			same("ReduceScatterBlock", block, sums(far, total)[c.Rank()*len(block):][:len(block)]))
	})
}

// TestIntercommTyped sends items with gaps between the groups.
func TestIntercommTyped(t *testing.T) {
	acrossGroups(t, func(c *Comm, left bool) error {
		n, far, r := typedItems, c.Comm.Remote().Size(), c.Rank()
		for _, s := range shapes {
			own, whole := s.filled(r, n), s.make(n*far)
			want := func(i int) int64 { return code(i/n, i%n) }
			if err := first(c.Allgather(own.buf(0, n), whole.buf(0, n*far)), whole.has("Allgather", n*far, want)); err != nil {
				return err
			}
			root := argument(c, left, 0)
			whole = s.make(n * far)
			if err := c.Gather(own.buf(0, n), whole.buf(0, n*far), root); err != nil {
				return err
			}
			if root == Root {
				if err := whole.has("Gather", n*far, want); err != nil {
					return err
				}
			}
			b := s.make(n)
			if root == Root {
				b = s.filled(7, n)
			}
			if err := c.Bcast(b.buf(0, n), root); err != nil {
				return err
			}
			if root != ProcNull {
				if err := b.has("Bcast", n, func(i int) int64 { return code(7, i) }); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestIntercommNonblocking has several operations under way both ways.
func TestIntercommNonblocking(t *testing.T) {
	acrossGroups(t, func(c *Comm, left bool) error {
		const n = 5
		far := c.Comm.Remote().Size()
		var reqs []Request
		sums1, recvs := make([][]int64, 4), make([][]float64, 4)
		for i := range sums1 {
			sums1[i], recvs[i] = make([]int64, n), make([]float64, n*far)
			a, err1 := Iallreduce(c, ints(c.Rank()+i, n), sums1[i], Sum)
			b, err2 := Iallgather(c, mine(c.Rank()+i, n), recvs[i])
			q, err3 := Ibarrier(c)
			if err := first(err1, err2, err3); err != nil {
				return err
			}
			reqs = append(reqs, a, b, q)
		}
		if err := Waitall(reqs, nil); err != nil {
			return err
		}
		for i := range sums1 {
			want := make([]int64, n)
			var blocks []float64
			for q := range far {
				for k, v := range ints(q+i, n) {
					want[k] += v
				}
				blocks = append(blocks, mine(q+i, n)...)
			}
			if err := first(same("Iallreduce", sums1[i], want), same("Iallgather", recvs[i], blocks)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestIntercommCollectiveArguments(t *testing.T) {
	acrossGroups(t, func(c *Comm, left bool) error {
		far := c.Comm.Remote().Size()
		b := make([]int32, 4*far)
		for _, f := range []struct {
			name  string
			err   error
			class mpierr.Class
		}{
			{"Scan", Scan(c, b[:1], b[1:2], Sum), mpierr.Comm},
			{"Exscan", c.Exscan(Of(b[:1]), Of(b[1:2]), Sum), mpierr.Comm},
			{"root", Bcast(c, b, far), mpierr.Root},
			{"root of a Buffer", c.Bcast(Of(b), -2), mpierr.Root},
			{"in place", c.Allreduce(InPlace, Of(b), Sum), mpierr.Buffer},
			{"in place at the root", c.Gather(InPlace, Of(b), 0), mpierr.Buffer},
		} {
			if ErrorClass(f.err) != f.class {
				return fmt.Errorf("%s: %v of class %v", f.name, f.err, ErrorClass(f.err))
			}
		}
		return Barrier(c)
	})
}
