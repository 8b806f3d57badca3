package mpi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/mpierr"
)

// begun is a collective under way and how its outcome is judged.
type begun struct {
	req   Request
	check func() error
}

// starters begin each non-blocking operation with n elements, some with a root.
var starters = map[string]func(c *Comm, n, root int) (begun, error){
	"Ibarrier": func(c *Comm, _, _ int) (begun, error) {
		q, err := Ibarrier(c)
		return begun{q, func() error { return nil }}, err
	},
	"Ibcast": func(c *Comm, n, root int) (begun, error) {
		buf := make([]float64, n)
		if c.Rank() == root {
			buf = mine(root, n)
		}
		q, err := Ibcast(c, buf, root)
		return begun{q, func() error { return same("Ibcast", buf, mine(root, n)) }}, err
	},
	"Igather": func(c *Comm, n, root int) (begun, error) {
		recv := make([]float64, n*c.Size())
		q, err := Igather(c, mine(c.Rank(), n), recv, root)
		return begun{q, func() error { return atRoot(c, root, same("Igather", recv, all(c.Size(), n))) }}, err
	},
	"Igatherv": func(c *Comm, n, root int) (begun, error) {
		counts, total, whole := uneven(c.Size(), n)
		recv := make([]float64, total)
		q, err := Igatherv(c, mine(c.Rank(), counts[c.Rank()]), recv, counts, nil, root)
		return begun{q, func() error { return atRoot(c, root, same("Igatherv", recv, whole)) }}, err
	},
	"Iscatter": func(c *Comm, n, root int) (begun, error) {
		recv := make([]float64, n)
		q, err := Iscatter(c, all(c.Size(), n), recv, root)
		return begun{q, func() error { return same("Iscatter", recv, mine(c.Rank(), n)) }}, err
	},
	"Iscatterv": func(c *Comm, n, root int) (begun, error) {
		counts, _, whole := uneven(c.Size(), n)
		recv := make([]float64, counts[c.Rank()])
		q, err := Iscatterv(c, whole, counts, nil, recv, root)
		return begun{q, func() error { return same("Iscatterv", recv, mine(c.Rank(), len(recv))) }}, err
	},
	"Iallgather": func(c *Comm, n, _ int) (begun, error) {
		recv := make([]float64, n*c.Size())
		q, err := Iallgather(c, mine(c.Rank(), n), recv)
		return begun{q, func() error { return same("Iallgather", recv, all(c.Size(), n)) }}, err
	},
	"Iallgatherv": func(c *Comm, n, _ int) (begun, error) {
		counts, total, whole := uneven(c.Size(), n)
		recv := make([]float64, total)
		q, err := Iallgatherv(c, mine(c.Rank(), counts[c.Rank()]), recv, counts, nil)
		return begun{q, func() error { return same("Iallgatherv", recv, whole) }}, err
	},
	"Ialltoall": func(c *Comm, n, _ int) (begun, error) {
		recv := make([]float64, n*c.Size())
		q, err := Ialltoall(c, mine(c.Rank(), n*c.Size()), recv)
		return begun{q, func() error { return same("Ialltoall", recv, turned(c, n)) }}, err
	},
	"Ialltoallv": func(c *Comm, n, _ int) (begun, error) {
		counts := make([]int, c.Size())
		for i := range counts {
			counts[i] = n
		}
		recv := make([]float64, n*c.Size())
		q, err := Ialltoallv(c, mine(c.Rank(), n*c.Size()), counts, nil, recv, counts, nil)
		return begun{q, func() error { return same("Ialltoallv", recv, turned(c, n)) }}, err
	},
	"Ireduce": func(c *Comm, n, root int) (begun, error) {
		recv := make([]int64, n)
		q, err := Ireduce(c, ints(c.Rank(), n), recv, Sum, root)
		return begun{q, func() error { return atRoot(c, root, same("Ireduce", recv, sums(c.Size(), n))) }}, err
	},
	"Iallreduce": func(c *Comm, n, _ int) (begun, error) {
		recv := ints(c.Rank(), n)
		q, err := Iallreduce(c, nil, recv, Sum)
		return begun{q, func() error { return same("Iallreduce", recv, sums(c.Size(), n)) }}, err
	},
	"IreduceScatter": func(c *Comm, n, root int) (begun, error) {
		counts := make([]int, c.Size())
		counts[root] = n
		recv := make([]int64, counts[c.Rank()])
		q, err := IreduceScatter(c, ints(c.Rank(), n), recv, counts, Sum)
		return begun{q, func() error { return atRoot(c, root, same("IreduceScatter", recv, sums(c.Size(), n))) }}, err
	},
	"IreduceScatterBlock": func(c *Comm, n, _ int) (begun, error) {
		recv := make([]int64, n)
		q, err := IreduceScatterBlock(c, ints(c.Rank(), n*c.Size()), recv, Sum)
		want := sums(c.Size(), n*c.Size())[n*c.Rank():][:n]
		return begun{q, func() error { return same("IreduceScatterBlock", recv, want) }}, err
	},
	"Iscan": func(c *Comm, n, _ int) (begun, error) {
		recv := make([]int64, n)
		q, err := Iscan(c, ints(c.Rank(), n), recv, Sum)
		return begun{q, func() error { return same("Iscan", recv, sums(c.Rank()+1, n)) }}, err
	},
	"Iexscan": func(c *Comm, n, _ int) (begun, error) {
		recv := make([]int64, n)
		q, err := Iexscan(c, ints(c.Rank(), n), recv, Sum)
		return begun{q, func() error { return same("Iexscan", recv, sums(c.Rank(), n)) }}, err
	},
}

