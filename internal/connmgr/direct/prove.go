package direct

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// leg is a path from a host of the site to a listener for direct links.
type leg struct{ transport, from, to string }

func legOf(w routes.Candidate) leg { return leg{w.Transport.Name, w.From, w.Address} }

func (d *Links) limit(w routes.Candidate) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proofs[legOf(w)].DialLimit(w.Transport.Machine())
}

func (d *Links) setProof(w routes.Candidate, p dynamic.ListenerState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proofs[legOf(w)] = p
}

type target struct {
	first      wire.WorldRank // of its procs
	client     wire.ClientRank
	candidates []routes.Candidate
	missed     []dynamic.FailedCandidate // candidates that were not reached
}

// Prove checks, as a task, whether a host of the site reaches the listeners where direct links will
// be dialled, all at the same time and within dynamic.DialsLimit, and warns of the listeners that it
// does not reach. The links are closed at once. In a large job it checks only the hosts to which
// channels are made at the start.
func (d *Links) Prove(self wire.HostRank) {
	targets := d.targets(self)
	if len(targets) == 0 || d.Token == (dynamic.Token{}) {
		return
	}
	d.Tasks.Go(func() {
		end := time.Now().Add(dynamic.DialsLimit)
		var wg sync.WaitGroup
		for _, x := range targets {
			wg.Go(func() { d.prove(x, end) })
		}
		wg.Wait()
		if d.Tasks.Err() == nil {
			d.warnOf(targets)
		}
	})
}

// targets lists the other hosts whose listeners are tried. Those that the host dials for their
// channel at the same listener are not: that proves more.
func (d *Links) targets(self wire.HostRank) (list []*target) {
	w := d.Routes.World
	local := d.Routes.FirstRankOf(self)
	if local == routes.NoRank {
		return nil
	}
	seen := make([]bool, len(w.Hosts))
	for rank, p := range w.Procs.All() {
		if seen[p.Host] {
			continue
		}
		seen[p.Host] = true
		if p.Host == self || !agent.ConnectAtStart(len(w.Hosts), self, p.Host) || routes.UsesNative(d.Routes, local, rank) {
			continue
		}
		candidates := d.Candidates(Pair{local, rank})
		if len(candidates) == 0 || candidates[0].Transport.Machine() {
			continue
		}
		if must, _ := d.Routes.ForbidsPlain(p.Client); must && self > p.Host {
			d.setProof(candidates[0], dynamic.Answered)
			continue
		}
		list = append(list, &target{first: rank, client: p.Client, candidates: candidates})
	}
	return list
}

func (d *Links) prove(x *target, end time.Time) {
	s := dial.Dialing{
		DialPlan: dynamic.ConnectPlan(len(x.candidates)), Candidates: x.candidates,
		Dial: func(ctx context.Context, w routes.Candidate, step dynamic.DialStep) (link.Link, error) {
			t := dial.WithLimit(d.Routes.Pinned(w.Transport, x.first), dynamic.FirstLimit(time.Until(end), dial.Local(x.candidates[step.Candidate:])))
			return t.Dial(ctx, transports.DialSpec{Address: w.Address, From: w.From})
		},
	}
	l, by, _ := s.Run(d.Tasks)
	if l != nil {
		_ = l.Close()
		d.setProof(by, dynamic.Answered)
	}
	for _, m := range s.FailedCandidates() {
		if dial.IsUnreached(m.Err) {
			d.setProof(x.candidates[m.Candidate], dynamic.Unheard)
			x.missed = append(x.missed, m)
		}
	}
}

const mostNamed = 8

// warnOf warns of hosts that were not reached, once for each site.
func (d *Links) warnOf(targets []*target) {
	var clients []wire.ClientRank
	for _, x := range targets {
		if len(x.missed) > 0 && !slices.Contains(clients, x.client) {
			clients = append(clients, x.client)
		}
	}
	for _, client := range clients {
		var list []string
		var by routes.Candidate
		hosts := 0
		for _, x := range targets {
			if x.client != client || len(x.missed) == 0 {
				continue
			}
			if hosts++; hosts > mostNamed {
				continue
			}
			for _, m := range x.missed {
				by = x.candidates[m.Candidate]
				list = append(list, fmt.Sprintf("%s at %s: %v", by.Transport.Name, by.Address, m.Err))
			}
		}
		if hosts > mostNamed {
			list = append(list, fmt.Sprintf("and %d more hosts", hosts-mostNamed))
		}
		d.Log.Warn("direct links cannot be dialled, and use other addresses or go through the agents",
			"within", dynamic.DialsLimit, "from", by.From, "to", d.Routes.ClientName(client), "reason", strings.Join(list, "; "), "remedy", dial.Remedy(d.Routes, client, by))
	}
}

// remedy says what to do about a pair whose dial plan for a link has failed, or returns "" if that
// is not known.
func (d *Links) remedy(x Pair, s *dial.Dialing) string {
	for _, m := range slices.Backward(s.FailedCandidates()) {
		if w := s.Candidates[m.Candidate]; !w.Transport.Machine() && dial.IsUnreached(m.Err) {
			return dial.Remedy(d.Routes, d.Routes.World.Procs.At(x.Peer).Client, w)
		}
	}
	return ""
}
