package inspect

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// estimates are what plugins say of links whose bytes pass through them.
type estimates struct {
	trips  map[host.LinkID]time.Duration // round-trip times
	resent map[string]uint64             // packets, by transport
}

func askPlugins(ctx context.Context, c *Control) estimates {
	e := estimates{make(map[host.LinkID]time.Duration), make(map[string]uint64)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, t := range c.Site.Routes.Transports {
		wg.Go(func() {
			trips, resent, passes := t.Plugin.Estimates(ctx)
			if !passes {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(e.trips, trips)
			e.resent[t.Name] = resent
		})
	}
	wg.Wait()
	return e
}

// of is the round-trip time of a pair's link, 0 if no plugin knows it.
func (e *estimates) of(c *Control, x direct.Pair) time.Duration {
	return e.trips[direct.PluginLinkID(c.Direct, x)]
}

// retransmits keeps the last numbers of procs, so that sums do not fall when one ends or is silent.
type retransmits struct {
	mu    sync.Mutex
	procs map[int]map[string]uint64 // by index
	told  map[string]uint64
}

// sum adds up what procs, channels and plugins had to send again, for these transports except those
// that never had a link that counts it. What procs say of other transports is not believed.
func (r *retransmits) sum(names []string, stats []*wireup.Stats, channels, plugins map[string]uint64) map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told == nil {
		r.procs, r.told = make(map[int]map[string]uint64), make(map[string]uint64)
	}
	for i, s := range stats {
		if s != nil {
			r.procs[i] = s.Retransmits
		}
	}
	for _, name := range names {
		n, known := plugins[name]
		add := func(from map[string]uint64) {
			k, ok := from[name]
			n, known = n+k, known || ok
		}
		add(channels)
		for _, p := range r.procs {
			add(p)
		}
		if known {
			r.told[name] = max(r.told[name], n)
		}
	}
	return maps.Clone(r.told)
}
