package ending

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/core/blame"
)

func at(w blame.Weight, text string) *Failure { return &Failure{Text: text, Weight: w} }

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
			e, ctx := New(context.Background())
			begin := time.Now()
			for _, f := range c.reports {
				e.Fail(f)
			}
			<-ctx.Done()
			if got := Of(ctx); got == nil || got.Text != c.want || time.Since(begin) != c.after {
				t.Errorf("%v after %v, want %s after %v", got, time.Since(begin), c.want, c.after)
			}
			e.Close()
		})
	}
}

func TestNoReportAfterTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := New(context.Background())
		e.Fail(at(blame.Died, "first"))
		<-ctx.Done()
		e.Fail(at(blame.Decided, "second"))
		if got := Of(ctx); got.Text != "first" {
			t.Errorf("%v", got)
		}
	})
}

func TestAllIsWell(t *testing.T) {
	e, ctx := New(context.Background())
	if Of(ctx) != nil {
		t.Error("a failure before the end")
	}
	e.Close()
	if f := Of(ctx); f != nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("%v, %v", f, context.Cause(ctx))
	}
}
