package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
)

// Several Idups of one communicator and of others are under way at a time, and
// collectives meanwhile; they are completed in another order by each rank.
func TestIdupsOverlap(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			layout{procs: 6, client: client}.run(t, func(t *testing.T, c *Comm) error {
				half, err := c.Split(c.Rank()%2, 0)
				if err != nil {
					return err
				}
				var made []*Comm
				var open []Request
				for _, parent := range []*Comm{c, half, c, c, half} {
					d, q, err := parent.Idup()
					if err != nil {
						return err
					}
					made, open = append(made, d), append(open, q)
				}
				if err := Barrier(c); err != nil {
					return err
				}
				for i := range open {
					if _, err := open[(i+c.Rank())%len(open)].Wait(); err != nil {
						return err
					}
				}
				seen := map[wire.ContextID]bool{c.Context(): true, half.Context(): true}
				var all []error
				for i, d := range made {
					if seen[d.Context()] || seen[d.CollectiveContext()] {
						return fmt.Errorf("communicator %d has context %d, as another", i, uint64(d.Context()))
					}
					seen[d.Context()], seen[d.CollectiveContext()] = true, true
					sum := []int{1}
					all = append(all, Allreduce(d, nil, sum, Sum), expect("members", sum[0], d.Size()))
				}
				return errors.Join(all...)
			})
		})
	}
}

// A communicator cannot be used before its Idup is complete, and a process that
// waits for something else carries it on meanwhile.
func TestIdupGoesOnInOtherCalls(t *testing.T) {
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 2 { // the others cannot be done before this
			if _, err := Recv(c, []byte{0}, 0, 1); err != nil {
				return err
			}
		}
		d, q, err := c.Idup()
		if err != nil {
			return err
		}
		switch c.Rank() {
		case 0:
			_, _, early := d.Idup()
			err = errors.Join(
				classed("send", Send(d, []byte{1}, 1, 0), mpierr.Comm), classed("barrier", Barrier(d), mpierr.Comm),
				classed("idup", early, mpierr.Comm), classed("free", d.Free(), mpierr.Comm),
				expect("size", d.Size(), 3), Send(c, []byte{1}, 2, 1))
			// Rank 0 waits for what the others send once they have their communicator.
			for r := 1; r < 3; r++ {
				_, e := Recv(c, []byte{0}, r, 2)
				err = errors.Join(err, e)
			}
			if err != nil {
				return err
			}
		default:
			if _, err := q.Wait(); err != nil {
				return err
			}
			if err := Send(c, []byte{1}, 0, 2); err != nil {
				return err
			}
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
		return talks(c, d, 0, 1, 2)
	})
}

// Rank 0 begins with one communicator, rank 1 with another, each waiting for the
// first before it begins the second: with goroutines on one side that is legal.
func TestConstructorsInAnotherOrder(t *testing.T) {
	layout{procs: 2, client: func(r int) int { return r }}.run(t, func(t *testing.T, c *Comm) error {
		a, err1 := c.Dup()
		b, err2 := c.Dup()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if c.Rank() == 1 {
			x, err := b.Dup()
			if err != nil {
				return err
			}
			y, q, err := a.Idup()
			if err != nil {
				return err
			}
			_, err = q.Wait()
			return errors.Join(err, talks(c, x, 0, 1), talks(c, y, 0, 1))
		}
		x, q, err := a.Idup() // counts as this process's agreement from now on
		if err != nil {
			return err
		}
		y, err := b.Dup()
		if err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
		return errors.Join(talks(c, y, 0, 1), talks(c, x, 0, 1))
	})
}

// A copy callback that fails on one member makes the Idup fail on all of them.
func TestIdupThatFails(t *testing.T) {
	boom := errors.New("boom")
	layout{procs: 3, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		deleted := 0
		fine, err1 := CreateKeyval(DupCopy[*Comm], func(*Comm, Keyval, any, any) error { deleted++; return nil }, nil)
		bad, err2 := CreateKeyval(func(old *Comm, _ Keyval, _, _ any) (any, bool, error) {
			if old.Rank() == 1 {
				return nil, false, boom
			}
			return nil, false, nil
		}, nil, nil)
		d, err := c.Dup()
		if err := errors.Join(err, err1, err2, d.SetAttr(fine, 1), d.SetAttr(bad, 2)); err != nil {
			return err
		}
		e, q, err := d.Idup()
		if err != nil {
			return err
		}
		_, failure := q.Wait()
		if failure == nil || c.Rank() == 1 && !errors.Is(failure, boom) {
			return fmt.Errorf("the Idup gave %v", failure)
		}
		return errors.Join(classed("what came of it", e.Check(), mpierr.Comm), expect("copies deleted", deleted, 1),
			classed("what came before", d.Check(), mpierr.Success))
	})
}

// A context that is counted by one agreement is not waited for by another: the
// contexts of all, from several goroutines of each rank, are different.
func TestConstructorsOfAllKindsAtOnce(t *testing.T) {
	const threads, rounds = 4, 6
	layout{procs: 5, client: func(r int) int { return r % 2 }}.run(t, func(t *testing.T, c *Comm) error {
		world, err := c.Group()
		if err != nil {
			return err
		}
		parents := make([]*Comm, threads)
		for i := range parents {
			if parents[i], err = c.Dup(); err != nil {
				return err
			}
		}
		contexts := make(chan wire.ContextID, 12*threads*rounds)
		errs := make(chan error, threads)
		for i := range threads {
			go func() { errs <- constructAll(c, parents[(i+c.Rank())%threads], world, rounds, contexts) }()
		}
		for range threads {
			if err := <-errs; err != nil {
				return err
			}
		}
		close(contexts)
		seen := map[wire.ContextID]bool{}
		for id := range contexts {
			if seen[id] {
				return fmt.Errorf("context %d is of two communicators", uint64(id))
			}
			seen[id] = true
		}
		return nil
	})
}

// constructAll makes communicators of every kind of d, round after round.
func constructAll(c, d *Comm, world *Group, rounds int, contexts chan<- wire.ContextID) error {
	for i := range rounds {
		dup, err := d.Dup()
		if err != nil {
			return err
		}
		other, q, err := dup.Idup()
		if err != nil {
			return err
		}
		half, err := dup.Split(d.Rank()%2, 0)
		if err != nil {
			return err
		}
		inter, err := half.IntercommCreate(0, d, 1-d.Rank()%2, i)
		if err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
		merged, err := inter.Merge(d.Rank()%2 == 0)
		if err != nil {
			return err
		}
		ranked, err := other.Create(world)
		if err != nil {
			return err
		}
		for _, x := range []*Comm{dup, other, half, merged, ranked} {
			contexts <- x.Context()
			contexts <- x.CollectiveContext()
		}
		contexts <- inter.Context()
		contexts <- inter.Comm.Local().Context()
		if err := errors.Join(talks(c, merged, 1, 3, 0, 2, 4), talks(c, ranked, 0, 1, 2, 3, 4), dup.Free(), inter.Free()); err != nil {
			return err
		}
	}
	return nil
}
