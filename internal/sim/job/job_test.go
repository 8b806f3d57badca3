package job

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/sim/kernel"
)

var factor = flag.Uint64("factor", 1, "run so many times as many seeds")

// seeds returns how many seeds a test runs that usually runs n.
func seeds(n uint64) uint64 {
	if raced {
		return max(n**factor/20, 1)
	}
	return n * *factor
}

var bounds = Bounds{Events: 2e6, Time: time.Hour}

// twoSites is a job of 2+3 procs, on three hosts.
func twoSites(program func(Env) error) Config {
	return Config{
		Sites:   []Site{{Hosts: []int{2}}, {Hosts: []int{1, 2}}},
		Direct:  true,
		Links:   rough(),
		Program: program,
	}
}

// rough are links that do everything that links may do.
func rough() Links {
	spec := kernel.LinkSpec{Delay: 20 * time.Microsecond, Jitter: 300 * time.Microsecond, Capacity: 3000, Chop: 0.3}
	far := spec
	far.Reset = 0.5
	return Links{Server: far, Proc: spec, Channel: far, Direct: far}
}

// ring passes a growing message around the world and checks it.
func ring(e Env) error { return ringOf(e, 700) }

func ringOf(e Env, size int) error {
	w := e.World()
	me, n := w.Rank(), w.Size()
	for round := range 3 {
		buf := make([]int64, 1+round*size)
		if me == 0 {
			buf[round] = int64(round)
			if err := mpi.Send(w, buf, 1%n, 5); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(w, buf, (me+n-1)%n, 5); err != nil {
			return err
		}
		buf[round]++
		if me != 0 {
			if err := mpi.Send(w, buf, (me+1)%n, 5); err != nil {
				return err
			}
		} else if got := buf[round]; got != int64(round+n) {
			return fmt.Errorf("got %d after %d ranks", got, n)
		}
		e.Pause(time.Duration(me) * time.Millisecond)
	}
	sum := make([]int64, 1)
	if err := mpi.Allreduce(w, []int64{int64(me)}, sum, mpi.Sum); err != nil {
		return err
	}
	if sum[0] != int64(n*(n-1)/2) {
		return fmt.Errorf("sum %d", sum[0])
	}
	return nil
}

func world(t *testing.T, seed uint64, cfg Config) (*kernel.Kernel, *Simulation) {
	t.Helper()
	k := kernel.New(seed)
	w, err := New(k, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k, w
}

// simulate runs a job with faults, and checks that it ends as all jobs must.
func simulate(t *testing.T, seed uint64, cfg Config, faults ...Fault) Result {
	t.Helper()
	k, w := world(t, seed, cfg)
	for _, f := range faults {
		w.Plan(f)
	}
	r := w.Run(bounds)
	if r.Err != nil {
		t.Fatalf("seed %d, %v: %v\n%s", seed, faults, r.Err, k.Trace())
	}
	return r
}

// clean checks that a job has ended in order.
func clean(t *testing.T, seed uint64, r Result) {
	t.Helper()
	if err := errors.Join(append(append(r.Sites(), r.Server()), r.Procs()...)...); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, r.World.k.Trace())
	}
}

func TestRing(t *testing.T) {
	for seed := range seeds(100) {
		cfg := twoSites(ring)
		cfg.Direct = seed%2 == 0
		cfg.DialFail = float64(seed%3) * 0.2
		clean(t, seed, simulate(t, seed, cfg))
	}
}

func TestSeedsAreRepeatable(t *testing.T) {
	var digests [2]uint64
	for i := range digests {
		digests[i] = simulate(t, 5, twoSites(ring), Fault{Kind: CrashProc, At: 4 * time.Millisecond, Target: 3}).World.k.Digest()
	}
	if digests[0] != digests[1] {
		t.Errorf("%x", digests)
	}
}
