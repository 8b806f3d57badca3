package routes

import (
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/config"
)

// live is what a reload of the job file has changed; nothing before the first one.
type live struct{ now atomic.Pointer[Change] }

// Change holds settings that apply from now on, instead of those of the job file at the start.
type Change struct {
	Site   *config.Site // Table.Site with other routes
	Limits config.Limits
}

// Apply makes later decisions use c. Existing links and channels stay as they are.
func Apply(rt *Table, c Change) { rt.live.now.Store(&c) }

// Now returns the site with the present routes.
func Now(rt *Table) *config.Site {
	if c := rt.live.now.Load(); c != nil {
		return c.Site
	}
	return rt.Site
}

// Limits returns the present limits.
func Limits(rt *Table) config.Limits {
	if c := rt.live.now.Load(); c != nil {
		return c.Limits
	}
	return rt.Job.Limits
}

// ResumeNow returns the maximum time to resume a link or a channel.
func ResumeNow(rt *Table) time.Duration { return resumeLimit(Limits(rt)) }
