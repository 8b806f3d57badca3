package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	rules "github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// estranged is a job of two sites with certificates of different CAs.
func estranged(t *testing.T, mode, name string, r config.Route) *config.Job {
	t.Helper()
	job := secured(t, testJob(mode, 2, 2), name)
	job.Sites[1].Transports = secured(t, testJob(mode, 2, 2), name).Sites[1].Transports
	job.Limits.Start = patience
	for i := range job.Sites {
		job.Sites[i].Server.TLS = config.TLSOptional // else it ends at the server
	}
	r.Pos = config.Pos{File: "job.hcl", Line: 17, Column: 1}
	return route(job, r)
}

// Sites that have certificates and say nothing of require_tls do not fall back to plain
// TCP when these are refused: the job does not begin.
func TestCertificatesCloseTheRoute(t *testing.T) {
	for _, direct := range []bool{true, false} {
		f := end(start(t, estranged(t, "all", "quic", config.Route{Prefer: []string{"quic", "tcp"}, Direct: direct})))
		if f[0] == nil || f[1] == nil {
			t.Fatalf("direct = %t: the job ran: %v", direct, f)
		}
		for _, want := range []string{
			"no channel to site alpha", `route "*" of site beta (job.hcl:17:1) has certificates for quic and does not say require_tls = false`,
			"certificates of one CA", "write require_tls = false in that route",
		} {
			if !strings.Contains(f[1].Text, want) { // who has the higher rank dials
				t.Errorf("direct = %t: %v does not say %q", direct, f[1], want)
			}
		}
	}
}

// With require_tls = false the same job runs, and each node warns once that it is not
// as the file prefers, however many pairs of procs there are.
func TestFallBackIsAWarning(t *testing.T) {
	const warning = "[WARN]  a direct link is not by the transport that the route prefers, which failed"
	all := start(t, estranged(t, "all", "quic", config.Route{Prefer: []string{"quic", "tcp"}, Direct: true, AllowPlain: true}))
	wantNone(t, all)
	warnings := 0
	for i, r := range all {
		said := r.err.String()
		n := strings.Count(said, warning)
		if warnings += n; n > 1 {
			t.Errorf("site %d warns %d times:\n%s", i, n, said)
		}
		for line := range strings.Lines(said) {
			if strings.Contains(line, warning) && (!strings.Contains(line, "transport=tcp encrypted=false preferred=quic") || !strings.Contains(line, "certificate")) {
				t.Errorf("%s", line)
			}
		}
	}
	if warnings == 0 {
		t.Error("nobody warns")
	}
}

// A pair whose transports all fail goes by its agents, with one warning.
func TestFallBackToAgentsIsAWarning(t *testing.T) {
	const warning = "[WARN]  no direct link: packets go through the agents"
	all := start(t, estranged(t, "all", "quic", config.Route{Prefer: []string{"quic"}, Direct: true, AllowPlain: true}))
	wantNone(t, all)
	warnings := 0
	for i, r := range all {
		n := strings.Count(r.err.String(), warning)
		if warnings += n; n > 1 {
			t.Errorf("site %d warns %d times", i, n)
		}
	}
	if warnings == 0 {
		t.Error("nobody warns")
	}
	job := testJob("all", 1, 1)
	job.Sites[0].Routes = []config.Route{{Site: "*", Prefer: []string{"tcp"}, Direct: true}}
	job.Sites[1].Routes = []config.Route{{Site: "*", Prefer: []string{"unix"}, Direct: true}}
	all = start(t, job)
	wantNone(t, all)
	for i, r := range all {
		if n := strings.Count(r.err.String(), warning); n != 1 {
			t.Errorf("site %d, without a common transport, warns %d times", i, n)
		}
	}
	all = start(t, route(testJob("all", 1, 1), config.Route{Prefer: []string{"tcp"}}))
	wantNone(t, all)
	if said := all[0].err.String(); strings.Contains(said, "[WARN]") {
		t.Errorf("direct = false is what the file wants:\n%s", said)
	}
}

// Two sites of one machine take shared memory although their route is closed: that
// does not leave the machine. Their agents' channel is no plain TCP either.
func TestClosedRouteWithinAMachine(t *testing.T) {
	for name, prefer := range map[string][]string{"shm": {"shm", "unix", "quic"}, "unix": {"unix", "quic"}} {
		job := withTransport(secured(t, testJob("all", 1, 2), "quic"), "shm", nil)
		all := start(t, route(job, config.Route{Prefer: prefer, Direct: true}))
		wantNone(t, all)
		for _, got := range channelsOf(all) {
			if !strings.HasPrefix(got, name+" ") {
				t.Errorf("a channel is %s, want %s", got, name)
			}
		}
		for _, r := range all {
			said := r.err.String()
			if strings.Contains(said, "transport=tcp data_plane") || strings.Contains(said, "not by the transport") || strings.Contains(said, "no direct link") {
				t.Errorf("%s:\n%s", name, said)
			}
		}
	}
}

