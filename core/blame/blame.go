// Package blame decides which of the reports about a broken job explains the others.
//
// One death shows in many places, in any order: a proc whose link broke may report
// before the kernel tells that its peer was killed. A [Decision] takes the reports of one
// site, holds the lighter ones for a moment, and decides on one. It has no clock: the
// caller passes the time, and calls [Decision.Tick] when [Decision.Deadline] has come. It is not
// safe for use by several goroutines.
package blame

import "time"

// Weight ranks reports: the heavier one explains the lighter one.
type Weight int

const (
	// Consequence is the end of a proc that had lost its link to another one before, which
	// may have died, or whose machine is lost.
	Consequence Weight = iota
	// Lost is the end of a connection of the node's. Whoever is behind it knows why.
	Lost
	// Died is the end of a proc by exit, signal or MPI_Abort to which nothing had happened
	// before. The first one is to blame, however it ended.
	Died
	// Decided is a report with nothing left to find out: the operator, another site or a
	// time limit ended the job, or the node cannot go on.
	Decided
)

// Longest is the longest time that a report waits for one that explains it.
const Longest = 2 * time.Second

// Settle is how long a report of this weight waits for one that explains it. A report
// from another site takes its own wait and the way through the server. Procs that ended
// wait equally long at all sites, so that of two sites the one whose proc ended first
// speaks first.
func (w Weight) Settle() time.Duration {
	switch w {
	case Consequence, Lost:
		return Longest
	case Died:
		return 100 * time.Millisecond
	default:
		return 0
	}
}

// Report is what the decision needs to know of a report.
type Report struct {
	Weight Weight
	Ended  time.Time // when the proc of the report ended; zero if that is not known
}

// Explains says whether r is to be told instead of o, which was reported sooner. Of two
// procs the one that ended first is to blame, even if it was looked at later.
func (r Report) Explains(o Report) bool {
	switch {
	case r.Weight != o.Weight:
		return r.Weight > o.Weight
	case r.Ended.IsZero() || o.Ended.IsZero():
		return false
	}
	return r.Ended.Before(o.Ended)
}

// Decision collects the reports of one site. T is what the caller wants to know of the one
// that is to blame. The zero value has no report yet.
type Decision[T any] struct {
	best     Report
	what     T
	reported bool
	made     bool
	deadline time.Time
}

// Report takes a report. Once the decision is made it does nothing.
func (d *Decision[T]) Report(now time.Time, r Report, what T) {
	if d.made || d.reported && !r.Explains(d.best) {
		return
	}
	at := now.Add(r.Weight.Settle())
	if !d.reported || at.Before(d.deadline) {
		d.deadline = at
	}
	d.best, d.what, d.reported = r, what, true
	d.Tick(now)
}

// Deadline is when the decision is made unless a heavier report comes; ok is false if
// nothing was reported or it has been made.
func (d *Decision[T]) Deadline() (at time.Time, ok bool) {
	return d.deadline, d.reported && !d.made
}

// Tick makes the decision if its time has come.
func (d *Decision[T]) Tick(now time.Time) {
	if at, ok := d.Deadline(); ok && !now.Before(at) {
		d.made = true
	}
}

// Close makes the decision now: nothing more is to be reported.
func (d *Decision[T]) Close() { d.made = true }

// Made says whether the decision is made.
func (d *Decision[T]) Made() bool { return d.made }

// Cause is what is to blame; ok is false before the decision, and if nothing was
// reported.
func (d *Decision[T]) Cause() (what T, ok bool) {
	if !d.made || !d.reported {
		var none T
		return none, false
	}
	return d.what, true
}
