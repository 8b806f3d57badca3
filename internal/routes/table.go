package routes

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Table is what a site knows of its routes, and of what the other sites of its job want.
type Table struct {
	Job         *config.Job
	Site        *config.Site
	HostsBefore int          // number of hosts of the site before those of Site, on other nodes
	ProcsBefore int          // number of procs of these hosts
	World       *startup.Job // nil until startup is over
	Cards       Cards        // of its procs; nil until then
	Transports  []*Transport // that run
	Channels    *Transport   // the one for channels between hosts
	Native      string       // the site's own MPI, where the procs use it; empty: they have none

	Drained *Drained // transports that new links do not use

	live live // see Apply
}

// Transport is a transport that runs, with its plugin behind it.
type Transport struct {
	transports.Transport
	Name   string
	Plugin *host.Plugin
}

// MayLend reports whether links may be by a data plane over which procs lend memory.
func MayLend(rt *Table) bool {
	return slices.ContainsFunc(rt.Transports, func(t *Transport) bool {
		return slices.Contains(t.Capabilities().DataPlanes, transports.PlaneRDMA)
	})
}

// Candidate is one possibility to reach a proc or a host.
type Candidate struct {
	Transport *Transport
	Address   string
	From      string
	Plain     bool // to the port of IMPI's channels, if no data plane is pinned
}

// Machine reports whether its links do not leave a machine.
func (t *Transport) Machine() bool { return t.Capabilities().Reach == transports.ReachMachine }

// Encrypts reports whether the transport encrypts its links, as it has declared once it is
// configured.
func (t *Transport) Encrypts() bool { return t.Capabilities().Has(transports.FeatureEncrypted) }

// HasPlane reports whether its links can have a data plane.
func (t *Transport) HasPlane(plane string) bool {
	return slices.Contains(t.Capabilities().DataPlanes, transports.DataPlane(plane))
}

// FirstProc returns the rank of the first proc of the node that has the table.
func FirstProc(rt *Table) wire.WorldRank {
	return rt.World.Clients[rt.World.Self].FirstProc + wire.WorldRank(rt.ProcsBefore)
}

// Transport returns a running transport, or nil.
func (rt *Table) Transport(name string) *Transport {
	i := slices.IndexFunc(rt.Transports, func(t *Transport) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return rt.Transports[i]
}

// running returns Transport in the form that core/route takes.
func running(rt *Table) func(name string) route.Transport {
	return func(name string) route.Transport {
		if t := rt.Transport(name); t != nil {
			return t
		}
		return nil // not a nil *Transport
	}
}

// Running returns all transports whose plugins run.
func (rt *Table) Running() []*Transport {
	if rt.Channels == nil || slices.Contains(rt.Transports, rt.Channels) {
		return rt.Transports
	}
	return append(slices.Clone(rt.Transports), rt.Channels)
}

// WithPlanes returns a transport pinned to data planes; none means any.
func (t *Transport) WithPlanes(planes []transports.DataPlane) transports.Transport {
	if len(planes) == 0 || t.Plugin == nil {
		return t
	}
	return t.Plugin.Pinned(planes)
}

// ForeignSite returns the site of a foreign client, with its settings in the job file; a client
// that the file does not have is one of ours if it has reported that at startup.
func (rt *Table) ForeignSite(c wire.ClientRank) (site config.Site, foreign bool) {
	for _, s := range rt.Job.Sites {
		if s.Client == int(c) {
			return s, s.Foreign
		}
	}
	return config.Site{}, !rt.World.Clients[c].Own
}

// Foreign reports whether procs of a client must be handled as IMPI says: if the file has the site
// as foreign, or if that site or this one has not reported at startup that it is ours. All sites of
// ours get the same result for every client, whatever their routes to each other.
func Foreign(rt *Table, c wire.ClientRank) bool {
	if c == rt.World.Self {
		return false
	}
	_, foreign := rt.ForeignSite(c)
	return foreign || !rt.World.Clients[c].Own || !rt.World.Clients[rt.World.Self].Own
}

// HostName returns the name of a host of the job for messages.
func (rt *Table) HostName(h wire.HostRank) string {
	x := rt.World.Hosts[h]
	return fmt.Sprintf("%s at %v", rt.ClientName(x.Client), agent.DanceHost{Address: x.Address, Port: uint16(x.Port)})
}

// ClientName returns the name of a client by its site, if the file has it.
func ClientName(job *config.Job, c wire.ClientRank) string {
	i := slices.IndexFunc(job.Sites, func(s config.Site) bool { return s.Client == int(c) })
	if i < 0 {
		return fmt.Sprintf("client %d", c)
	}
	return fmt.Sprintf("site %s (client %d)", job.Sites[i].Name, c)
}

// ClientName returns what messages call a client: its site, if this site's file has it.
func (rt *Table) ClientName(c wire.ClientRank) string { return ClientName(rt.Job, c) }

// SiteName returns the name of a client's site, or "" if the file does not have it.
func (rt *Table) SiteName(client int) string {
	for _, s := range rt.Job.Sites {
		if s.Client == client {
			return s.Name
		}
	}
	return ""
}

// ChannelResumable reports whether both hosts ask to resume the channel between them. Only hosts of
// ours have cards, and in a job with other hosts none has.
func (rt *Table) ChannelResumable(a, b wire.HostRank) bool {
	ra, rb := rt.FirstRankOf(a), rt.FirstRankOf(b)
	return ra >= 0 && rb >= 0 && rt.Resumable(ra, rb)
}

// NoRank stands where a rank would, for a proc that has none.
const NoRank wire.WorldRank = -1

// FirstRankOf returns the lowest rank of a host's procs, or NoRank.
func (rt *Table) FirstRankOf(h wire.HostRank) wire.WorldRank {
	for r, p := range rt.World.Procs.All() {
		if p.Host == h {
			return r
		}
	}
	return NoRank
}
