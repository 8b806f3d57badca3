// Package routestest has what tests of routes need: jobs of two sites, of which nothing runs, and
// what became of the candidates between two procs, as text.
package routestest

import (
	"net/netip"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

type nothing struct {
	transports.Transport
	c transports.Capabilities
}

func (x nothing) Capabilities() transports.Capabilities { return x.c }

// Transport returns a transport that has only capabilities, whose links are sockets.
func Transport(name string, reach transports.Reach, features ...transports.Feature) *routes.Transport {
	c := transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneFD}, Features: features, Reach: reach}
	return &routes.Transport{Transport: nothing{c: c}, Name: name}
}

// Job returns the file of sites alpha and beta with two procs each.
func Job() *config.Job {
	job := &config.Job{Complete: true}
	for i, name := range []string{"alpha", "beta"} {
		job.Sites = append(job.Sites, config.Site{
			Name: name, Client: i,
			Hosts:      []config.Host{{Address: netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}), Procs: 2}},
			Transports: []config.Transport{{Name: "unix", Builtin: true}, {Name: "tcp", Builtin: true}},
		})
	}
	return job
}

// TwoSites returns the routes of the first site of a job of two: it is client 0 with ranks 0 and 1;
// client 1 has 2 and 3. site is its own copy from the file, and gets the routes.
func TwoSites(job *config.Job, site *config.Site, own ...config.Route) *routes.Table {
	site.Routes = own
	rt := &routes.Table{Job: job, Site: site, World: &startup.Job{
		Clients: []startup.ClientInfo{{}, {Rank: 1, FirstProc: 2, FirstHost: 1}},
		Procs:   startup.ListProcs(startup.ProcInfo{}, startup.ProcInfo{}, startup.ProcInfo{Client: 1}, startup.ProcInfo{Client: 1}),
	}}
	rt.Transports = []*routes.Transport{
		Transport("unix", transports.ReachMachine),
		Transport("tcp", transports.ReachNetwork),
		Transport("quic", transports.ReachNetwork, transports.FeatureEncrypted),
	}
	var cards []*dynamic.BusinessCard
	for _, machine := range []string{"m0", "m0", "m0", "m1"} {
		cards = append(cards, &dynamic.BusinessCard{Node: machine, Addresses: []dynamic.TransportAddress{
			{Transport: "quic", Address: "q"}, {Transport: "tcp", Address: "t1"}, {Transport: "tcp", Address: "t2"}, {Transport: "unix", Address: "u"},
		}})
	}
	rt.Cards = Cards(cards...)
	return rt
}

// Cards returns the cards of the procs of ranks 0, 1, ...; nil: a proc has none.
func Cards(all ...*dynamic.BusinessCard) routes.Cards {
	return func(rank wire.WorldRank) *dynamic.BusinessCard {
		if rank < 0 || int(rank) >= len(all) {
			return nil
		}
		return all[rank]
	}
}

// SetCard gives the proc of a rank another card.
func SetCard(rt *routes.Table, rank wire.WorldRank, card *dynamic.BusinessCard) {
	before := rt.Cards
	rt.Cards = func(r wire.WorldRank) *dynamic.BusinessCard {
		if r == rank {
			return card
		}
		return before.At(r)
	}
}

// TwoHosts returns the hosts of the two sites, with their procs.
func TwoHosts() ([]startup.HostInfo, startup.Procs) {
	x, y := startup.ProcInfo{}, startup.ProcInfo{Client: 1, Host: 1}
	return []startup.HostInfo{{}, {Client: 1}}, startup.ListProcs(x, x, y, y)
}

// Verdicts says what was made of each candidate for a link: "unix chosen, tcp excluded by prefer".
func Verdicts(v links.View) string {
	var s []string
	for _, c := range v.Candidates {
		word := c.Transport + " " + string(c.Verdict)
		if c.Rule != "" {
			word += " by " + string(c.Rule)
		}
		s = append(s, word)
	}
	return strings.Join(s, ", ")
}
