package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// havingPlanes is a transport with the data planes of tcp.
type havingPlanes struct{ transports.Transport }

func (h havingPlanes) Capabilities() transports.Capabilities {
	c := h.Transport.Capabilities()
	c.DataPlanes = []transports.DataPlane{transports.PlaneFD, transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC}
	return c
}

// byAgents is a route whose packets all go by the agents, by pinned planes.
func byAgents(prefer string, planes ...string) config.Route {
	return config.Route{Site: "*", Prefer: []string{prefer}, DataPlane: planes, Pos: config.Pos{File: "job.hcl", Line: 23, Column: 1}}
}

// Where the agents have no channel by what is pinned, nothing goes by IMPI's plain one:
// the job does not begin, and says where the pin is and what to do.
func TestPinnedChannelThatCannotBe(t *testing.T) {
	job := route(testJob("all", 1, 1), byAgents("tcp", "ring"))
	job.Sites[1].Routes = []config.Route{byAgents("unix", "ring")}
	f := end(start(t, job))
	if f[0] == nil || f[1] == nil || f[0].Remote && f[1].Remote {
		t.Fatalf("%v", f)
	}
	for i, site := range []string{"beta", "alpha"} {
		for _, want := range []string{
			"no channel to site " + site + " ", `route "*" of site `, `(job.hcl:23:1) pins data_plane = ["ring"]`, "name one there, change data_plane",
		} {
			if !f[i].Remote && !strings.Contains(f[i].Text, want) {
				t.Errorf("%v does not say %q", f[i], want)
			}
		}
	}
}

// A pin that no transport of its route has is a fault of the job file, for agents too.
func TestPinnedChannelThatNobodyHas(t *testing.T) {
	f := end(start(t, route(testJob("all", 1), byAgents("tcp", "peer-shm"))))[0]
	if want := `job.hcl:23:1: route "*" pins data_plane = ["peer-shm"], and none of its transports has such links: tcp has ["fd", `; f == nil || !strings.Contains(f.Error(), want) {
		t.Errorf("%v", f)
	}
}

// The channel of sites is as each of them pins its end, whoever dials, and whatever
// other routes want.
func TestEachEndPinsItsChannel(t *testing.T) {
	named := func(site string, r config.Route) config.Route { r.Site = site; return r }
	for name, c := range map[string]struct {
		alpha, beta config.Route
		want        [2]string
	}{
		"who is dialled":  {byAgents("tcp", "ring"), byAgents("tcp"), [2]string{"tcp ring", "tcp fd"}},
		"who dials":       {byAgents("tcp"), byAgents("tcp", "stream"), [2]string{"tcp fd", "tcp stream"}},
		"both":            {byAgents("tcp", "grpc"), byAgents("tcp", "ring"), [2]string{"tcp grpc", "tcp ring"}},
		"one site alone":  {named("beta", byAgents("tcp", "ring")), named("alpha", byAgents("tcp", "ring")), [2]string{"tcp ring", "tcp ring"}},
		"sockets will do": {byAgents("tcp", "fd", "ring"), byAgents("tcp", "fd"), [2]string{"tcp fd", "tcp fd"}},
		"by memory":       {byAgents("unix", "ring"), byAgents("unix", "fd"), [2]string{"unix ring", "unix fd"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := testJob("all", 1, 1)
			job.Sites[0].Routes, job.Sites[1].Routes = []config.Route{c.alpha}, []config.Route{c.beta}
			all := start(t, job)
			wantNone(t, all)
			if got := channelsOf(all); len(got) != 2 || got[0] != c.want[0] || got[1] != c.want[1] {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A host that comes by plain TCP is sent away by who pins something else.
func TestPlainIsNotWhatIsPinned(t *testing.T) {
	for name, c := range map[string]struct {
		route config.Route
		pins  bool
	}{
		"ring":           {config.Route{Site: "beta", DataPlane: []string{"ring"}}, true},
		"sockets":        {config.Route{Site: "beta", DataPlane: []string{"ring", "fd"}}, false},
		"nothing pinned": {config.Route{Site: "beta"}, false},
		"direct links":   {config.Route{Site: "beta", DataPlane: []string{"ring"}, Direct: true}, false},
		"another site":   {config.Route{Site: "gamma", DataPlane: []string{"ring"}}, false},
	} {
		n := twoSites(t, c.route)
		n.job.Hosts, n.job.Procs = routestest.TwoHosts()
		err := n.routes.CheckPlainGreeting(1)
		if c.pins != errors.Is(err, routes.ErrPlain) || c.pins && !strings.Contains(err.Error(), `pins data_plane = ["ring"]`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A job with a client of another MPI has sockets for channels, and nothing else.
func TestForeignClientCannotBePinned(t *testing.T) {
	pin := config.Route{Site: "beta", DataPlane: []string{"ring"}, Prefer: []string{"tcp"}, Direct: true, Pos: config.Pos{File: "job.hcl", Line: 3, Column: 1}}
	n := twoSites(t, pin)
	n.job.Hosts, n.job.Procs = routestest.TwoHosts()
	if err := n.routes.CheckChannels(n.hosts[0].Rank, n.hosts[0].Config.Address.String()); err != nil {
		t.Errorf("direct links: %v", err)
	}
	n.job.Clients[0].Own = true
	n.routes.Cards = nil
	err := n.routes.CheckChannels(n.hosts[0].Rank, n.hosts[0].Config.Address.String())
	if err == nil || !strings.Contains(err.Error(), "another MPI") || !strings.Contains(err.Error(), "job.hcl:3:1") || !strings.Contains(err.Error(), `add "fd"`) {
		t.Errorf("%v", err)
	}
}
