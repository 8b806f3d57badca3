package node

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	rules "github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// strict is a route that must be encrypted.
func strict(prefer ...string) config.Route {
	return config.Route{
		Prefer: prefer, Direct: true, RequireTLS: true, Pos: config.Pos{File: "job.hcl", Line: 17, Column: 1},
	}
}

// Where no link can be encrypted, nothing goes in plain by the agents: the job does
// not begin, and both sites say why.
func TestNothingFallsBackToPlainChannels(t *testing.T) {
	for _, direct := range []bool{true, false} {
		r := strict("tcp", "unix")
		r.Direct = direct
		f := end(start(t, route(testJob("all", 1, 1), r)))
		for i, site := range []string{"beta", "alpha"} {
			if f[i] == nil {
				t.Fatalf("direct = %t: site %d ended well", direct, i)
			}
			for _, want := range []string{"no channel to site " + site, `route "*" of site `, "(job.hcl:17:1) has require_tls", `transport "quic", or "tcp" with tls = true`} {
				if !f[i].Remote && !strings.Contains(f[i].Text, want) {
					t.Errorf("direct = %t: %v does not say %q", direct, f[i], want)
				}
			}
		}
		if f[0].Remote && f[1].Remote {
			t.Errorf("nobody says why: %v", f)
		}
	}
}

// One site's demand binds the other one, too.
func TestOneSiteDemandsEncryption(t *testing.T) {
	for strictOne := range 2 {
		job := route(testJob("all", 1, 1), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true})
		job.Sites[strictOne].Routes[0].RequireTLS = true
		for i, f := range end(start(t, job)) {
			if f == nil || !f.Remote && !strings.Contains(f.Text, "has require_tls") {
				t.Errorf("site %d: %v", i, f)
			}
		}
	}
	job := secured(t, testJob("all", 1, 2), "quic")
	route(job, config.Route{Prefer: []string{"unix", "quic"}, Direct: true})
	job.Sites[1].Routes[0] = strict("quic")
	job.Sites[1].Routes[0].Site = "*"
	all := start(t, job)
	wantNone(t, all)
	if got := channelsOf(all); len(got) != 2 || got[0] != "quic ring" {
		t.Errorf("%q", got)
	}
	for _, r := range all {
		if said := r.err.String(); strings.Contains(said, "transport=unix data_plane") {
			t.Errorf("a link that is not encrypted:\n%s", said)
		}
	}
}

// Direct links that cannot be made leave the pair to the agents, whose channel is as
// safe as the route demands.
func TestFallBackIsEncrypted(t *testing.T) {
	job := secured(t, testJob("all", 1, 1), "quic")
	r := strict("quic")
	r.Direct = false
	all := start(t, route(job, r))
	wantNone(t, all)
	if got := channelsOf(all); len(got) != 2 || got[0] != "quic ring" || got[1] != "quic ring" {
		t.Errorf("%q", got)
	}
}

// A stranger's certificate ends the job at once, with the reason.
func TestChannelOfAStranger(t *testing.T) {
	job := secured(t, testJob("all", 1, 1), "quic")
	other := secured(t, testJob("all", 1, 1), "quic") // of another CA
	job.Sites[1].Transports = other.Sites[1].Transports
	for i := range job.Sites {
		job.Sites[i].Server.TLS = config.TLSOptional // else it ends at the server
	}
	job.Limits.Start = 5 * time.Minute
	f := end(start(t, route(job, strict("quic"))))
	if f[1] == nil || !strings.Contains(f[1].Text, "require_tls") || !strings.Contains(f[1].Text, "certificate") {
		t.Errorf("%v", f[1])
	}
	if f[0] == nil {
		t.Error("the other site ended well")
	}
}

// A host that says its rank at the port of IMPI's channels, as anybody can, is not
// taken for one whose channel must be encrypted.
func TestPlainGreetingIsSentAway(t *testing.T) {
	job := route(secured(t, testJob("all", 1, 1), "quic"), strict("quic"))
	serveApart(t, job)
	alpha := startSites(t, job, job.Sites[:1])
	<-alpha[0].n.listening
	c, err := net.Dial("tcp", alpha[0].n.hosts[0].Channel.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte{0, 0, 0, 1}); err != nil { // before the dance begins
		t.Fatal(err)
	}
	beta := startSites(t, job, job.Sites[1:])
	wantNone(t, append(alpha, beta...))
	if got := channelsOf(alpha); len(got) != 1 || got[0] != "quic ring" {
		t.Errorf("%q", got)
	}
}

func TestPlain(t *testing.T) {
	n := twoSites(t, config.Route{Site: "beta", RequireTLS: true, Prefer: []string{"tcp"}})
	n.job.Hosts, n.job.Procs = routestest.TwoHosts()
	if err := n.routes.CheckPlainGreeting(1); !errors.Is(err, routes.ErrPlain) || !strings.Contains(err.Error(), `route "beta"`) {
		t.Errorf("%v", err)
	}
	for _, h := range []uint32{0, 2, 0xffffffff} { // ourselves, and nobody
		if err := n.routes.CheckPlainGreeting(h); err != nil {
			t.Errorf("%x: %v", h, err)
		}
	}
}

