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

// Failure is an error that an oracle has found in a run.
type Failure struct {
	// Oracle names what found the failure: "wire" and the rule of package check, "result", "order",
	// "liveness", "survivors", "blame", "startup", "repeat", "panic" or "case", and where jobs meet
	// also "contexts" or "leak".
	Oracle string
	Err    error
}

func failure(oracle string, err error) *Failure { return &Failure{oracle, err} }

func (f *Failure) Error() string { return f.Oracle + ": " + f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

func panicked(value any) *Failure {
	if p, ok := value.(*kernel.Panic); ok {
		return failure("panic", fmt.Errorf("%v", p))
	}
	return failure("panic", fmt.Errorf("%v\n%s", value, debug.Stack()))
}

func (x *execution) judge(all []job.Result) *Failure {
	for _, r := range all {
		if _, ok := errors.AsType[*check.Violation](r.Err); ok {
			return x.broken(r.Err)
		}
	}
	if x.misplaced != nil {
		return failure("startup", x.misplaced)
	}
	if f := x.wrong(all); f != nil {
		return f
	}
	if _, losses := x.c.Program.Recover(); losses {
		return x.recovered(all)
	}
	for _, r := range all {
		if f := x.ended(x.number(r), r); f != nil {
			return f
		}
	}
	for w, world := range x.worlds {
		if world == nil {
			return failure("result", fmt.Errorf("world %c has not been spawned", 'a'+w))
		}
	}
	if err := script.Verify(x.c.Program, x.records); err != nil {
		return failure(oracle(err), err)
	}
	return x.left(all)
}

// oracles tells by the error which oracle has found a fault in what a rank got.
var oracles = []struct {
	err  error
	name string
}{{script.ErrContexts, "contexts"}, {script.ErrLeak, "leak"}, {script.ErrMismatch, "result"}, {script.ErrIllegal, "result"}}

// oracle returns the oracle of an error; "" if a fault of the run may have caused it.
func oracle(err error) string {
	for _, o := range oracles {
		if errors.Is(err, o.err) {
			return o.name
		}
	}
	return ""
}

// wrong returns a fault that ranks have found and that no fault of the run excuses.
func (x *execution) wrong(all []job.Result) *Failure {
	victim, death := x.victim()
	for _, r := range all {
		w := x.number(r)
		if death && w == victim && r.FaultHit {
			continue
		}
		for rank, err := range r.Procs() {
			if name := oracle(err); name != "" {
				return failure(name, fmt.Errorf("%srank %d: %w", x.inWorld(w), rank, err))
			}
		}
	}
	return nil
}

// number returns the number of a world; -1: it did not live long enough to get one.
func (x *execution) number(r job.Result) int { return slices.Index(x.worlds, r.World) }

// victim returns the world that ends because its root dies or its Fail has come, if there is one.
func (x *execution) victim() (world int, death bool) {
	if d, death := x.c.Program.Death(); death {
		world, _ = d.Victim(x.c.Program)
		return world, true
	}
	world, _, fails := x.c.Program.Fails()
	return world, fails
}

// inWorld names a world, if there are several.
func (x *execution) inWorld(w int) string {
	switch {
	case w < 0:
		return "a world that was to fail: "
	case len(x.worlds) == 1:
		return ""
	}
	return fmt.Sprintf("world %c: ", 'a'+w)
}

func (x *execution) ended(w int, r job.Result) *Failure {
	victim, death := x.victim()
	failed := errors.Join(append(append(r.Sites(), r.Server()), r.Procs()...)...)
	if failed != nil {
		failed = fmt.Errorf("%s%w", x.inWorld(w), failed)
	}
	switch {
	case w < 0 && r.Err == nil && failed == nil:
		return failure("survivors", errors.New("a world that was to fail has not"))
	case w < 0 && r.Err == nil:
		return nil
	case death && !x.shared.Doomed && failed == nil:
		return failure("case", errors.New("nobody died"))
	case death && w == victim && r.FaultHit:
		return nil
	case death && x.shared.Doomed && r.Err == nil && failed != nil:
		return failure("survivors", failed)
	case r.Err != nil:
		return x.broken(fmt.Errorf("%s%w", x.inWorld(w), r.Err))
	case failed == nil:
		return x.wellEnded(w)
	case !r.FaultHit:
		return failure("order", fmt.Errorf("nothing deadly happened, but: %w", failed))
	}
	return x.survived(w, r)
}

// left checks that nothing of one world is left in another.
func (x *execution) left(all []job.Result) *Failure {
	if x.meeting == nil {
		return nil
	}
	if r := x.meeting.Left(); r != (job.Remains{}) {
		return failure("leak", fmt.Errorf("%w: the nodes have %+v", script.ErrLeak, r))
	}
	return nil
}

func (x *execution) broken(err error) *Failure {
	var v *check.Violation
	switch {
	case errors.As(err, &v):
		return failure("wire "+string(v.Rule), err)
	case errors.Is(err, job.ErrStuck):
		return failure("liveness", err)
	case errors.Is(err, job.ErrDisorder), errors.Is(err, job.ErrLate):
		return failure("survivors", err)
	case errors.Is(err, job.ErrWrongCause):
		return failure("blame", err)
	}
	return failure("startup", err)
}

func (x *execution) wellEnded(w int) *Failure {
	if rank := x.missing(w); rank >= 0 {
		return failure("result", fmt.Errorf("%srank %d did not come to the end of its program", x.inWorld(w), rank))
	}
	if err := x.watches[w].checker.Finish(true); err != nil {
		return x.broken(err)
	}
	return nil
}

// survived judges a job that a fault has hit: no site may have ended in order unless all ranks had
// finished their programs. Package job judges whether all sites have heard of it in time.
func (x *execution) survived(w int, r job.Result) *Failure {
	missing := x.missing(w)
	for i, err := range r.Sites() {
		if err == nil && missing >= 0 {
			return failure("survivors", fmt.Errorf("site %d ended in order, but rank %d did not come to the end of its program", i, missing))
		}
	}
	return nil
}

// missing returns a rank of a world that has not finished its program, or -1.
func (x *execution) missing(w int) int {
	first := 0
	if w > 0 {
		for _, n := range x.c.Program.Worlds[:w] {
			first += n
		}
	}
	return slices.IndexFunc(x.records[first:first+len(x.watches[w].want.Procs)], func(rec *script.Record) bool { return !rec.Ended })
}
