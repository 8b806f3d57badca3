// Command collective measures collective operations of procs of several sites on one machine, whose
// clock they share. measure/testdata/collective.c is the same for other MPIs.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// unmeasured is how many times an operation is done before it is measured, so that connections are
// there and know the network.
const unmeasured = 3

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "collective:", err)
		mpi.Abort(1, err.Error())
	}
}

// run is a rank's part: PAUSE TIMES OPERATION:BYTES... with the pause between two operations in
// seconds.
func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("%q: write PAUSE TIMES OPERATION:BYTES...", args)
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := mpi.Init(); err != nil {
		return err
	}
	w := mpi.World()
	for _, what := range args[2:] {
		name, length, _ := strings.Cut(what, ":")
		n, err := strconv.Atoi(length)
		if err != nil {
			return err
		}
		pause := time.Duration(seconds * float64(time.Second))
		do, err := operation(w, name, n, pause*3/10)
		if err != nil {
			return err
		}
		ms, err := measure(w, pause, max(times, 1), do)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if w.Rank() == 0 {
			fmt.Printf("collective: %s %d %g ms\n", name, n, ms)
		}
	}
	if w.Rank() == 0 {
		fmt.Println("collective: end")
	}
	return mpi.Finalize()
}

// operation returns a function that does an operation once, with buffers or blocks of n bytes.
// Beside a nonblocking one the program computes for some time.
func operation(w *mpi.Comm, name string, n int, compute time.Duration) (func() error, error) {
	if n < 0 || n%8 != 0 {
		return nil, fmt.Errorf("%d bytes: write a multiple of 8", n)
	}
	one, all := make([]uint64, n/8), make([]uint64, n/8*w.Size())
	other := make([]uint64, len(all))
	switch name {
	case "barrier":
		return w.Barrier, nil
	case "bcast":
		return func() error { return mpi.Bcast(w, one, 0) }, nil
	case "allreduce":
		return func() error { return mpi.Allreduce(w, one, all[:n/8], mpi.Sum) }, nil
	case "iallreduce":
		product, result := make([]complex128, n/16), make([]complex128, n/16)
		return func() error {
			q, err := mpi.Iallreduce(w, product, result, mpi.Prod)
			if err != nil {
				return err
			}
			for begun := time.Now(); time.Since(begun) < compute; {
				runtime.Gosched() // there are more procs than cores
			}
			_, err = q.Wait()
			return err
		}, nil
	case "allgather":
		return func() error { return mpi.Allgather(w, one, all) }, nil
	case "alltoall":
		return func() error { return mpi.Alltoall(w, other, all) }, nil
	}
	return nil, fmt.Errorf("there is no operation %q", name)
}

// measure returns the median time in milliseconds from the moment at which all begin, on which they
// agree, until the last is done. Between two operations nothing is sent for the pause.
func measure(w *mpi.Comm, pause time.Duration, times int, do func() error) (float64, error) {
	var took []float64
	last := uint64(0)
	for i := range unmeasured + times + 1 {
		latest := make([]uint64, 2) // when the last proc is ready, and how long the last operation took
		if err := mpi.Allreduce(w, []uint64{uint64(time.Now().UnixNano()), last}, latest, mpi.Max); err != nil {
			return 0, err
		}
		if i > unmeasured {
			took = append(took, float64(latest[1])/1e6)
		}
		if i == unmeasured+times {
			break
		}
		begin := time.Unix(0, int64(latest[0])).Add(pause)
		time.Sleep(time.Until(begin))
		if err := do(); err != nil {
			return 0, err
		}
		last = uint64(max(0, time.Since(begin)))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
