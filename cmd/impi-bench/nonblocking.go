package main

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

var rootedNonblocking = []string{"ibcast", "ireduce"}

func (w *worker) nonblocking(bench string, n int64) (err error) {
	if !w.synchronized { // a running program has synchronized before: libraries and the board are prepared
		err = mpi.Barrier(w.world)
		w.synchronized = true
	}
	root, size := 0, w.world.Size()
	for i := int64(0); i < n && err == nil; i++ {
		var r mpi.Request
		if r, err = w.begin(bench, root); err == nil {
			if w.compute > 0 {
				compute(w.compute)
			}
			_, err = r.Wait()
		}
		if root++; root == size {
			root = 0
		}
	}
	if err == nil && slices.Contains(rootedNonblocking, bench) {
		err = mpi.Barrier(w.world)
	}
	return err
}

func (w *worker) begin(bench string, root int) (mpi.Request, error) {
	switch bench {
	case "ibarrier":
		return mpi.Ibarrier(w.world)
	case "ibcast":
		return mpi.Ibcast(w.world, w.out[:w.size], root)
	case "ireduce":
		return mpi.Ireduce(w.world, w.numbers(0), w.numbers(1), mpi.Sum, root)
	case "ialltoall":
		return mpi.Ialltoall(w.world, w.out, w.in)
	case "iallgather":
		return mpi.Iallgather(w.world, w.out[:w.size], w.in)
	default: // iallreduce and overlap
		return mpi.Iallreduce(w.world, w.numbers(0), w.numbers(1), mpi.Sum)
	}
}

const overlapRounds = 21

// overlap measures a number of iallreduces alone, and with computation between start and wait that
// takes as long as they do, in turns. What the computation hides of the operation's time is the
// overlap, by the medians of all rounds, where 1 is all of it: another program that ran in one of
// them must not decide.
func (w *worker) overlap(size int, target float64) error {
	w.compute = 0
	n, err := w.overlapIterations(target)
	if err != nil {
		return err
	}
	var alone, both [overlapRounds]float64
	for i := range alone {
		if alone[i], err = w.partOfRound(n); err != nil {
			return err
		}
	}
	once := median(alone[:])
	steps, err := w.learnCompute(once / float64(n))
	if err != nil {
		return err
	}
	for i := range alone {
		w.compute = 0
		if alone[i], err = w.partOfRound(n); err != nil {
			return err
		}
		w.compute = steps
		if both[i], err = w.partOfRound(n); err != nil {
			return err
		}
	}
	w.compute = 0
	if w.rank != 0 {
		return nil
	}
	a, b := median(alone[:]), median(both[:])
	return json.NewEncoder(os.Stdout).Encode(figure{Size: size, Iterations: n, Seconds: b, Overlap: max(0, (a+once-b)/a)})
}

func (w *worker) overlapIterations(target float64) (int64, error) {
	for n := int64(8); ; n *= 2 {
		n, err := w.agree(n)
		if err != nil {
			return 0, err
		}
		t, err := w.partOfRound(n)
		if err != nil {
			return 0, err
		}
		enough := int64(0)
		if t >= target/10 {
			enough = fill(n, t, target/overlapRounds)
		}
		if enough, err = w.agree(enough); err != nil || enough != 0 {
			return enough, err
		}
	}
}

func (w *worker) partOfRound(n int64) (seconds float64, err error) {
	start := time.Now()
	err = w.iterate("overlap", n)
	return time.Since(start).Seconds(), err
}

// learnCompute returns how many steps take as many seconds as rank 0 says, at this rank's speed.
func (w *worker) learnCompute(seconds float64) (steps int64, err error) {
	v := []float64{seconds}
	if err := mpi.Bcast(w.world, v, 0); err != nil {
		return 0, err
	}
	return int64(v[0] * stepsPerSecond()), nil
}

func stepsPerSecond() float64 {
	const steps = 1 << 20
	best := time.Duration(1 << 62)
	for range 5 {
		start := time.Now()
		compute(steps)
		best = min(best, time.Since(start))
	}
	return steps / best.Seconds()
}

// computed keeps the compiler from eliminating the computation.
var computed float64

// compute is work without memory and without MPI.
func compute(steps int64) {
	x := computed
	for i := int64(0); i < steps; i++ {
		x = x*0.5 + 1
	}
	computed = x
}
