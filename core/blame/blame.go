// Package blame decides which of several reports about a broken job names the cause
// (docs/decisions/0037-causes-and-consequences.md).
//
// One death is noticed in many places, in any order: a proc whose link broke may report
// that before the kernel tells that its peer was killed. A [Decision] collects the reports
// of one site, holds back for a moment those that another may explain, and then decides for
// one. It has no clock: the caller passes the time, and calls [Decision.Tick] at
// [Decision.Deadline]. Only one goroutine may use it at a time.
package blame

import "time"

// Weight ranks reports: the heavier of two reports explains the lighter one.
type Weight int

const (
	// Consequence is the end of a proc that had lost its link to another proc before. That
	// proc may have died, or its machine may be lost.
	Consequence Weight = iota
	// Lost is the end of a connection of the node. The process at its other end knows the
	// reason.
	Lost
	// Died is the end of a proc, by exit, signal or MPI_Abort, that had not reported a lost
	// link. The first such proc is to blame, however it ended.
	Died
	// Decided is a report that needs no explanation: the operator, another site or a time
	// limit ended the job, or the node cannot go on.
	Decided
)

// Longest is the longest time that a report waits for one that explains it.
const Longest = 2 * time.Second

// Settle is how long a report of this weight is held back for one that explains it. A
// report from another site arrives after that site's own wait and the way through the
// server. For procs that ended the wait is the same at all sites, so that of two sites the
// one whose proc ended first reports first.
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

// Report is what a Decision has to know of a report.
type Report struct {
	Weight Weight
	Ended  time.Time // when the proc of the report ended; zero if unknown
}

// Explains reports whether r is a better cause than o, which was reported earlier. Of two
// procs the one that ended first is to blame, even if its end was noticed later.
func (r Report) Explains(o Report) bool {
	switch {
	case r.Weight != o.Weight:
		return r.Weight > o.Weight
	case r.Ended.IsZero() || o.Ended.IsZero():
		return false
	}
	return r.Ended.Before(o.Ended)
}

// Decision collects the reports of one site. T is the caller's own description of a report.
// The zero value has no report yet.
type Decision[T any] struct {
	best     Report
	what     T
	reported bool
	made     bool
	deadline time.Time
}

// Report adds a report. It does nothing once the decision is made.
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

// Deadline is when the decision is made unless a heavier report comes. ok is false if
// nothing was reported, or the decision is made.
func (d *Decision[T]) Deadline() (at time.Time, ok bool) {
	return d.deadline, d.reported && !d.made
}

// Tick makes the decision if its time has come.
func (d *Decision[T]) Tick(now time.Time) {
	if at, ok := d.Deadline(); ok && !now.Before(at) {
		d.made = true
	}
}

// Close makes the decision now; later reports are ignored.
func (d *Decision[T]) Close() { d.made = true }

// Made reports whether the decision is made.
func (d *Decision[T]) Made() bool { return d.made }

// Cause is the report that is to blame; ok is false before the decision, and if nothing was
// reported.
func (d *Decision[T]) Cause() (what T, ok bool) {
	if !d.made || !d.reported {
		var none T
		return none, false
	}
	return d.what, true
}
