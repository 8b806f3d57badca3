package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openimpi/impi/core/blame"
)

// ending collects the reports of what broke, from all goroutines of the node, and ends
// the node's context by the one that is to blame.
type ending struct {
	mu       sync.Mutex
	decision blame.Decision[*Failure]
	timer    *time.Timer // for the decision's deadline
	cancel   context.CancelCauseFunc
}

// newEnding makes an ending and the context that ends with it: the failure is
// its cause.
func newEnding(ctx context.Context) (*ending, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &ending{cancel: cancel}, ctx
}

// fail reports a failure.
func (e *ending) fail(f *Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.decision.Report(now, f.report(), f)
	if at, ok := e.decision.Deadline(); !ok {
		e.announce()
	} else if e.timer == nil {
		e.timer = time.AfterFunc(at.Sub(now), e.tick)
	} else {
		e.timer.Reset(at.Sub(now))
	}
}

func (e *ending) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decision.Tick(time.Now())
	e.announce()
}

// announce ends the context once the decision is made.
func (e *ending) announce() {
	if !e.decision.Made() {
		return
	}
	if f, ok := e.decision.Cause(); ok {
		e.cancel(f)
	} else {
		e.cancel(nil)
	}
}

// close is for the end of the node: nothing is reported any more.
func (e *ending) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
	e.decision.Close()
	e.announce()
}

// failure gives the failure that ended a context of newEnding.
func failure(ctx context.Context) *Failure {
	if ctx.Err() == nil {
		return nil
	}
	var f *Failure
	_ = errors.As(context.Cause(ctx), &f) // nil if it ended otherwise
	return f
}
