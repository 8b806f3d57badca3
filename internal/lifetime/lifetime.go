// Package lifetime ends a node's part of a job: all parts of the node report what breaks to one
// Lifetime, whose context ends by the failure that is to blame, as core/ending decides. A Group has
// what goes on beside that, and knows when nothing of it is left.
package lifetime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch"
)

// Lifetime adds time and a context to an Ending. Its methods may be called by any goroutine.
type Lifetime struct {
	// OnLate, set before the first report, is called with the first failure of a proc that came
	// after its Finalize. It must not call the Lifetime.
	OnLate func(*ending.Failure)

	mu     sync.Mutex
	ending ending.Ending
	alarm  Alarm // at the deadline of the decision
	cancel context.CancelCauseFunc
}

// New makes a Lifetime and the context that ends with it: the failure is its cause.
func New(ctx context.Context) (*Lifetime, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Lifetime{cancel: cancel}, ctx
}

// Report calls f, which reports something to the Ending.
func (l *Lifetime) Report(f func(now time.Time, e *ending.Ending)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.ending.FirstLate()
	f(time.Now(), &l.ending)
	if x := l.ending.FirstLate(); x != late && l.OnLate != nil {
		l.OnLate(x)
	}
	at, waits := l.ending.Deadline()
	l.alarm.Set(at, waits && !l.ending.Made(), func() {
		l.Report(func(now time.Time, e *ending.Ending) { e.Tick(now) })
	})
	switch f := l.ending.Cause(); {
	case !l.ending.Made():
	case f != nil:
		l.cancel(f)
	default: // not f, which would be an error that is not nil
		l.cancel(nil)
	}
}

// Fail reports a failure at this moment. The Ending decides whether and when the Lifetime ends by
// it.
func (l *Lifetime) Fail(f *ending.Failure) {
	l.Report(func(now time.Time, e *ending.Ending) { e.Fail(now, f) })
}

// Close ends the Lifetime with its node: later reports have no effect.
func (l *Lifetime) Close() { l.Report(func(_ time.Time, e *ending.Ending) { e.Close() }) }

// FailureOf returns the failure by which a context of New has ended; nil if it has not, or
// otherwise.
func FailureOf(ctx context.Context) *ending.Failure {
	if ctx.Err() == nil {
		return nil
	}
	var f *ending.Failure
	_ = errors.As(context.Cause(ctx), &f) // nil if it ended otherwise
	return f
}

// Interrupt is the cause of a context that an operator's signal ended.
type Interrupt struct{ Signal syscall.Signal }

func (i Interrupt) Error() string { return launch.SignalName(i.Signal) }

// Interrupted returns the failure of a job that its operator ended at a site.
func Interrupted(site string, cause error) *ending.Failure {
	f := ending.NodeFailed(fmt.Errorf("the operator ended the job at site %s (%w)", site, cause))
	if i, ok := errors.AsType[Interrupt](cause); ok {
		f.Status = 128 + int(i.Signal)
	}
	return f
}
