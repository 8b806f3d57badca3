package node

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/internal/launch"
)

func at(w blame.Weight, text string) *Failure { return &Failure{Text: text, weight: w} }

func TestTheContextEndsByWhatIsToBlame(t *testing.T) {
	for _, c := range []struct {
		reports []*Failure
		want    string
		after   time.Duration
	}{
		{[]*Failure{at(blame.Lost, "a")}, "a", 2 * time.Second},
		{[]*Failure{at(blame.Lost, "channel"), at(blame.Died, "rank 1")}, "rank 1", 100 * time.Millisecond},
		{[]*Failure{at(blame.Died, "rank 1"), at(blame.Decided, "operator")}, "operator", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, ctx := newEnding(context.Background())
			begin := time.Now()
			for _, f := range c.reports {
				e.fail(f)
			}
			<-ctx.Done()
			if got := failure(ctx); got == nil || got.Text != c.want || time.Since(begin) != c.after {
				t.Errorf("%v after %v, want %s after %v", got, time.Since(begin), c.want, c.after)
			}
			e.close()
		})
	}
}

func TestNoReportAfterTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := newEnding(context.Background())
		e.fail(at(blame.Died, "first"))
		<-ctx.Done()
		e.fail(at(blame.Decided, "second"))
		if got := failure(ctx); got.Text != "first" {
			t.Errorf("%v", got)
		}
	})
}

func TestAllIsWell(t *testing.T) {
	e, ctx := newEnding(context.Background())
	if failure(ctx) != nil {
		t.Error("a failure before the end")
	}
	e.close()
	if f := failure(ctx); f != nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("%v, %v", f, context.Cause(ctx))
	}
}

func TestWords(t *testing.T) {
	w, early := who{"alpha", 3, 1}, who{"alpha", noRank, 1}
	for _, c := range []struct {
		f      *Failure
		text   string
		status int
	}{
		{procEnded(w, welcomed, launch.Exit{Signal: syscall.SIGSEGV, Core: true}), "rank 3 on site alpha was killed by SIGSEGV and dumped core", 139},
		{procEnded(w, welcomed, launch.Exit{Code: 2}), "rank 3 on site alpha exited with status 2", 2},
		{procEnded(w, greeted, launch.Exit{}), "rank 3 on site alpha exited with status 0 without MPI Finalize", 1},
		{procEnded(early, starting, launch.Exit{}), "proc 1 of site alpha exited with status 0 before it called MPI Init", 1},
		{procEnded(early, starting, launch.Exit{Signal: syscall.SIGKILL}), "proc 1 of site alpha was killed by SIGKILL before it called MPI Init", 137},
		{procAborted(w, 256, ""), "rank 3 on site alpha called MPI Abort with code 256", 1},
		{procAborted(w, 9, "why"), "rank 3 on site alpha called MPI Abort with code 9: why", 9},
	} {
		if c.f.Text != c.text || c.f.Status != c.status {
			t.Errorf("%q %d, want %q %d", c.f.Text, c.f.Status, c.text, c.status)
		}
	}
}