func atRoot(c *Comm, root int, err error) error {
	if c.Rank() != root {
		return nil
	}
	return err
}

// uneven has rank r contribute n+r elements.
func uneven(size, n int) (counts []int, total int, whole []float64) {
	for r := range size {
		counts = append(counts, n+r)
		total += n + r
		whole = append(whole, mine(r, n+r)...)
	}
	return counts, total, whole
}

// turned is what the caller gets from Alltoall of blocks of n.
func turned(c *Comm, n int) (want []float64) {
	for q := range c.Size() {
		want = append(want, mine(q, n*c.Size())[c.Rank()*n:][:n]...)
	}
	return want
}

// names of the starters, the same in all ranks.
var starterNames = func() (names []string) {
	for _, n := range []string{"Ibarrier", "Ibcast", "Igather", "Igatherv", "Iscatter", "Iscatterv", "Iallgather", "Iallgatherv",
		"Ialltoall", "Ialltoallv", "Ireduce", "Iallreduce", "IreduceScatter", "IreduceScatterBlock", "Iscan", "Iexscan"} {
		if starters[n] != nil {
			names = append(names, n)
		}
	}
	return names
}()

// TestNonblocking begins each operation alone and completes it by Test.
func TestNonblocking(t *testing.T) {
	if len(starterNames) != len(starters) {
		t.Fatal("not all operations have names")
	}
	everyLayout(t, func(t *testing.T, c *Comm) error {
		for _, name := range starterNames {
			for _, n := range []int{0, 1, 40} {
				b, err := starters[name](c, n, c.Size()-1)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				for done := false; !done; runtime.Gosched() {
					if done, _, err = b.req.Test(); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
				}
				if err := b.check(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestNonblockingTogether has many operations of all sorts under way at a time,
// blocking ones among them, and completes them in an order of each rank's own.
func TestNonblockingTogether(t *testing.T) {
	for name, l := range collLayouts {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				l.run(t, func(t *testing.T, c *Comm) error { return together(c, seed) })
			}
		})
	}
}

func together(c *Comm, seed uint64) error {
	plan := rand.New(rand.NewPCG(seed, 1))                   // the same everywhere
	own := rand.New(rand.NewPCG(seed, 100+uint64(c.Rank()))) // when it is waited for
	var open []begun
	finish := func(i int) error {
		b := open[i]
		open = append(open[:i], open[i+1:]...)
		_, err := b.req.Wait()
		return first(err, b.check())
	}
	for range 40 {
		name, n, root, blocking := starterNames[plan.IntN(len(starterNames))], []int{1, 3, 30}[plan.IntN(3)], plan.IntN(c.Size()), plan.IntN(5) == 0
		if blocking {
			buf := mine(root, n)
			if err := first(Bcast(c, buf, root), same("Bcast", buf, mine(root, n))); err != nil {
				return err
			}
			continue
		}
		b, err := starters[name](c, n, root)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		open = append(open, b)
		if own.IntN(3) == 0 {
			if err := finish(own.IntN(len(open))); err != nil {
				return fmt.Errorf("after %s: %w", name, err)
			}
		}
	}
	for len(open) > 0 {
		if err := finish(own.IntN(len(open))); err != nil {
			return err
		}
	}
	return nil
}

// An Ibarrier returns before others have begun theirs, and goes on while its caller
// waits for something else.
func TestIbarrierGoesOnInOtherCalls(t *testing.T) {
	layout{procs: 3, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		q, err := Ibarrier(c)
		if err != nil {
			return err
		}
		buf := []int{0}
		switch c.Rank() {
		case 0: // its part of the barrier is done in here
			if _, err := Recv(c, buf, 1, 5); err != nil {
				return err
			}
		case 1:
			if _, err := q.Wait(); err != nil {
				return err
			}
			if err := Send(c, buf, 0, 5); err != nil {
				return err
			}
		}
		_, err = q.Wait()
		return err
	})
}

// TestProgressWhileComputing has rank 0 call nothing of MPI between the start of operations and
// their end elsewhere, which needs rank 0: to pass on the barrier, and to send the rest of a long
// message.
func TestProgressWhileComputing(t *testing.T) {
	begun := make(chan struct{})
	var others sync.WaitGroup
	others.Add(3)
	layout{procs: 4, messages: true, progress: 200 * time.Microsecond}.run(t, func(t *testing.T, c *Comm) error {
		long := make([]byte, 1<<20)
		if c.Rank() > 0 {
			<-begun
			err := c.Barrier()
			if err == nil && c.Rank() == 1 {
				_, err = Recv(c, long, 0, 3)
			}
			others.Done()
			return err
		}
		barrier, err1 := Ibarrier(c)
		send, err2 := Isend(c, long, 1, 3)
		close(begun)
		others.Wait()
		return first(err1, err2, Waitall([]Request{barrier, send}, nil))
	})
}

// Waitall and its like take requests of all sorts.
func TestNonblockingBesideMessages(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		got, sum := []int{-1}, []int{c.Rank()}
		recv, err1 := Irecv(c, got, before, 3)
		reduced, err2 := Iallreduce(c, nil, sum, Sum)
		send, err3 := Isend(c, []int{c.Rank()}, next, 3)
		barrier, err4 := Ibarrier(c)
		if err := first(err1, err2, err3, err4); err != nil {
			return err
		}
		statuses := make([]Status, 4)
		if err := Waitall([]Request{recv, reduced, send, barrier}, statuses); err != nil {
			return err
		}
		if statuses[0].Source != before || statuses[1] != emptyStatus {
			return fmt.Errorf("statuses %+v", statuses)
		}
		return first(expect("received", got[0], before), expect("sum", sum[0], c.Size()*(c.Size()-1)/2))
	})
}

