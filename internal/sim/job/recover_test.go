package job

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/sim/script"
)

// recovery is a program that goes on with those that are left, and what its procs have agreed on.
type recovery struct {
	script.Recover
	deaths *rand.Rand  // procs die as soon as they have begun an agreement, or have returned; nil: not
	early  func() bool // nobody dies yet; may be nil
	said   [][]string  // by rank: each result that the others must have, too
}

func (r *recovery) mayDie(e Env) {
	if r.deaths == nil || r.early != nil && r.early() || r.deaths.IntN(8) > 0 {
		return
	}
	p := e.(*proc)
	p.s.w.k.After(0, func() { p.s.w.InjectFault(Fault{Kind: CrashProc, Target: int(p.rank)}) })
	p.Freeze()
}

// run is the program of a proc.
func (r *recovery) run(e Env) error { return r.goOn(e, e.World(), e.World().Rank()) }

// goOn is run with a communicator, in which this proc has a rank.
func (r *recovery) goOn(e Env, c *mpi.Comm, me int) error {
	x := &script.Recovery{
		Recover: r.Recover, Pause: e.Pause, MayDie: func() { r.mayDie(e) },
		Note: func(said string) { r.said[me] = append(r.said[me], said) },
	}
	_, err := x.RunUntilFailure(c)
	return err
}

// TestRecovery loses procs and sites anywhere in jobs that go on with those that are left: these
// have agreed on the same each time, and come to the end.
func TestRecovery(t *testing.T) {
	shrunk := 0
	for seed := range seeds(200) {
		cfg := survivors(seed, nil)
		r := &recovery{Recover: script.Recover{Steps: 9, Revokes: seed%2 == 0, Begins: seed%3 == 0, Acks: seed%5 < 2}}
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
			case p.lost():
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
