package mpi

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"golang.org/x/sys/unix"
)

// At the same time, in every rank, goroutines that wait in every way there is.
// Each has tags of its own; what goes wrong is a hang, a wrong status or a race.
func TestEverythingAtOnce(t *testing.T) {
	for name, l := range map[string]layout{
		"spin=auto":   {spin: "auto"},
		"spin=0":      {spin: "0"},
		"small rings": {spin: "auto", link: rings(4 << 10)},
		"rings":       {spin: "auto", link: rings(64 << 10)},
		"rings sleep": {spin: "0", link: rings(8 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			l.procs, l.dataLen, l.ackMark, l.hiWater = 3, 2000, 2, 3
			l.run(t, func(t *testing.T, c *Comm) error {
				jobs := []func(*Comm, int, int) error{
					testLoop, waitanyLoop, waitsomeLoop, probeLoop, cancelLoop, largeBothWays, selfLoop, heldBack,
				}
				comms := make([]*Comm, 2)
				for i := range comms {
					var err error
					if comms[i], err = c.Dup(); err != nil {
						return err
					}
				}
				var wg sync.WaitGroup
				errs := make(chan error, 2*len(jobs)+len(comms))
				for i, job := range append(jobs, jobs...) {
					wg.Go(func() { errs <- job(c, 100*(i+1), 30) })
				}
				for _, d := range comms {
					wg.Go(func() { errs <- collectiveLoop(d, 30) })
				}
				wg.Wait()
				close(errs)
				var all error
				for err := range errs {
					all = errors.Join(all, err)
				}
				return all
			})
		})
	}
}

// rings makes links through memory, with so many bytes in each direction.
func rings(size int) func() (a, b link.Link) {
	return func() (a, b link.Link) {
		region, err := ring.CreateForProcs(size)
		if err != nil {
			panic(err)
		}
		other, err := unix.Dup(region)
		if err != nil {
			panic(err)
		}
		socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			panic(err)
		}
		ends := [2]link.Link{}
		for i, file := range []int{region, other} {
			if ends[i], err = proc.OpenRing(file, socks[i], i); err != nil {
				panic(err)
			}
		}
		return ends[0], ends[1]
	}
}

func circle(c *Comm) (right, left int) {
	n := c.Size()
	return (c.Rank() + 1) % n, (c.Rank() + n - 1) % n
}

func testLoop(c *Comm, tag, rounds int) error {
	right, left := circle(c)
	for i := range rounds {
		in := make([]int32, 300)
		r, err := Irecv(c, in, left, tag)
		if err != nil {
			return err
		}
		out := make([]int32, 300)
		out[299] = int32(i)
		s, err := Isend(c, out, right, tag)
		if err != nil {
			return err
		}
		if err := first(complete(&r), complete(&s), expect("test loop", in[299], int32(i))); err != nil {
			return err
		}
	}
	return nil
}

// exchange begins sends to and receives from all, of different lengths.
func exchange(c *Comm, tag int) ([]Request, error) {
	var reqs []Request
	for r := range c.Size() {
		for n := range 3 {
			q, err := Irecv(c, make([]byte, 3000), r, tag+n)
			if err != nil {
				return nil, err
			}
			reqs = append(reqs, q)
			if q, err = Isend(c, pattern(n*1100, n), r, tag+n); err != nil {
				return nil, err
			}
			reqs = append(reqs, q)
		}
	}
	return reqs, nil
}

func waitanyLoop(c *Comm, tag, rounds int) error {
	for range rounds {
		reqs, err := exchange(c, tag)
		if err != nil {
			return err
		}
		for range reqs {
			if i, _, err := Waitany(reqs); i == Undefined || err != nil {
				return fmt.Errorf("waitany %d: %w", i, err)
			}
		}
		if i, _, err := Waitany(reqs); i != Undefined || err != nil {
			return fmt.Errorf("waitany of nothing: %d, %w", i, err)
		}
	}
	return nil
}

func waitsomeLoop(c *Comm, tag, rounds int) error {
	for range rounds {
		reqs, err := exchange(c, tag)
		if err != nil {
			return err
		}
		for done := 0; done < len(reqs); {
			some, err := Waitsome(reqs, nil)
			if err != nil || len(some) == 0 {
				return fmt.Errorf("waitsome %v: %w", some, err)
			}
			done += len(some)
		}
	}
	return nil
}

