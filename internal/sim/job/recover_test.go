package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// excused lets errors pass that losses and what procs do about them explain.
func excused(err error) error {
	if errors.Is(err, mpi.ErrRevoked) {
		return nil
	}
	return expected(err)
}

// recovery is a program that goes on with those that are left, and what its procs have agreed on.
type recovery struct {
	steps   int
	revokes bool
	begins  bool        // agreements and shrinks are begun, several at a time
	acks    bool        // losses are acknowledged
	deaths  *rand.Rand  // procs die as soon as they have begun an agreement, or have returned; nil: not
	early   func() bool // nobody dies yet; may be nil
	said    [][]string  // by rank: each result that the others must have, too
}

// mayDie is where a death does most harm: others may have heard of what this proc has, or not.
func (r *recovery) mayDie(e Env) {
	if r.deaths == nil || r.early != nil && r.early() || r.deaths.IntN(8) > 0 {
		return
	}
	p := e.(*proc)
	p.s.w.k.After(0, func() { p.s.w.Strike(Fault{Kind: CrashProc, Target: int(p.rank)}) })
	p.Freeze()
}

// run is the program of a proc.
func (r *recovery) run(e Env) error { return r.goOn(e, e.World(), e.World().Rank()) }

// goOn is run with a communicator, in which this proc has a rank. Its members do a step after the other until one of them fails; then they agree
// whether all are done, and if not, how many steps all have done, in a communicator of those that are left.
func (r *recovery) goOn(e Env, c *mpi.Comm, me int) error {
	done := 0
	note := func(format string, args ...any) {
		r.said[me] = append(r.said[me], fmt.Sprintf(format, args...))
	}
	for {
		var failed error
		for ; done < r.steps && failed == nil; done++ {
			if failed = r.step(c, e, done); failed != nil {
				break
			}
		}
		if err := excused(failed); err != nil {
			return err
		}
		if failed != nil && r.revokes {
			if err := c.Revoke(); err != nil {
				return err
			}
		}
		mask := int32(1)<<done - 1
		all, err := r.agree(c, e, mask)
		r.mayDie(e)
		note("%d members, steps %x, %t", c.Size(), all, err == nil)
		if excused(err) != nil {
			return err
		}
		if err == nil && all == int32(1)<<r.steps-1 {
			return nil
		}
		for done = 0; all&1 != 0; all >>= 1 {
			done++
		}
		if c, err = r.shrink(c); err != nil {
			return err
		}
		r.mayDie(e)
		note("%d members left", c.Size())
	}
}

// agree is Agree, perhaps with others around it.
func (r *recovery) agree(c *mpi.Comm, e Env, flags int32) (int32, error) {
	if !r.begins {
		all, err := c.Agree(flags)
		if err != nil && r.acks {
			if err := c.FailureAck(); err != nil {
				return 0, err
			}
			return c.Agree(all)
		}
		return all, err
	}
	ones, between := int32(-1), flags
	a, err := c.Iagree(&ones)
	if err != nil {
		return 0, err
	}
	b, err := c.Iagree(&between)
	if err != nil {
		return 0, err
	}
	r.mayDie(e)
	_, err = b.Wait()
	if _, err := a.Wait(); excused(err) != nil || ones != -1 {
		return 0, fmt.Errorf("the one before has %x: %w", ones, err)
	}
	return between, err
}

func (r *recovery) shrink(c *mpi.Comm) (*mpi.Comm, error) {
	var d *mpi.Comm
	var err error
	if r.begins {
		var q mpi.Request
		if d, q, err = c.Ishrink(); err == nil {
			_, err = q.Wait()
		}
	} else {
		d, err = c.Shrink()
	}
	if err != nil {
		return nil, fmt.Errorf("shrink: %w", err)
	}
	if c.Size() < d.Size() {
		return nil, fmt.Errorf("%d of %d are left", d.Size(), c.Size())
	}
	return d, nil
}

// step is some communication of all members, whose result each of them checks. Unless they revoke,
// it needs all of them at each of them, as nobody else hears then that one has failed.
func (r *recovery) step(c *mpi.Comm, e Env, number int) error {
	me, n := c.Rank(), c.Size()
	e.Pause(time.Duration(me*number%4) * time.Millisecond)
	in, out := make([]int64, 1+number*150), make([]int64, 1+number*150)
	in[number] = 1
	switch {
	case number%3 == 0:
		if err := mpi.Allreduce(c, in, out, mpi.Sum); err != nil {
			return err
		}
		if out[number] != int64(n) {
			return fmt.Errorf("step %d: %d members have said 1, of %d", number, out[number], n)
		}
	case number%3 == 1 && r.revokes:
		if _, err := mpi.Sendrecv(c, in, (me+1)%n, number, out, (me+n-1)%n, number); err != nil {
			return err
		}
		if out[number] != 1 {
			return fmt.Errorf("step %d: member %d has sent %v", number, (me+n-1)%n, out[number])
		}
	default:
		return c.Barrier()
	}
	return nil
}

// TestRecovery loses procs and sites anywhere in jobs that go on with those that are left: these have agreed
// on the same each time, and come to the end.
func TestRecovery(t *testing.T) {
	shrunk := 0
	for seed := range seeds(200) {
		cfg := survivors(seed, nil)
		r := &recovery{steps: 9, revokes: seed%2 == 0, begins: seed%3 == 0, acks: seed%5 < 2}
		cfg.Program = r.run
		r.said = make([][]string, cfg.Procs())
		faults := lossesOf(t, seed, cfg, 4)
		r.said = make([][]string, cfg.Procs())
		if seed%4 > 0 {
			r.deaths = rand.New(rand.NewPCG(seed, 5))
		}
		w := survive(t, seed, cfg, faults)
		var first []string
		for _, p := range w.procs {
			switch said := r.said[p.rank]; {
			case p.crashed || p.s.dead:
			case first == nil:
				first = said
			case !slices.Equal(first, said):
				t.Fatalf("seed %d, %v: rank %d: %q, others %q\n%s", seed, faults, p.rank, said, first, w.k.Trace())
			}
		}
		if len(first) > 1 {
			shrunk++
		}
	}
	if shrunk < int(seeds(200))/3 {
		t.Errorf("only %d jobs went on in another communicator", shrunk)
	}
}
