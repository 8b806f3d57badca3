// Package ending decides why a site's part of a job ends early. Whatever breaks is a Failure, and
// all parts of a node report theirs to one Ending, which picks the one that explains the others.
package ending

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openimpi/impi/core/blame"
)

// Ending collects the reports of what broke, from all goroutines of the node, and ends
// the node's context by the one that is to blame.
type Ending struct {
	mu       sync.Mutex
	decision blame.Decision[*Failure]
	timer    *time.Timer // for the decision's deadline
	cancel   context.CancelCauseFunc
	late     *Failure
	onLate   func(*Failure)
	over     bool
}

// New makes an Ending and the context that ends with it: the failure is
// its cause.
func New(ctx context.Context) (*Ending, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Ending{cancel: cancel}, ctx
}

// Fail reports a failure.
func (e *Ending) Fail(f *Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.decision.Report(now, f.Report(), f)
	if at, ok := e.decision.Deadline(); !ok {
		e.announce()
	} else if e.timer == nil {
		e.timer = time.AfterFunc(at.Sub(now), e.tick)
	} else {
		e.timer.Reset(at.Sub(now))
	}
}

func (e *Ending) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decision.Tick(time.Now())
	e.announce()
}

// announce ends the context once the decision is made.
func (e *Ending) announce() {
	if !e.decision.Made() {
		return
	}
	if f, ok := e.decision.Cause(); ok {
		e.cancel(f)
	} else {
		e.cancel(nil)
	}
}

// Close is for the end of the node: nothing is reported any more.
func (e *Ending) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
	e.decision.Close()
	e.announce()
}

// OnLate has f told of the failure that Late notes. f must not call the Ending.
func (e *Ending) OnLate(f func(*Failure)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onLate = f
}

// Late notes the failure of a proc that had passed Finalize: the job goes on, and fails by it
// only if by nothing else. first: none was noted before. over: the job's end came first.
func (e *Ending) Late(f *Failure) (first, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return false, true
	}
	first = e.late == nil
	if first {
		e.late = f
		if e.onLate != nil {
			e.onLate(f)
		}
	}
	return first, false
}

// WasLate tells whether f is the failure that Late has noted.
func (e *Ending) WasLate(f *Failure) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return f != nil && f == e.late
}

// Over is for a job of which nothing is left. It gives its failure: f, or the late one.
func (e *Ending) Over(f *Failure) *Failure {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if f == nil {
		f = e.late
	}
	return f
}

// Of gives the failure that ended a context of New, or nil.
func Of(ctx context.Context) *Failure {
	if ctx.Err() == nil {
		return nil
	}
	var f *Failure
	_ = errors.As(context.Cause(ctx), &f) // nil if it ended otherwise
	return f
}
