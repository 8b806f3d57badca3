package ui

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// pass waits by the clock of a bubble of synctest, where no time passes.
func pass(d time.Duration) { <-time.After(d) }

// TestAlwaysAsking: from the time of the second question on, there is always one at the nodes,
// whoever asks when, and none when nobody has asked for long.
func TestAlwaysAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, gaps, most, questions := 0, 0, 0, 0
		begun := time.Now()
		e := newEndings(nil)
		e.await = func(ctx context.Context, _ string) *links.Ending {
			e.mu.Lock()
			at++
			questions++
			most = max(most, at)
			e.mu.Unlock()
			if deadline, _ := ctx.Deadline(); time.Since(begun) > 3*time.Second { // before, no node knows the job
				pass(time.Until(deadline) * 7 / 8)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if at--; at == 0 && time.Since(begun) > awaitLimit {
				gaps++
			}
			return nil
		}
		for range 10 {
			e.of("a")
			e.of("a")
			pass(awaitLimit)
		}
		e.mu.Lock()
		if gaps > 0 || most != 2 || questions < 20 {
			t.Errorf("%d gaps, %d at a time, %d questions", gaps, most, questions)
		}
		e.mu.Unlock()
		pass(4 * awaitLimit)
		synctest.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		if at != 0 || len(e.all) != 0 {
			t.Errorf("%d questions at the end, %d jobs", at, len(e.all))
		}
		e.close() // nothing is left that it would end
	})
}

// TestEndIsKept: a page that asks when the job is over already is told.
func TestEndIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		e := newEndings(func(ctx context.Context, id string) *links.Ending {
			select {
			case <-over:
				return &links.Ending{Site: "alpha", Failure: "of " + id}
			case <-ctx.Done():
				return nil
			}
		})
		ask := func() string {
			w := httptest.NewRecorder()
			e.serve(w, httptest.NewRequestWithContext(t.Context(), "GET", "/api/ending?job=a", nil))
			return w.Body.String()
		}
		if got := ask(); got != "null" {
			t.Error(got)
		}
		begun := time.Now()
		e.drain() // the page is about to ask again
		if time.Since(begun) != drainLimit {
			t.Errorf("the server waits for %v", time.Since(begun))
		}
		close(over)
		pass(2 * awaitPause)
		if got := ask(); !strings.Contains(got, "of a") {
			t.Error(got)
		}
		e.close()
	})
}

// TestMostEndings: so many jobs and no more.
func TestMostEndings(t *testing.T) {
	e := newEndings(func(ctx context.Context, _ string) *links.Ending { <-ctx.Done(); return nil })
	defer e.close()
	for i := range mostEnds + 1 {
		if x := e.of(strings.Repeat("x", i)); (x == nil) != (i == mostEnds) {
			t.Errorf("job %d: %v", i, x)
		}
	}
}
