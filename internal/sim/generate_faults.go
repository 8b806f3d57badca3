package sim

import (
	"slices"
	"time"

	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// mishaps draws what goes wrong in a case, and its sites so that this matters.
func (g *generator) mishaps(c *Case) {
	walled := g.OneIn(3) && !g.boxed
	far := walled && len(c.Sites) > 1 && c.Sites[0].Foreign == nil && g.OneIn(4)
	switch {
	case far:
		c.Sites[0].Hosts = []int{procsAt(c.Sites[:1])}
	case walled:
		c.severalHosts()
	}
	switch { // last, so that the draws before do not depend on NoFaults
	case g.limits.NoFaults && c.Resume != nil:
		c.Resume.Cuts, c.Resume.Parts = 0, 0
	case g.limits.NoFaults:
	case g.strays:
		c.Faults = []job.Fault{{Kind: job.CutLink, Target: 2 + 8*g.IntN(8), Event: uint64(g.Between(1, 200<<g.IntN(5)))}}
	case slices.ContainsFunc(c.Sites, func(s job.Site) bool { return s.Foreign == nil && len(s.Hosts) > 3 }) && g.OneIn(4):
		c.Faults = []job.Fault{g.fault(job.LoseHost, job.LoseHost, job.LoseHost, job.NoMPI)} // often a host whose parent is not the head
	default:
		c.Faults = g.faults(c.Resume != nil, len(c.Sites), slices.ContainsFunc(c.Sites, func(s job.Site) bool { return s.Foreign == nil && len(s.Hosts) > 1 }))
		if slices.ContainsFunc(c.Faults, func(f job.Fault) bool { return f.Kind == job.DrainPlugin }) && g.OneIn(2) {
			c.Resume.Cuts, c.Resume.Parts, c.DialFail = 0, 0, 0
			c.Lasts = 700*time.Millisecond + g.upTo(time.Second) // until it is looked whether links have moved
		}
		if c.Serves && len(c.Sites) > 1 && g.OneIn(2) {
			c.Stays = time.Millisecond + g.upTo(200*time.Millisecond)
			c.Faults = append(c.Faults, job.Fault{Kind: job.CrashNode, Target: g.IntN(64), At: g.upTo(c.Stays), Ending: true})
		}
		if len(c.Faults) == 0 && g.OneIn(8) {
			for i := range c.Sites {
				c.Sites[i].Late = g.upTo(50 * time.Second)
			}
		} else if len(c.Faults) == 0 && g.OneIn(12) {
			c.Faults = []job.Fault{g.fault(job.FailEarly)}
		} else if len(c.Faults) == 0 && walled {
			c.Firewall = g.firewall(c, far)
		}
	}
}

// firewall draws one. far says that the first host is one of ours and the only one of its site.
func (g *generator) firewall(c *Case, far bool) *job.Firewall {
	longest := script.Pick(g.Draws, 3*time.Second, 8*time.Second, 17*time.Second)
	f := &job.Firewall{Host: g.IntN(8), For: longest - g.upTo(longest/2), Drops: g.IntN(3) > 0, Must: g.OneIn(2)}
	if far {
		return g.tunnel(c, f.Must)
	}
	switch g.IntN(9) {
	case 0, 5:
		f.For = job.Ever
	case 1:
		f.For, f.Drops, f.Busy = g.upTo(2*time.Second), g.OneIn(2), g.upTo(15*time.Second)
	case 2, 3:
		f.Only, f.Must, f.Slow = true, false, g.upTo(1500*time.Millisecond)
		if g.OneIn(2) {
			f.For = job.Ever
		}
	case 4, 6, 7, 8:
		if c.Direct {
			g.beforeLinks(c, f)
		}
	}
	return f
}

// tunnel draws a firewall that all other sites have to wait for, for more than one round of dials,
// before a host to which it takes a while to connect.
func (g *generator) tunnel(c *Case, must bool) *job.Firewall {
	f := &job.Firewall{For: 5*time.Second + g.upTo(11*time.Second), Drops: true, Must: must || c.OnDemand}
	if c.OnDemand {
		f.For = 4600*time.Millisecond + g.upTo(3*time.Second)
	}
	f.Slow = 300*time.Millisecond + g.upTo(time.Second)
	return f
}

// beforeLinks makes f one that is in the way of links between procs: from the start on, or later.
func (g *generator) beforeLinks(c *Case, f *job.Firewall) {
	f.Links, f.Drops, f.Must = true, g.IntN(4) > 0, false
	if g.OneIn(2) {
		f.At = g.upTo(5 * time.Second)
	}
	if g.OneIn(2) {
		c.Starts = time.Duration(g.Between(1, 8)) * time.Second
	}
	switch g.IntN(4) {
	case 0:
		f.For = job.Ever
	case 1:
		f.For, f.Busy = g.upTo(time.Second), time.Duration(g.Between(1, 10))*time.Second
	}
}

// faults draws no faults for most seeds, harmless ones for some, and deadly ones for four in ten.
func (g *generator) faults(resumed bool, sites int, machines bool) (all []job.Fault) {
	if resumed && g.OneIn(max(2, 4-sites)) {
		if g.OneIn(2) {
			return g.drainedAgain()
		}
		return []job.Fault{g.fault(job.DrainPlugin)}
	}
	for range g.IntN(3) * g.IntN(2) {
		all = append(all, g.fault(job.Stall, job.PluginCrash))
	}
	if resumed && g.OneIn(2) {
		for range g.Between(1, 10) {
			all = append(all, g.fault(job.CutLink, job.CutLink, job.HalfClose, job.Stall, job.DrainPlugin, job.UndrainPlugin))
		}
		return all
	}
	if !g.OneIn(3) {
		if !resumed && g.OneIn(6) {
			all = append(all, g.fault(job.FailLate, job.CrashProc, job.CrashProc))
		}
		return all
	}
	for range 1 + g.IntN(4)/3 {
		kinds := []job.FaultKind{job.CrashProc, job.CrashProc, job.CrashNode, job.CrashServer, job.CutLink, job.CutLink, job.HalfClose}
		if machines {
			kinds = append(kinds, job.LoseHost, job.LoseHost)
		}
		all = append(all, g.fault(kinds...))
	}
	if slices.ContainsFunc(all, func(f job.Fault) bool { return f.Kind == job.CrashServer }) && g.OneIn(2) {
		all = append(all, g.fault(job.CrashProc)) // the sites report it to each other without the server
	}
	return all
}

// drainedAgain draws a plugin that is drained, used again, by lost links too, and drained again.
func (g *generator) drainedAgain() (all []job.Fault) {
	event, site := 0, g.IntN(64)|1 // there is another transport
	for _, kind := range []job.FaultKind{job.DrainPlugin, job.UndrainPlugin, job.CutLink, job.CutLink, job.DrainPlugin} {
		event += g.Between(1, 100<<g.IntN(6))
		f := job.Fault{Kind: kind, Target: site, Event: uint64(event)}
		if kind == job.CutLink {
			f.Target = g.IntN(64)
		}
		all = append(all, f)
	}
	return all
}

// fault draws a fault at any time, most often while the job is running.
func (g *generator) fault(kinds ...job.FaultKind) job.Fault {
	f := job.Fault{Kind: script.Pick(g.Draws, kinds...), Target: g.IntN(64)}
	switch {
	case f.Kind == job.FailLate, f.Kind == job.NoMPI, f.Kind == job.FailEarly:
	case f.Kind == job.LoseHost && g.OneIn(4): // before the host has connected, or soon after
		f.At = g.upTo(2 * time.Millisecond)
	case g.OneIn(3):
		f.At = g.upTo(200 * time.Millisecond)
	default:
		f.Event = uint64(g.Between(1, 100<<g.IntN(7)))
	}
	return f
}