func probeLoop(c *Comm, tag, rounds int) error {
	right, left := circle(c)
	for i := range rounds {
		q, err := Isend(c, pattern(i*100, i), right, tag)
		if err != nil {
			return err
		}
		st, err := Probe(c, left, tag)
		if err := first(err, expect("probed", st.Bytes(), int64(i*100))); err != nil {
			return err
		}
		m, _, err := Mprobe(c, left, tag)
		if err != nil {
			return err
		}
		buf := make([]byte, i*100)
		if _, err := Mrecv(m, buf); err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func cancelLoop(c *Comm, tag, rounds int) error {
	right, left := circle(c)
	for i := range rounds {
		never, err := Irecv(c, make([]byte, 1), left, tag)
		if err != nil {
			return err
		}
		ignored, err := Issend(c, pattern(i*200, 0), right, tag+1)
		if err != nil {
			return err
		}
		for _, q := range []*Request{&never, &ignored} {
			if err := q.Cancel(); err != nil {
				return err
			}
			if st, err := q.Wait(); err != nil || !st.Cancelled() {
				return fmt.Errorf("cancelled %v: %w", st.Cancelled(), err)
			}
		}
	}
	return nil
}

// largeBothWays fills the links, so that who sleeps must wait for room as well.
func largeBothWays(c *Comm, tag, rounds int) error {
	right, left := circle(c)
	buf := make([]byte, 600_000)
	for range rounds / 10 {
		if _, err := SendrecvReplace(c, buf, right, tag, left, tag); err != nil {
			return err
		}
	}
	return nil
}

// selfLoop is two goroutines of one rank that talk to each other.
func selfLoop(c *Comm, tag, rounds int) error {
	back := make(chan error, 1)
	go func() {
		for range rounds {
			if _, err := Recv(c, make([]byte, 5), c.Rank(), tag); err != nil {
				back <- err
				return
			}
			if err := Ssend(c, make([]byte, 5000), c.Rank(), tag+1); err != nil {
				back <- err
				return
			}
		}
		back <- nil
	}()
	for range rounds {
		if err := Ssend(c, make([]byte, 5), c.Rank(), tag); err != nil {
			return err
		}
		if _, err := Recv(c, make([]byte, 5000), c.Rank(), tag+1); err != nil {
			return err
		}
	}
	return <-back
}

// heldBack begins series of small sends, which gather before they leave.
func heldBack(c *Comm, tag, rounds int) error {
	right, left := circle(c)
	for range rounds {
		reqs := make([]Request, 40)
		for i := range reqs {
			var err error
			if i%2 == 0 {
				reqs[i], err = Isend(c, make([]byte, 90*i), right, tag)
			} else {
				reqs[i], err = Irecv(c, make([]byte, 90*40), left, tag)
			}
			if err != nil {
				return err
			}
		}
		if err := Waitall(reqs, nil); err != nil {
			return err
		}
	}
	return nil
}

func collectiveLoop(c *Comm, rounds int) error {
	for i := range rounds {
		sum := make([]int64, 3000)
		for j := range sum {
			sum[j] = int64(i)
		}
		if err := Allreduce(c, nil, sum, Sum); err != nil {
			return err
		}
		if err := expect("sum", sum[2999], int64(i*c.Size())); err != nil {
			return err
		}
		if err := first(Bcast(c, sum, i%c.Size()), Barrier(c)); err != nil {
			return err
		}
	}
	return nil
}

// Goroutines make communicators of different parents at the same time, in
// another order in each rank. No two of them may share a context.
func TestConstructorsAtOnce(t *testing.T) {
	const parents, rounds = 5, 10
	layout{procs: 4, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		var made []*Comm
		for range parents {
			d, err := c.Dup()
			if err != nil {
				return err
			}
			made = append(made, d)
		}
		errs := make(chan error, parents)
		contexts := make(chan wire.ContextID, parents*rounds)
		for i := range parents {
			d := made[(i+c.Rank())%parents]
			go func() { errs <- constructRandomly(d, rounds, contexts) }()
		}
		for range parents {
			if err := <-errs; err != nil {
				return err
			}
		}
		close(contexts)
		seen := map[wire.ContextID]bool{}
		for id := range contexts {
			if seen[id] {
				return fmt.Errorf("two communicators have context %d", id)
			}
			seen[id] = true
		}
		return nil
	})
}

func constructRandomly(c *Comm, rounds int, contexts chan<- wire.ContextID) error {
	for i := range rounds {
		d, err := c.Dup()
		if i%2 == 1 {
			d, err = c.Split(c.Rank()%2, 0)
		}
		if err != nil {
			return err
		}
		contexts <- d.Context()
		sum := []int{1}
		if err := Allreduce(d, nil, sum, Sum); err != nil {
			return err
		}
		if err := expect("members", sum[0], d.Size()); err != nil {
			return err
		}
	}
	return nil
}
