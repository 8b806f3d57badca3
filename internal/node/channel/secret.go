package channel

import (
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/site"
)

// hostPair is one of our hosts and another.
type hostPair struct{ local, peer wire.HostRank }

// tokens are those of all channels of this site's hosts that prove themselves.
type tokens struct {
	of    map[hostPair]dynamic.Token
	names map[dynamic.World]hostPair // of those that somebody else dials
}

func newTokens(c *Channels) tokens {
	t := tokens{of: make(map[hostPair]dynamic.Token), names: make(map[dynamic.World]hostPair)}
	for _, h := range c.Site.Hosts {
		for i, x := range c.Routes.World.Hosts {
			secret, ok := c.secretWith(x.Client)
			ends := hostPair{h.Rank, wire.HostRank(i)}
			if !ok || ends.local == ends.peer {
				continue
			}
			token := secret.Channel(c.describe(ends.local), c.describe(ends.peer))
			t.of[ends] = token
			if ends.local < ends.peer { // hosts connect to those of lower rank
				t.names[token.World()] = ends
			}
		}
	}
	return t
}

// secretWith gives what only this site and that of a client have.
func (c *Channels) secretWith(x wire.ClientRank) (secret dynamic.Token, ok bool) {
	if c.Routes.World.SharesSecret(x) {
		return c.Routes.World.Secret, true
	}
	return c.Own, x == c.Routes.World.Self && c.Own != dynamic.Token{}
}

// describe describes a host as all clients know it.
func (c *Channels) describe(h wire.HostRank) dynamic.ChannelEnd {
	x := c.Routes.World.Hosts[h]
	return dynamic.ChannelEnd{Rank: h, Address: x.Address, Port: uint16(x.Port)}
}

// Token gives the token that a dialler names to one of our hosts.
func (c *Channels) Token(h *site.Host, name dynamic.World) (token dynamic.Token, ok bool) {
	ends, ok := c.tokens.names[name]
	if !ok || ends.local != h.Rank {
		return token, false
	}
	return c.tokens.of[ends], true
}

// WarnOfUnproven says whose channels nobody proves anything about.
func (c *Channels) WarnOfUnproven() {
	var ours, foreign []string
	for _, x := range c.Routes.World.Clients {
		switch _, ok := c.secretWith(x.Rank); {
		case ok:
		case x.Own && c.Routes.World.Clients[c.Routes.World.Self].Own:
			ours = append(ours, c.Routes.ClientName(x.Rank))
		default:
			foreign = append(foreign, c.Routes.ClientName(x.Rank))
		}
	}
	if len(ours) > 0 {
		c.Log.Warn("channels to sites of ours are known by their addresses alone, for in a job with another MPI only a key can prove more",
			"sites", strings.Join(ours, ", "), "remedy", `give all of them auth "key"`)
	}
	if len(foreign) > 0 {
		c.Log.Info("channels to sites of other MPIs are known by their addresses alone", "sites", strings.Join(foreign, ", "))
	}
}
