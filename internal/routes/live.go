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

// ApplyChange makes later decisions use c. Existing links and channels stay as they are.
func ApplyChange(rt *Table, c Change) { rt.live.now.Store(&c) }

// CurrentSite returns the site with the routes that hold now, which a reload may have changed. The
// caller must not change it.
func CurrentSite(rt *Table) *config.Site {
	if c := rt.live.now.Load(); c != nil {
		return c.Site
	}
	return rt.Site
}

// CurrentLimits returns the limits that hold now, which a reload may have changed.
func CurrentLimits(rt *Table) config.Limits {
	if c := rt.live.now.Load(); c != nil {
		return c.Limits
	}
	return rt.Job.Limits
}

// CurrentResumeLimit returns the maximum time to resume a link or a channel.
func CurrentResumeLimit(rt *Table) time.Duration { return resumeLimit(CurrentLimits(rt)) }
