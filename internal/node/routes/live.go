package routes

import (
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/config"
)

// live is what a reload of the job file has changed; nothing before the first one.
type live struct{ now atomic.Pointer[Change] }

// Change is what holds from now on, instead of what the job file said at the start.
type Change struct {
	Site   *config.Site // Table.Site with other routes
	Limits config.Limits
}

// Apply has what is decided from now on go by c. What is there already stays as it is.
func Apply(rt *Table, c Change) { rt.live.now.Store(&c) }

// Now is the site with the routes that hold now.
func Now(rt *Table) *config.Site {
	if c := rt.live.now.Load(); c != nil {
		return c.Site
	}
	return rt.Site
}

// Limits are those that hold now.
func Limits(rt *Table) config.Limits {
	if c := rt.live.now.Load(); c != nil {
		return c.Limits
	}
	return rt.Job.Limits
}

// ResumeNow is how long a link or a channel may take to be resumed.
func ResumeNow(rt *Table) time.Duration { return resumeLimit(Limits(rt)) }
