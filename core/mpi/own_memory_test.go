package mpi

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/wireup"
)

// fromNode is a job as a proc reads it from its node. It is for tests that count memory: what the
// reader maps stays mapped.
func fromNode(tb testing.TB, job *wireup.Job) (open func() *wireup.Job) {
	tb.Helper()
	own, err := job.Share()
	if err != nil {
		tb.Fatal(err)
	}
	procs, err := wireup.ShareProcs(slices.Values(job.Procs))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = own.Close(); _ = procs.Close() })
	return func() *wireup.Job {
		a, err := unix.Dup(int(own.Fd()))
		if err != nil {
			tb.Fatal(err)
		}
		b, err := unix.Dup(int(procs.Fd()))
		if err != nil {
			tb.Fatal(err)
		}
		j, err := wireup.OpenJob(a, b)
		if err != nil {
			tb.Fatal(err)
		}
		return j
	}
}

// TestProcKeepsNothingOfTheWorld: a proc that has read its job from its node has as much memory of
// its own in a job of 96 procs as in one of 100,000. What it knows of them is in the table of its host.
func TestProcKeepsNothingOfTheWorld(t *testing.T) {
	cost := func(each int) int {
		open := fromNode(t, wide(each))
		least := math.MaxInt
		for range 5 { // the runtime's own goroutines allocate at times
			var p *Proc
			n := allocs.Exactly(func() {
				var err error
				if p, err = Join(open(), sink{}, still{}, nil); err != nil {
					t.Fatal(err)
				}
			})
			runtime.KeepAlive(p)
			least = min(least, int(n))
		}
		return least
	}
	small, large := cost(3), cost(3125)
	t.Logf("%d bytes in a job of 96 procs, %d in one of 100,000", small, large)
	if large > small+4<<10 || large > 32<<10 {
		t.Errorf("%d bytes in a job of 96 procs, %d in one of 100,000", small, large)
	}
}

// BenchmarkInitOf4096 is what Init does with what the node has sent in a job of 4,096 procs.
func BenchmarkInitOf4096(b *testing.B) {
	open := fromNode(b, wide(128))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Join(open(), sink{}, still{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
