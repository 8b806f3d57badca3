package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
)

const (
	// standbyReach is how long a server of a list may take to be connected to, before it is the next
	// one's turn.
	standbyReach = 2 * time.Second
	// standbyStay is how long the site that decides waits for the others at one of several servers.
	standbyStay = 10 * time.Second
	// standbyPause is the pause after a server was lost or could not be reached.
	standbyPause = 200 * time.Millisecond
)

// JoinAny is Join for a job with several servers. at is the one where the sites have met. The site
// that decides tries them in order, again and again, and the others connect to all of them.
func JoinAny(ctx context.Context, set Settings, servers []string, cfg startup.ClientConfig) (c *Client, job *startup.Job, at string, err error) {
	if len(servers) == 1 {
		set.Server = servers[0]
		c, job, err = Join(ctx, set, cfg)
		return c, job, servers[0], err
	}
	if set.Logger == nil {
		set.Logger = hclog.NewNullLogger()
	}
	limit := cfg.Limit
	if limit <= 0 {
		limit = startup.DefaultLimit
	}
	x := &standby{set: set, cfg: cfg, servers: servers, over: time.Now().Add(limit), ends: make([]error, len(servers))}
	x.set.ReachLimit, x.set.MeetLimit = standbyReach, cmp.Or(set.MeetLimit, standbyStay)
	within, met := context.WithCancelCause(ctx)
	defer met(nil)
	if cfg.ChoosesServer() {
		x.inOrder(within)
	} else {
		x.atAll(within, met)
	}
	switch {
	case x.c != nil:
		set.Logger.Info("the sites have met", "server", x.at, "of", strings.Join(servers, ", "))
		return x.c, x.job, x.at, nil
	case ctx.Err() != nil:
		return nil, nil, "", fmt.Errorf("startup: %s was stopped: %w", cfg.ErrorName(), context.Cause(ctx))
	case x.failed != nil:
		return nil, nil, x.at, x.failed
	}
	return nil, nil, "", x.nowhere(limit)
}

// standby is an attempt to join at one of several servers.
type standby struct {
	set     Settings
	cfg     startup.ClientConfig
	servers []string
	over    time.Time

	mu     sync.Mutex
	c      *Client // the client that has joined
	job    *startup.Job
	at     string  // its server, or the one that reported the failure
	failed error   // the failure of the job
	ends   []error // errors of the last attempts, by server
	out    int     // number of servers that refuse this site
}

func (x *standby) inOrder(ctx context.Context) {
	out := make([]bool, len(x.servers))
	for i := 0; x.goesOn(ctx); i = (i + 1) % len(x.servers) {
		if out[i] {
			continue
		}
		stay, stop := context.WithCancelCause(ctx)
		timer := time.AfterFunc(x.set.MeetLimit, func() { stop(startup.ErrMoved) })
		out[i] = x.attempt(stay, i)
		timer.Stop()
		stop(nil)
	}
}

// atAll joins at all servers at the same time, until all sites have come to one of them.
func (x *standby) atAll(ctx context.Context, met context.CancelCauseFunc) {
	var wg sync.WaitGroup
	for i := range x.servers {
		wg.Go(func() {
			for x.goesOn(ctx) {
				if x.attempt(ctx, i) {
					return
				}
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			switch {
			case x.failed != nil:
				met(x.failed)
			case x.c != nil:
				met(startup.ErrMet)
			}
		})
	}
	wg.Wait()
}

func (x *standby) goesOn(ctx context.Context) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.c == nil && x.failed == nil && x.out < len(x.servers) && ctx.Err() == nil && time.Now().Before(x.over)
}

// attempt joins at a server. It returns true if that server will never accept this site.
func (x *standby) attempt(ctx context.Context, i int) (out bool) {
	set, cfg := x.set, x.cfg
	set.Server, cfg.Limit = x.servers[i], time.Until(x.over)
	c, job, err := Join(ctx, set, cfg)
	if err != nil && !x.note(ctx, i, err) {
		select {
		case <-time.After(min(standbyPause, time.Until(x.over))):
		case <-ctx.Done():
		}
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.out++
		return true
	}
	if x.c != nil { // only if the site that decides was at two servers
		go func() { _ = c.Fail(startup.ErrMet) }()
		return false
	}
	x.c, x.job, x.at = c, job, x.servers[i]
	return false
}

// note keeps what became of an attempt, and reports whether the server is out.
func (x *standby) note(ctx context.Context, i int, err error) (out bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	server := x.servers[i]
	if cause := context.Cause(ctx); errors.Is(cause, startup.ErrMoved) || errors.Is(cause, startup.ErrMet) {
		if errors.Is(err, cause) && !errors.Is(err, ErrNoServer) {
			err = fmt.Errorf("this site was there for %v, and not all others came", x.set.MeetLimit)
		}
		x.set.Logger.Debug("left a server", "server", server, "reason", err)
		x.ends[i] = err
		return false
	}
	if x.ends[i] == nil {
		x.set.Logger.Warn("no start at a server of the list: trying on", "server", server, "reason", err)
	}
	x.ends[i] = err
	switch startup.OutcomeAtServer(err) {
	case startup.JobFailed:
		x.failed, x.at = err, server
	case startup.WillRefuse:
		return !errors.Is(err, ErrNoServer)
	case startup.MayReturn:
	}
	return false
}

func (x *standby) nowhere(limit time.Duration) error {
	var all []string
	kind := startup.ErrAuth
	for i, err := range x.ends {
		if err == nil {
			err = errors.New("not tried")
		}
		if startup.OutcomeAtServer(err) == startup.MayReturn || errors.Is(err, ErrNoServer) {
			kind = startup.ErrTimeout
		}
		why := strings.TrimPrefix(err.Error(), fmt.Sprintf("startup: %s: ", x.cfg.ErrorName()))
		all = append(all, x.servers[i]+": "+why)
	}
	return fmt.Errorf("startup: %s: %w: the sites have met at none of the servers within %v; each site must reach the one where the others are: %s",
		x.cfg.ErrorName(), kind, limit.Round(time.Millisecond), strings.Join(all, "; "))
}
