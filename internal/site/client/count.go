package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/site/report"
)

// counts are how many procs the hosts of a site have. Where the file says "auto", each host's own
// node knows that, and all must know it before procs start, which are numbered over all hosts.
type counts struct {
	procs []int // by host; set by KeepOwnHost and Count

	mu    sync.Mutex
	told  *membership.Counts // at the head
	whole chan struct{}      // closed when told has the counts of all hosts
}

// Procs returns the number of procs of a host of the site. It is known after Count.
func (o *Cluster) Procs(host int) int { return o.count.procs[host] }

func (o *Cluster) placeProcs() {
	o.Routes.ProcsBefore = 0
	for _, n := range o.count.procs[:o.Self] {
		o.Routes.ProcsBefore += n
	}
}

// Count finds how many procs all hosts have, if the file leaves that to their machines. It waits
// for all these hosts.
func (o *Cluster) Count(ctx context.Context) error {
	if !slices.ContainsFunc(o.Hosts, func(h config.Host) bool { return h.Auto }) {
		return nil
	}
	defer report.LogWait(o.Log, o.Deadline, o.waitsFor)()
	within, cancel := context.WithDeadline(ctx, o.until())
	defer cancel()
	question := membership.Count{Host: o.Self, Procs: o.Hosts[o.Self].Procs}.Question()
	for {
		var b []byte
		var err error
		if o.IsHead() {
			b = o.answerCount(within, question)
		} else if b, err = o.Ask(ctx, counting, 0, question); err != nil {
			return o.Failed(ctx, err)
		}
		all, err := membership.ReadCounts(b, len(o.Hosts))
		if err != nil {
			return fmt.Errorf("host %s says how many procs the hosts have: %w", o.name(0), err)
		}
		if len(all) > 0 {
			o.count.procs = all
			o.placeProcs()
			return nil
		}
		if o.IsHead() && within.Err() != nil {
			return o.Failed(ctx, membership.ErrMissing)
		}
	}
}

// answerCount takes what a host reports of itself, and answers what all have, or nothing if they
// are not there soon.
func (o *Cluster) answerCount(ctx context.Context, question []byte) []byte {
	c := &o.count
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.told.Add(question); err != nil {
		return []byte(err.Error())
	}
	if c.told.Complete() {
		select {
		case <-c.whole:
		default:
			close(c.whole)
		}
	}
	until := c.told.Until(time.Now())
	c.mu.Unlock()
	turn := time.NewTimer(time.Until(until))
	defer turn.Stop()
	select {
	case <-c.whole:
	case <-turn.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	return c.told.Answer()
}
