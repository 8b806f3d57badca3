package lifetime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/core/ending"
)

func at(w ending.Precedence, text string) *ending.Failure {
	return &ending.Failure{Text: text, Precedence: w}
}

func TestTheContextEndsByWhatIsToBlame(t *testing.T) {
	for _, c := range []struct {
		reports []*ending.Failure
		want    string
		after   time.Duration
	}{
		{[]*ending.Failure{at(ending.Lost, "a")}, "a", 2 * time.Second},
		{[]*ending.Failure{at(ending.Lost, "channel"), at(ending.Died, "rank 1")}, "rank 1", 100 * time.Millisecond},
		{[]*ending.Failure{at(ending.Died, "rank 1"), at(ending.Decided, "operator")}, "operator", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, ctx := New(context.Background())
			begin := time.Now()
			for _, f := range c.reports {
				e.Fail(f)
			}
			<-ctx.Done()
			if got := FailureOf(ctx); got == nil || got.Text != c.want || time.Since(begin) != c.after {
				t.Errorf("%v after %v, want %s after %v", got, time.Since(begin), c.want, c.after)
			}
			e.Close()
		})
	}
}

func TestNoReportAfterTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := New(context.Background())
		e.Fail(at(ending.Died, "first"))
		<-ctx.Done()
		e.Fail(at(ending.Decided, "second"))
		if got := FailureOf(ctx); got.Text != "first" {
			t.Errorf("%v", got)
		}
	})
}

func TestAllIsWell(t *testing.T) {
	e, ctx := New(context.Background())
	if FailureOf(ctx) != nil {
		t.Error("a failure before the end")
	}
	e.Close()
	if f := FailureOf(ctx); f != nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("%v, %v", f, context.Cause(ctx))
	}
}

// The first late failure is passed on once, and does not end the context.
func TestOnLate(t *testing.T) {
	l, ctx := New(context.Background())
	var told []string
	l.OnLate = func(f *ending.Failure) { told = append(told, f.Text) }
	for _, text := range []string{"first", "second"} {
		l.Report(func(_ time.Time, e *ending.Ending) { e.ReportLate(at(ending.Died, text)) })
	}
	if len(told) != 1 || told[0] != "first" || ctx.Err() != nil {
		t.Errorf("%q, %v", told, ctx.Err())
	}
}
