// Package ending decides by whose failure a site's part of a job ends
// (docs/decisions/0037-causes-and-consequences.md).
//
// One death is noticed in many places, in any order: a proc whose link broke may report that before
// the kernel tells that its peer was killed. An [Ending] collects the failures of one site, holds back
// for a moment those that another may explain, and then decides for one. It has no clock: the caller
// passes the time, and calls [Ending.Tick] at [Ending.Deadline]. Only one goroutine may use it at a
// time.
package ending

import "time"

// Ending is the end of a site's part of a job. The zero value has no failure yet.
type Ending struct {
	best     *Failure
	made     bool
	deadline time.Time
	late     *Failure
	over     bool
}

// Fail reports a failure. It does nothing once the decision is made.
func (e *Ending) Fail(now time.Time, f *Failure) {
	if e.made || e.best != nil && !f.Explains(e.best) {
		return
	}
	at := now.Add(f.Weight.Settle())
	if e.best == nil || at.Before(e.deadline) {
		e.deadline = at
	}
	e.best = f
	e.Tick(now)
}

// Deadline is when the decision is made unless a failure comes that explains the others. ok is false
// if there is none, or the decision is made.
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

// Failing reports whether the job ends: something has failed, whatever is to blame for it.
func (e *Ending) Failing() bool { return e.best != nil }

// Cause is the failure that is to blame: nil before the decision, and if nothing failed.
func (e *Ending) Cause() *Failure {
	if !e.made {
		return nil
	}
	return e.best
}

// ProcEnded takes the end of a proc's process. The result is nil unless the proc is the first that
// failed after its Finalize: then it is that failure, which the operator is to be told of.
func (e *Ending) ProcEnded(now time.Time, p Proc, x Exit) (late *Failure) {
	switch f := p.ended(x); {
	case f == nil:
		return nil
	case p.Phase == Finished:
		return e.noteLate(f)
	default:
		e.Fail(now, f)
		return nil
	}
}

// ProcAborted takes a proc's call of MPI_Abort, with the result of ProcEnded. One that comes after
// its Finalize ends the job, too, if that is not over before it can.
func (e *Ending) ProcAborted(now time.Time, p Proc, code int, reason string) (late *Failure) {
	f := p.aborted(code, reason, now)
	if p.Phase == Finished {
		late = e.noteLate(f)
	}
	e.Fail(now, f)
	return late
}

// ProcUnlinked takes the loss of a proc's link to another one, named peer, for why. It ends the job:
// nobody knows what was on the link, and procs that receive from any source would wait for it.
func (e *Ending) ProcUnlinked(now time.Time, p Proc, peer, why string) {
	e.Fail(now, p.unlinked(peer, why))
}

// Late notes the failure of a proc that had passed Finalize, which another host of the site has
// reported: the job goes on, and fails by it only if by nothing else.
func (e *Ending) Late(f *Failure) { _ = e.noteLate(f) }

// noteLate records f as the first late failure and returns it; it returns nil if there was one
// before, or the job is over.
func (e *Ending) noteLate(f *Failure) *Failure {
	if e.over || e.late != nil {
		return nil
	}
	e.late = f
	return f
}

// FirstLate is the first failure of a proc that had passed Finalize, or nil.
func (e *Ending) FirstLate() *Failure { return e.late }

// ProcLost takes the end of a proc in MPI without which the job goes on. The result is the failure that
// the job fails by if by nothing else, or nil if the proc has ended in order.
func (e *Ending) ProcLost(p Proc, x Exit) *Failure {
	f := p.ended(x)
	if f != nil {
		_ = e.noteLate(f)
	}
	return f
}

// Inherit takes the failure of a world that procs of this site have spawned and are connected with:
// it is one of their own job. If that is over it is that of the job that has spawned it, to which
// the caller passes it on.
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

// Over ends the part of the job: nothing of it is left, and f is the failure with which it was shut
// down, or nil.
func (e *Ending) Over(f *Failure) Outcome {
	e.over = true
	if f == nil {
		f = e.late
	}
	return Outcome{f, f != nil && f == e.late && f != e.Cause()}
}

// Outcome is how a site's part of a job has ended.
type Outcome struct {
	Failure *Failure // nil: well
	Late    bool     // the failure came after the end of its job
}

// OfWorld is how a spawned world has ended for the site that spawned it, which has parts of it and
// its server: what the site has found out counts more than what others have told it, and what is
// told to a part more than what the server says by itself.
func OfWorld(parts []Outcome, server *Failure) (o Outcome) {
	for _, p := range parts {
		if p.Failure != nil && (o.Failure == nil || o.Failure.Remote) {
			o = p
		}
	}
	if o.Failure == nil {
		o.Failure = server
	}
	return o
}