func TestRequireTLS(t *testing.T) {
	strictly, freely := config.Route{RequireTLS: true}, config.Route{}
	named := func(name string, r config.Route) config.Route { r.Site = name; return r }
	for _, c := range []struct {
		name   string
		routes []config.Route
		theirs []string // features of the peer's cards
		change func(*node)
		want   bool
	}{
		{"nobody", []config.Route{named("*", freely)}, nil, nil, false},
		{"we, to all", []config.Route{named("*", strictly)}, nil, nil, true},
		{"we, to them", []config.Route{named("*", freely), named("beta", strictly)}, nil, nil, true},
		{"we, not to them", []config.Route{named("*", strictly), named("beta", freely)}, nil, nil, false},
		{"they, to all", nil, []string{"tls"}, nil, true},
		{"they, to us", nil, []string{"tls-0"}, nil, true},
		{"they, to others", nil, []string{"tls-2"}, nil, false},
		{"they, not to us", nil, []string{"tls", "no-tls-0"}, nil, false},
		// The file of a site alone does not tell who client 1 is: it may be gamma.
		{"a name that is nobody's", []config.Route{named("*", freely), named("gamma", strictly)}, nil, nil, false},
		{"a name that may be theirs", []config.Route{named("*", freely), named("gamma", strictly)}, nil,
			func(n *node) { n.opt.Job.Sites = n.opt.Job.Sites[:1] }, true},
		{"ours is not theirs", []config.Route{named("*", freely), named("alpha", strictly)}, nil,
			func(n *node) { n.opt.Job.Sites = n.opt.Job.Sites[:1] }, false},
	} {
		n := twoSites(t, c.routes...)
		n.routes.Cards.At(2).Features = c.theirs
		if c.change != nil {
			c.change(n)
		}
		s, says := n.routes.SecrecyTo(1)
		got := s == rules.Encrypted
		if got != c.want || got != strings.Contains(says, "has require_tls") {
			t.Errorf("%s: %t, %q", c.name, got, says)
		}
		if got := n.routes.Allows(2, n.routes.Transport("tcp")); c.routes == nil && got == c.want {
			t.Errorf("%s: tcp is allowed: %t", c.name, got)
		}
	}
}

// What is said on the cards is what the routes have.
func TestSecrecyFeatures(t *testing.T) {
	job := testJob("ring", 1, 1, 1)
	site := config.Site{Routes: []config.Route{{Site: "*"}, {Site: "beta", RequireTLS: true}}}
	c := &dynamic.BusinessCard{Features: routes.SecrecyFeatures(job, site)}
	if rules.HasFeature(c, rules.TLSFeature, 0) || !rules.HasFeature(c, rules.TLSFeature, 1) || rules.HasFeature(c, rules.TLSFeature, 2) {
		t.Errorf("%q", c.Features)
	}
}

// A job with a client of another MPI has plain channels, and nothing else.
func TestForeignClientCannotEncrypt(t *testing.T) {
	n := twoSites(t, config.Route{Site: "beta", RequireTLS: true, Prefer: []string{"quic"}, Pos: config.Pos{File: "job.hcl", Line: 3, Column: 1}})
	n.job.Hosts, n.job.Procs = routestest.TwoHosts()
	if err := n.routes.CheckChannels(n.hosts[0].Rank, n.hosts[0].Config.Address.String()); err != nil {
		t.Errorf("both have quic: %v", err)
	}
	n.job.Clients[0].Own = true
	n.routes.Cards = nil
	err := n.routes.CheckChannels(n.hosts[0].Rank, n.hosts[0].Config.Address.String())
	if err == nil || !strings.Contains(err.Error(), "another MPI") || !strings.Contains(err.Error(), "job.hcl:3:1") {
		t.Errorf("%v", err)
	}
}

// Who accepts judges by what the link is, not by what it is for.
func TestAllowsChannel(t *testing.T) {
	n := twoSites(t, config.Route{Site: "beta", RequireTLS: true, Prefer: []string{"quic", "tcp"}})
	n.job.Hosts, n.job.Procs = routestest.TwoHosts()
	for name, want := range map[string]bool{"tcp": false, "unix": false, "quic": true} {
		if got := n.routes.AllowsChannel(1, nil, n.routes.Transport(name), false); got != want {
			t.Errorf("%s: %t", name, got)
		}
		if n.routes.AllowsChannel(1, nil, n.routes.Transport(name), true) {
			t.Errorf("%s: allowed where channels come as IMPI has it", name)
		}
	}
	for _, stranger := range []wire.HostRank{-1, 2} {
		if n.routes.AllowsChannel(stranger, nil, n.routes.Transport("quic"), false) || n.routes.AllowsChannel(stranger, nil, n.routes.Transport("tcp"), true) {
			t.Errorf("host %d, which is none of two, may have a channel", stranger)
		}
	}
	candidates, must := n.routes.ChannelCandidates(n.hosts[0].Rank, n.hosts[0].Config.Address.String(), 1)
	if !must || len(candidates) != 1 || !candidates[0].Transport.Capabilities().Has(transports.FeatureEncrypted) {
		t.Errorf("%v, %t", candidates, must)
	}
}
