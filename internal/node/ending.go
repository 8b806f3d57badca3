package node

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ending collects the reports of what broke and decides on one of them. Deaths
// are noticed in any order: a proc whose link broke may report before the
// kernel tells that its peer was killed. So lighter reports are held a moment.
type ending struct {
	mu      sync.Mutex
	best    *Failure
	timer   *time.Timer
	at      time.Time // when timer fires
	decided bool
	cancel  context.CancelCauseFunc
	settle  func(weight) time.Duration
}

// newEnding makes an ending and the context that ends with it: the failure is
// its cause.
func newEnding(ctx context.Context) (*ending, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &ending{cancel: cancel, settle: settle}, ctx
}

// fail reports a failure. The first of the heaviest wins.
func (e *ending) fail(f *Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.decided || e.best != nil && !f.explains(e.best) {
		return
	}
	e.best = f
	wait := e.settle(f.weight)
	switch at := time.Now().Add(wait); {
	case wait == 0:
		e.decide()
	case e.timer == nil:
		e.at, e.timer = at, time.AfterFunc(wait, e.settled)
	case at.Before(e.at):
		e.at = at
		e.timer.Reset(wait)
	}
}

func (e *ending) settled() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decide()
}

func (e *ending) decide() {
	switch {
	case e.decided:
	case e.best == nil:
		e.cancel(nil)
	default:
		e.cancel(e.best)
	}
	e.decided = true
}

// close is for the end of the node: nothing is reported any more.
func (e *ending) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
	e.decide()
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