// The certificates of one site close the way for both.
func TestOneSiteHasCertificates(t *testing.T) {
	job := secured(t, testJob("all", 1, 1), "quic")
	job.Limits.Start = 5 * time.Minute
	for i := range job.Sites {
		job.Sites[i].Server.TLS = config.TLSOptional // else it ends at the server
	}
	route(job, config.Route{Prefer: []string{"quic", "tcp"}, Direct: true, Pos: config.Pos{File: "alpha.hcl", Line: 4, Column: 1}})
	job.Sites[1].Transports = testJob("all", 1, 1).Sites[1].Transports
	job.Sites[1].Routes[0].Prefer = []string{"tcp"}
	f := end(start(t, job))
	if f[0] == nil || f[1] == nil || f[0].Remote && f[1].Remote {
		t.Fatalf("%v", f)
	}
	for i, want := range []string{`route "*" of site alpha (alpha.hcl:4:1) has certificates for quic`, "the route to site beta (client 1) of site alpha (client 0) has certificates and does not say require_tls = false"} {
		if !f[i].Remote && (!strings.Contains(f[i].Text, want) || !strings.Contains(f[i].Text, "write require_tls = false in that route")) {
			t.Errorf("%v does not say %q", f[i], want)
		}
	}
}

func TestSecrecyOfRoutes(t *testing.T) {
	shut, strictly, free := config.Route{Closed: true}, config.Route{RequireTLS: true}, config.Route{}
	for _, c := range []struct {
		name   string
		route  config.Route
		theirs []string
		want   rules.Secrecy
		tcp    bool
		unix   bool
	}{
		{"nobody", free, nil, rules.AnyLink, true, true},
		{"we close", shut, nil, rules.Closed, false, true},
		{"they close", free, []string{"closed"}, rules.Closed, false, true},
		{"they close to us", free, []string{"closed-0"}, rules.Closed, false, true},
		{"they do not close to us", free, []string{"closed", "no-closed-0"}, rules.AnyLink, true, true},
		{"we close, they require", shut, []string{"tls"}, rules.Encrypted, false, false},
		{"we require, they close", strictly, []string{"closed"}, rules.Encrypted, false, false},
	} {
		c.route.Site, c.route.Prefer, c.route.Direct = "*", []string{"unix", "tcp", "quic"}, true
		n := twoSites(t, c.route)
		n.job.Hosts, n.job.Procs = routestest.TwoHosts()
		n.routes.Cards.At(2).Features, n.routes.Cards.At(3).Features = c.theirs, c.theirs
		got, says := n.routes.SecrecyTo(1)
		if got != c.want || (says == "") != (got == rules.AnyLink) {
			t.Errorf("%s: %v, %q", c.name, got, says)
		}
		for name, want := range map[string]bool{"tcp": c.tcp, "unix": c.unix, "quic": true} {
			if got := n.routes.Allows(2, n.routes.Transport(name)); got != want {
				t.Errorf("%s: %s is allowed: %t", c.name, name, got)
			}
			if got := n.routes.AllowsChannel(1, nil, n.routes.Transport(name), false); got != want {
				t.Errorf("%s: a channel by %s is allowed: %t", c.name, name, got)
			}
			far := slices.ContainsFunc(n.direct.Candidates(direct.Pair{Local: 0, Peer: 3}), func(w routes.Candidate) bool { return w.Transport.Name == name }) // another machine
			if far != (want && name != "unix") {
				t.Errorf("%s: %s is a way to another machine: %t", c.name, name, far)
			}
		}
		if must, _ := n.routes.ForbidsPlain(1); must != (c.want != rules.AnyLink) {
			t.Errorf("%s: IMPI's own channel is forbidden: %t", c.name, must)
		}
	}
}

// Transports that encrypt close routes, whatever their settings are called, and
// also where the file has no route at all.
func TestCloseRoutes(t *testing.T) {
	all := []string{"unix", "tcp", "quic"}
	for name, c := range map[string]struct {
		routes []config.Route
		want   bool
	}{
		"no route":            {nil, true},
		"not said":            {[]config.Route{{Site: "*", Prefer: all}}, true},
		"require_tls = false": {[]config.Route{{Site: "*", Prefer: all, AllowPlain: true}}, false},
		"not preferred":       {[]config.Route{{Site: "*", Prefer: all[:2]}}, false},
		"another's route":     {[]config.Route{{Site: "*", Prefer: all[:2]}, {Site: "gamma", Prefer: all}}, false},
	} {
		n := twoSites(t, c.routes...)
		n.opt.Site.Transports = append(n.opt.Site.Transports, config.Transport{Name: "quic"})
		n.routes.CloseRoutes()
		if got := n.opt.Site.RouteTo("beta").Closed; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		card := &dynamic.BusinessCard{Features: routes.SecrecyFeatures(n.opt.Job, n.opt.Site)}
		if got := rules.HasFeature(card, rules.ClosedFeature, 1); got != c.want {
			t.Errorf("%s: the card says %q", name, card.Features)
		}
	}
	n := twoSites(t)
	n.routes.Transports[2] = routestest.Transport("quic", transports.ReachNetwork)
	n.opt.Site.Transports = append(n.opt.Site.Transports, config.Transport{Name: "quic"})
	if n.routes.CloseRoutes(); n.opt.Site.RouteTo("beta").Closed {
		t.Error("nothing encrypts")
	}
}

// A job with another MPI has plain channels only, so closed routes keep it from beginning.
func TestForeignClientOfAClosedRoute(t *testing.T) {
	n := twoSites(t, config.Route{Site: "beta", Closed: true, Prefer: []string{"quic"}, Pos: config.Pos{File: "job.hcl", Line: 3, Column: 1}})
	n.job.Hosts, n.job.Procs = routestest.TwoHosts()
	n.job.Clients[0].Own = true
	n.routes.Cards = nil
	err := n.routes.CheckChannels(n.hosts[0].Rank, n.hosts[0].Config.Address.String())
	if err == nil || !strings.Contains(err.Error(), "another MPI") || !strings.Contains(err.Error(), "job.hcl:3:1") || !strings.Contains(err.Error(), "write require_tls = false in that route") {
		t.Errorf("%v", err)
	}
}
