package sim

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/openimpi/impi/internal/sim/check"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// Failure is what was wrong with a run.
type Failure struct {
	// Oracle says who found it: "wire" and the rule of package check, "result",
	// "order", "liveness", "survivors", "blame", "startup", "repeat", "panic" or "case".
	Oracle string
	Err    error
}

func failure(oracle string, err error) *Failure { return &Failure{oracle, err} }

// Error has the oracle and what it says.
func (f *Failure) Error() string { return f.Oracle + ": " + f.Err.Error() }

// Unwrap gives what the oracle says.
func (f *Failure) Unwrap() error { return f.Err }

func panicked(value any) *Failure {
	if p, ok := value.(*kernel.Panic); ok {
		return failure("panic", fmt.Errorf("%v", p))
	}
	return failure("panic", fmt.Errorf("%v\n%s", value, debug.Stack()))
}

// judge decides whether a run went as it must.
func (x *execution) judge(r job.Result) *Failure {
	if r.Err != nil {
		return x.broken(r.Err)
	}
	for rank, err := range r.Procs() {
		if errors.Is(err, script.ErrMismatch) || errors.Is(err, script.ErrIllegal) {
			return failure("result", fmt.Errorf("rank %d: %w", rank, err))
		}
	}
	failed := errors.Join(append(append(r.Sites(), r.Server()), r.Procs()...)...)
	if failed == nil {
		return x.wellEnded()
	}
	if !r.Struck {
		return failure("order", fmt.Errorf("nothing deadly happened, but: %w", failed))
	}
	return x.survived(r)
}

// broken is for a run that came to no end.
func (x *execution) broken(err error) *Failure {
	var v *check.Violation
	switch {
	case errors.As(err, &v):
		return failure("wire "+string(v.Rule), err)
	case errors.Is(err, job.ErrStuck):
		return failure("liveness", err)
	case errors.Is(err, job.ErrDisorder), errors.Is(err, job.ErrLate):
		return failure("survivors", err)
	case errors.Is(err, job.ErrBlame):
		return failure("blame", err)
	}
	return failure("startup", err)
}

// wellEnded wants everything of a job that ended in order.
func (x *execution) wellEnded() *Failure {
	if rank := x.missing(); rank >= 0 {
		return failure("result", fmt.Errorf("rank %d did not come to the end of its program", rank))
	}
	if err := script.Verify(x.c.Program, x.records); err != nil {
		return failure("result", err)
	}
	if err := x.watch.checker.Finish(true); err != nil {
		return x.broken(err)
	}
	return nil
}

// survived judges a job that was struck: what ranks got until then is right, and
// nobody ended in order unless all ranks had come to the end of their programs.
// Package job has judged that all have heard of it, and soon.
func (x *execution) survived(r job.Result) *Failure {
	if err := script.Verify(x.c.Program, x.records); err != nil {
		return failure("result", err)
	}
	missing := x.missing()
	for i, err := range r.Sites() {
		if err == nil && missing >= 0 {
			return failure("survivors", fmt.Errorf("site %d ended in order, but rank %d did not come to the end of its program", i, missing))
		}
	}
	return nil
}

// missing gives a rank that did not come to the end of its program, or -1.
func (x *execution) missing() int {
	return slices.IndexFunc(x.records, func(rec *script.Record) bool { return !rec.Ended })
}
