package node

import (
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/site"
)

// hostPair is one of our hosts and another.
type hostPair struct{ local, peer wire.HostRank }

// channelTokens are those of all channels of this site's hosts that prove themselves.
type channelTokens struct {
	of    map[hostPair]dynamic.Token
	names map[dynamic.World]hostPair // of those that somebody else dials
}

func newChannelTokens(n *node) channelTokens {
	c := channelTokens{of: make(map[hostPair]dynamic.Token), names: make(map[dynamic.World]hostPair)}
	for _, h := range n.hosts {
		for i, x := range n.job.Hosts {
			secret, ok := n.secretWith(x.Client)
			ends := hostPair{h.Rank, wire.HostRank(i)}
			if !ok || ends.local == ends.peer {
				continue
			}
			token := secret.Channel(n.channelEnd(ends.local), n.channelEnd(ends.peer))
			c.of[ends] = token
			if ends.local < ends.peer { // hosts connect to those of lower rank
				c.names[token.World()] = ends
			}
		}
	}
	return c
}

// secretWith gives what only this site and that of a client have.
func (n *node) secretWith(c wire.ClientRank) (secret dynamic.Token, ok bool) {
	if n.job.SharesSecret(c) {
		return n.job.Secret, true
	}
	return n.token, c == n.job.Self && n.token != dynamic.Token{}
}

// channelEnd describes a host as all clients know it.
func (n *node) channelEnd(h wire.HostRank) dynamic.ChannelEnd {
	x := n.job.Hosts[h]
	return dynamic.ChannelEnd{Rank: h, Address: x.Address, Port: uint16(x.Port)}
}

// at gives the token that a dialler names to one of our hosts.
func (c *channelTokens) at(h *site.Host, name dynamic.World) (token dynamic.Token, ok bool) {
	ends, ok := c.names[name]
	if !ok || ends.local != h.Rank {
		return token, false
	}
	return c.of[ends], true
}

// warnOfUnproven says whose channels nobody proves anything about.
func (n *node) warnOfUnproven() {
	var ours, foreign []string
	for _, c := range n.job.Clients {
		switch _, ok := n.secretWith(c.Rank); {
		case ok:
		case c.Own && n.job.Clients[n.job.Self].Own:
			ours = append(ours, n.routes.ClientName(c.Rank))
		default:
			foreign = append(foreign, n.routes.ClientName(c.Rank))
		}
	}
	if len(ours) > 0 {
		n.log.Warn("channels to sites of ours are known by their addresses alone, for in a job with another MPI only a key can prove more",
			"sites", strings.Join(ours, ", "), "remedy", `give all of them auth "key"`)
	}
	if len(foreign) > 0 {
		n.log.Info("channels to sites of other MPIs are known by their addresses alone", "sites", strings.Join(foreign, ", "))
	}
}
