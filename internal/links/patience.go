package links

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/host"
)

// How long nodes have to answer without -deadline. All of a machine that is not overloaded answer at
// once, so that the second limit is for those that wait for a core, which a node that is cut off, or
// stopped on another machine, looks like.
const (
	firstLimit = 2 * time.Second
	longLimit  = 15 * time.Second // then gRPC takes the connection for lost
)

// MaxDeadline is how long a node takes for an answer at most: there is nothing to wait for after it.
const MaxDeadline = 30 * time.Second

// patience decides how long nodes may take, from one survey to the next.
type patience struct {
	fixed   bool     // -deadline says it
	slow    bool     // all have answered, some of them only within longLimit
	givenUp []string // did not answer within longLimit
}

// survey asks once, or a second time if nodes do not answer: ask asks within a limit and returns
// those that have not answered, and wait is called with those that it is worth to wait for. The
// result is the limit of the last survey.
func (p *patience) survey(first time.Duration, ask func(time.Duration) []string, wait func([]string)) time.Duration {
	if p.fixed {
		ask(first)
		return first
	}
	if !p.slow {
		silent := ask(first)
		wanted := slices.DeleteFunc(slices.Clone(silent), func(name string) bool { return slices.Contains(p.givenUp, name) })
		if len(wanted) == 0 {
			p.givenUp = silent
			return first
		}
		wait(wanted)
	}
	p.givenUp = ask(longLimit)
	p.slow = len(p.givenUp) == 0
	return longLimit
}

// Survey asks the nodes of the jobs' owner. Those that do not answer in time are asked again with a
// longer limit, unless -deadline has one; note gets a line about that. limit is what they had in the
// end.
func (c *Selection) Survey(ctx context.Context, r Request, note io.Writer) (found []FoundNode, limit time.Duration) {
	dirs := host.RunDirs(c.RunDir, c.UID)
	ask := func(within time.Duration) (silent []string) {
		if ctx.Err() == nil {
			found = Survey(ctx, dirs, within, r)
		}
		return c.awaited(found, time.Now())
	}
	limit = c.patience.survey(c.Deadline, ask, func(silent []string) {
		if slices.Equal(silent, c.told) {
			return
		}
		c.told = silent
		more := ""
		if n := len(silent) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(note, "no answer within %v from %s%s: waiting up to %v, as where more procs than cores want to run; -deadline TIME is how long to wait instead\n",
			c.Deadline, silent[0], more, longLimit)
	})
	return found, limit
}

// awaited returns those that may soon answer, of the jobs that are chosen, or if none is, of those that
// may be.
func (c *Selection) awaited(found []FoundNode, now time.Time) (silent []string) {
	groups := ByJob(found)
	chosen := slices.DeleteFunc(slices.Clone(groups), func(g []FoundNode) bool {
		j := mergeJob(g)
		return !c.Includes(&j)
	})
	if len(chosen) == 0 {
		chosen = groups
	}
	for _, g := range chosen {
		for i := range g {
			if f := &g[i]; IsCalled(c.Job, f.About.Job, f.About.ID) && f.maySoonAnswer(now) {
				silent = append(silent, f.String())
			}
		}
	}
	return silent
}

// maySoonAnswer reports whether a node has not answered, is not known to be silent for long, and is
// not stopped.
func (f *FoundNode) maySoonAnswer(now time.Time) bool {
	silent := f.Err != nil && !errors.Is(f.Err, ErrNotAsked) && strings.Contains(f.Err.Error(), ErrSilent.Error())
	_, stopped := errors.AsType[stoppedError](f.Err)
	return silent && !stopped && (f.Since.IsZero() || now.Sub(f.Since) < longLimit)
}

// String names the node for people.
func (f *FoundNode) String() string {
	a, name := &f.About, "a node"
	switch {
	case a.Site != "" && a.Host != "":
		name = "site " + a.Site + ", host " + a.Host
	case a.Site != "":
		name = "site " + a.Site
	}
	if a.PID > 0 {
		name += fmt.Sprintf(" (process %d)", a.PID)
	}
	if a.Job != "" {
		name += " of job " + a.Job
	}
	return name
}
