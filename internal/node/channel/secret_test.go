package channel

import (
	"net/netip"
	"testing"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/routes/routestest"
	"github.com/openimpi/impi/internal/node/site"
)

// A foreign host may have further addresses, if the file says so.
func TestChannelsFrom(t *testing.T) {
	job := routestest.Job()
	job.Sites[1].Foreign = true
	job.Sites[1].ChannelsFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}
	c := &Channels{Settings: Settings{Routes: &routes.Table{Job: job, World: &startup.Job{
		Clients: []startup.ClientInfo{{}, {Rank: 1}},
		Hosts:   []startup.HostInfo{{}, {Client: 1, Address: wire.HostID{12: 127, 15: 3}, Port: 9}},
	}}}}
	for from, want := range map[byte]bool{3: true, 9: true, 1: false} {
		d, err := agent.NewDance(agent.DanceConfig{Hosts: c.danceHosts()})
		if err != nil {
			t.Fatal(err)
		}
		d.Accepted(0, wire.HostID{12: 127, 15: from})
		d.Input(0, []byte{0, 0, 0, 1})
		if d.Done() != want {
			t.Errorf("from 127.0.0.%d: %t", from, d.Done())
		}
	}
}

// Only at its own host's port is a channel's token known, and never in a job that has no
// secret: zeros are nobody's proof.
func TestChannelTokens(t *testing.T) {
	h := []*site.Host{{Rank: 0}, {Rank: 1}}
	s := Settings{Site: &site.Site{Hosts: h}, Routes: &routes.Table{World: &startup.Job{
		Clients: []startup.ClientInfo{{Own: true}, {Rank: 1, Own: true}, {Rank: 2}},
		Hosts:   []startup.HostInfo{{}, {}, {Client: 1, Port: 7}, {Client: 2}},
	}}}
	if c := New(s).tokens; len(c.of) > 0 {
		t.Errorf("%v", c.of)
	}
	s.Own = dynamic.Token{9}
	if c := New(s).tokens; len(c.of) != 2 || len(c.names) != 1 {
		t.Errorf("without a secret of the job: %v", c.of)
	}
	s.Routes.World.Secret[0] = 1
	all := New(s)
	c := all.tokens
	if len(c.of) != 4 || len(c.names) != 3 {
		t.Fatalf("%v", c.of)
	}
	token := c.of[hostPair{1, 2}]
	if got, ok := all.Token(h[1], token.World()); !ok || got != token {
		t.Error("it is not known at its own host")
	}
	if _, ok := all.Token(h[0], token.World()); ok {
		t.Error("it is known at another host")
	}
}
