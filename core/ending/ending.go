// Package ending decides by whose failure a site's part of a job ends
// (docs/decisions/0037-causes-and-consequences.md).
//
// One death is noticed in many places, in any order: a proc whose link broke may report that before
// the kernel tells that its peer was killed. An [Ending] collects the failures of one site, holds
// back for a moment those that another may explain, and then decides for one. It has no clock: the
// caller passes the time, and calls [Ending.Tick] at [Ending.Deadline]. Only one goroutine may use
// it at a time.
package ending

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/startup"
)

// Ending is the end of a site's part of a job. The zero value has no failure yet.
type Ending struct {
	best     *Failure
	made     bool
	deadline time.Time
	late     *Failure
	over     bool
}

// Fail records a failure. It does nothing once the decision is made.
func (e *Ending) Fail(now time.Time, f *Failure) {
	if e.made || e.best != nil && !f.Explains(e.best) {
		return
	}
	at := now.Add(f.Precedence.HoldTime())
	if e.best == nil || at.Before(e.deadline) {
		e.deadline = at
	}
	e.best = f
	e.Tick(now)
}

// Deadline returns the time when the decision is made, unless a failure comes that explains the
// others. ok is false if nothing has failed, or the decision is made.
func (e *Ending) Deadline() (at time.Time, ok bool) { return e.deadline, e.best != nil && !e.made }

// Tick makes the decision if its time has come.
func (e *Ending) Tick(now time.Time) {
	if at, ok := e.Deadline(); ok && !now.Before(at) {
		e.made = true
	}
}

// Close makes the decision now; later failures are ignored.
func (e *Ending) Close() { e.made = true }

// Made reports whether the decision is made.
func (e *Ending) Made() bool { return e.made }

// Failing reports whether the job ends because something has failed, whatever the cause is.
func (e *Ending) Failing() bool { return e.best != nil }

// Cause returns the failure that is to blame. It returns nil before the decision, and if nothing
// failed.
func (e *Ending) Cause() *Failure {
	if !e.made {
		return nil
	}
	return e.best
}

// ProcEnded records the end of a proc's process. The result is nil unless the proc is the first
// that failed after its Finalize: then it is that failure, which is to be reported to the operator.
func (e *Ending) ProcEnded(now time.Time, p Proc, x Exit) (late *Failure) {
	switch f := p.ended(x); {
	case f == nil:
		return nil
	case p.State == Finished:
		return e.noteLate(f)
	default:
		e.Fail(now, f)
		return nil
	}
}

// ProcAborted records a proc's call of MPI_Abort. The result is like that of ProcEnded. A call
// after the proc's Finalize ends the job too, unless the job is over before.
func (e *Ending) ProcAborted(now time.Time, p Proc, code int, reason string) (late *Failure) {
	f := p.aborted(code, reason, now)
	if p.State == Finished {
		late = e.noteLate(f)
	}
	e.Fail(now, f)
	return late
}

// ProcUnlinked records the loss of a proc's link to another proc, named peer, for the reason why.
// It ends the job: the data on the link is unknown, and procs that receive from any source would
// wait for it.
func (e *Ending) ProcUnlinked(now time.Time, p Proc, peer, why string) {
	e.Fail(now, p.unlinked(peer, why))
}

// ReportLate records the failure of a proc that had passed Finalize, which another host of the site
// has reported. The job continues; this becomes its failure only if there is no other.
func (e *Ending) ReportLate(f *Failure) { _ = e.noteLate(f) }

// noteLate records f as the first late failure and returns it; it returns nil if there was one
// before, or the job is over.
func (e *Ending) noteLate(f *Failure) *Failure {
	if e.over || e.late != nil {
		return nil
	}
	e.late = f
	return f
}

// FirstLate returns the first failure of a proc that had passed Finalize, or nil.
func (e *Ending) FirstLate() *Failure { return e.late }

// ProcLost records the end of a proc in MPI without which the job continues. The result is the
// failure of the job if it meets no other, or nil if the proc has ended in order.
func (e *Ending) ProcLost(p Proc, x Exit) *Failure {
	f := p.ended(x)
	if f != nil {
		_ = e.noteLate(f)
	}
	return f
}

// Inherit records the failure of a world that procs of this site have spawned and are connected
// with, as a failure of their own job. If that job is over, passOn is true: the caller passes the
// failure on to the job that has spawned this one.
func (e *Ending) Inherit(now time.Time, o Outcome) (passOn bool) {
	if e.over {
		return true
	}
	_ = e.noteLate(o.Failure)
	if !o.Late {
		e.Fail(now, o.Failure)
	}
	return false
}

// Conclude ends the part of the job: nothing of it is left, and f is the failure with which it was
// shut down, or nil.
func (e *Ending) Conclude(f *Failure) Outcome {
	e.over = true
	if f == nil {
		f = e.late
	}
	return Outcome{f, f != nil && f == e.late && f != e.Cause()}
}

// Outcome is how a site's part of a job has ended.
type Outcome struct {
	Failure *Failure // nil: no failure
	Late    bool     // the failure came after the end of its job
}

// AwaitsPart reports whether WorldOutcome needs the outcome of one more part of the site, beside
// those that have come. A proc may fail after the end of its world, of which the server does not
// learn.
func AwaitsPart(parts []Outcome) bool {
	f := WorldOutcome(parts, nil, false).Failure
	return f == nil || f.Remote
}

// WorldOutcome returns the outcome of a spawned world for the site that spawned it, which has parts
// of the world and its server: a failure that the site has detected takes precedence over one
// reported by other sites, and one reported to a part over one reported by the server alone. With
// survives the parents' job goes on without lost procs: if all that was left of the world is lost,
// that counts as late.
func WorldOutcome(parts []Outcome, server *Failure, survives bool) (o Outcome) {
	for _, p := range parts {
		if p.Failure != nil && (o.Failure == nil || o.Failure.Remote) {
			o = p
		}
	}
	if o.Failure == nil {
		o.Failure = server
	}
	if survives && o.Failure != nil && o.Failure == server && errors.Is(server, startup.ErrLost) {
		o.Late = true
	}
	return o
}