// What can and cannot be done to the request of a collective.
func TestNonblockingRequest(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		q, err := Ibarrier(c)
		if err != nil {
			return err
		}
		if err := q.Cancel(); ErrorClass(err) != mpierr.Request {
			return fmt.Errorf("Cancel: %v", err)
		}
		if err := q.Free(); ErrorClass(err) != mpierr.Request {
			return fmt.Errorf("Free: %v", err)
		}
		other := q
		for done := false; !done; {
			if done, _, err = q.Status(); err != nil {
				return err
			}
		}
		if st, err := q.Wait(); err != nil || st != emptyStatus || !q.Null() {
			return fmt.Errorf("Wait: %+v, %v, null %v", st, err, q.Null())
		}
		if _, err := other.Wait(); !errors.Is(err, ErrRequest) {
			return fmt.Errorf("the second Wait: %v", err)
		}
		_, err = Ibcast(c, []int{1}, 2)
		if ErrorClass(err) != mpierr.Root {
			return fmt.Errorf("a root that is none: %v", err)
		}
		_, err = Ibarrier(nil)
		if err == nil {
			return errors.New("an Ibarrier of no communicator")
		}
		return Barrier(c)
	})
}

// A collective that only some could begin leaves nothing that later ones find.
func TestFailedCollectiveLeavesNothing(t *testing.T) {
	layout{procs: 4, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		for round := range 3 {
			bad := make([]int, 3) // the root's alone matters
			if err := Gather(c, []int{-1}, bad, 0); (c.Rank() == 0) != errors.Is(err, coll.ErrBuffer) {
				return fmt.Errorf("round %d: %v", round, err)
			}
			good := make([]int, 4)
			if err := Gather(c, []int{c.Rank()}, good, 0); err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err := same("Gather", good, []int{0, 1, 2, 3}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// The operations of several communicators go on at a time, begun in other orders.
func TestNonblockingOnTwoCommunicators(t *testing.T) {
	layout{procs: 4, client: func(r int) int { return r % 2 }}.run(t, func(t *testing.T, c *Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		comms := []*Comm{c, d}
		if c.Rank()%2 != 0 {
			comms = []*Comm{d, c}
		}
		var reqs []Request
		sums := [][]int{{1}, {1}, {1}, {1}}
		for i := range sums {
			q, err := Iallreduce(comms[i%2], nil, sums[i], Sum)
			if err != nil {
				return err
			}
			reqs = append(reqs, q)
		}
		if err := Waitall(reqs, nil); err != nil {
			return err
		}
		for _, s := range sums {
			if s[0] != 4 {
				return fmt.Errorf("sum %d", s[0])
			}
		}
		return nil
	})
}

// A goroutine that waits for a collective is woken up by another that drives.
func TestNonblockingInGoroutines(t *testing.T) {
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		const n = 20000 // its local work is done without the lock
		var reqs []Request
		var bufs [][]int64
		for range 4 {
			buf := ints(c.Rank(), n)
			q, err := Iallreduce(c, nil, buf, Sum)
			if err != nil {
				return err
			}
			reqs, bufs = append(reqs, q), append(bufs, buf)
		}
		errs := make(chan error)
		for i := range reqs {
			go func() {
				_, err := reqs[i].Wait()
				errs <- first(err, same("sum", bufs[i], sums(3, n)))
			}()
		}
		var err error
		for range reqs {
			err = first(err, <-errs)
		}
		return err
	})
}
