package node

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/internal/launch"
)

func at(w weight, text string) *Failure { return &Failure{Text: text, weight: w} }

func TestTheHeaviestReportExplainsTheOthers(t *testing.T) {
	for _, c := range []struct {
		reports []*Failure
		want    string
		after   time.Duration
	}{
		{[]*Failure{at(lost, "a")}, "a", 2 * time.Second},
		{[]*Failure{at(lost, "channel"), at(died, "rank 1")}, "rank 1", 100 * time.Millisecond},
		{[]*Failure{at(consequence, "rank 0"), at(died, "rank 1"), at(consequence, "rank 2")}, "rank 1", 100 * time.Millisecond},
		{[]*Failure{at(consequence, "rank 0"), at(lost, "channel")}, "channel", 2 * time.Second},
		{[]*Failure{at(consequence, "first"), at(consequence, "second")}, "first", 2 * time.Second},
		{[]*Failure{at(died, "first"), at(died, "second")}, "first", 100 * time.Millisecond},
		{[]*Failure{at(lost, "channel"), at(decided, "operator"), at(died, "rank 1")}, "operator", 0},
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
		e.fail(at(died, "first"))
		<-ctx.Done()
		e.fail(at(decided, "second"))
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
