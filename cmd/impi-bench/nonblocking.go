package main

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// rootedNonblocking are those of rooted that do not block.
var rootedNonblocking = []string{"ibcast", "ireduce"}

// nonblocking starts an operation and waits for it, n times; the ranks take turns as root.
func (w *worker) nonblocking(bench string, n int64) (err error) {
	if !w.synchronized { // as programs are that have begun: libraries prepare things then, and we the board
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

// overlap measures an iallreduce alone, and then with computation between start and wait that takes
// as long as it. What the computation hides of the operation's time is the overlap: 1 is all of it.
func (w *worker) overlap(size int, target float64) error {
	w.compute = 0
	if w.rank != 0 {
		for range 2 {
			if err := follow(w, "overlap"); err != nil {
				return err
			}
			if err := w.learnCompute(0); err != nil {
				return err
			}
		}
		return nil
	}
	n, err := calibrate(w, "overlap", target)
	if err != nil {
		return err
	}
	alone, err := timed(w, "overlap", n)
	if err != nil {
		return err
	}
	if _, err := w.agree(0); err != nil {
		return err
	}
	if err := w.learnCompute(alone / float64(n)); err != nil {
		return err
	}
	both, err := timed(w, "overlap", n)
	if err != nil {
		return err
	}
	f := figure{Size: size, Iterations: n, Seconds: both, Overlap: max(0, (2*alone-both)/alone)}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return err
	}
	if _, err := w.agree(0); err != nil {
		return err
	}
	return w.learnCompute(0)
}

// learnCompute has all ranks compute for so many seconds behind each start, as rank 0 says.
func (w *worker) learnCompute(seconds float64) error {
	v := []float64{seconds}
	if err := mpi.Bcast(w.world, v, 0); err != nil {
		return err
	}
	w.compute = int64(v[0] * stepsPerSecond())
	return nil
}

// stepsPerSecond measures how fast this rank computes.
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

// computed keeps the compiler from leaving the computation out.
var computed float64

// compute is work without memory and without MPI.
func compute(steps int64) {
	x := computed
	for i := int64(0); i < steps; i++ {
		x = x*0.5 + 1
	}
	computed = x
}
