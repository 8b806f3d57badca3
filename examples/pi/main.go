// Command pi computes π as the integral of 4/(1+x²) from 0 to 1 by the midpoint
// rule. Each rank sums its share of the intervals; Reduce adds the shares up.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"

	"github.com/openimpi/impi/core/mpi"
)

var errBound = errors.New("the error is above its bound")

func main() {
	intervals := flag.Int64("intervals", 20_000_000, "into how many parts the integral is divided (of rank 0)")
	flag.Parse()
	if err := run(*intervals); err != nil {
		mpi.Abort(1, "pi: "+err.Error())
	}
}

func run(intervals int64) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	// Only rank 0 decides, so that all work on the same integral.
	n := []int64{intervals}
	if err := mpi.Bcast(world, n, 0); err != nil {
		return err
	}
	if n[0] < 1 {
		return fmt.Errorf("%d intervals: at least one is needed", n[0])
	}
	share := []float64{integrate(int64(world.Rank()), int64(world.Size()), n[0])}
	sum := make([]float64, 1)
	if err := mpi.Reduce(world, share, sum, mpi.Sum, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		bound := bound(n[0], world.Size())
		if err := check(sum[0], bound); err != nil {
			return err
		}
		fmt.Printf("pi: %d intervals on %d ranks: %.15f\n", n[0], world.Size(), sum[0])
		fmt.Printf("pi: the error is %.1e, its bound %.1e\n", math.Abs(sum[0]-math.Pi), bound)
	}
	return mpi.Finalize()
}

// integrate returns the share of one of ranks, which has each ranks-th interval.
// What each addition loses is carried along (Neumaier), so that rounding does
// not grow with the number of intervals.
func integrate(rank, ranks, intervals int64) float64 {
	width := 1 / float64(intervals)
	var sum, lost float64
	for i := rank; i < intervals; i += ranks {
		x := (float64(i) + 0.5) * width
		term := 4 / (1 + x*x)
		next := sum + term
		if math.Abs(sum) >= math.Abs(term) {
			lost += (sum - next) + term
		} else {
			lost += (term - next) + sum
		}
		sum = next
	}
	return (sum + lost) * width
}

// bound is the most that the result can be off: the midpoint rule errs by at
// most max|f”|/24n², where |f”| is 8 at most; and each term, share and sum is
// rounded a few times.
func bound(intervals int64, ranks int) float64 {
	n := float64(intervals)
	const ulp = 0x1p-53
	return 1/(3*n*n) + (16+float64(ranks))*ulp*math.Pi
}

func check(got, bound float64) error {
	if e := math.Abs(got - math.Pi); !(e <= bound) {
		return fmt.Errorf("%w: %.17g is off by %.1e, at most %.1e can be", errBound, got, e, bound)
	}
	return nil
}
