// Package channel makes the channels between the hosts of a job as agent.Channels and
// its dances decide: it dials, accepts, greets, and dials again.
package channel

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Settings are what channels need of a node.
type Settings struct {
	Site      *site.Site // its hosts have their ranks
	Routes    *routes.Table
	Own       dynamic.Token // a token that only this site has
	Keys      func(at *site.Listener) dynamic.Keys
	Tasks     *lifetime.Group
	FallBacks *dial.FallBacks
	Log       hclog.Logger
	Ready     <-chan struct{} // closed when all hosts have their channels
	Deadline  time.Time       // for all of them
	OnDemand  agent.OnDemand
}

// Channels are the channels of a site's hosts.
type Channels struct {
	Settings
	ends []*end

	mu      sync.Mutex
	machine *agent.Channels
	resent  socket.Retransmits
	changed chan struct{} // closed when the machine's verdict on an arrival may have changed
}

type end struct {
	*site.Host
	sw        *packetswitch.Switch   // once the dance is over
	resumable []*channel             // guarded by mu of its Channels
	dancing   atomic.Pointer[dancer] // while channels are made
}

// New makes the Channels of hosts that have none yet.
func New(s Settings) *Channels {
	c := &Channels{Settings: s, changed: make(chan struct{})}
	var hosts []wire.HostRank
	for _, h := range s.Site.Hosts {
		c.ends = append(c.ends, &end{Host: h})
		hosts = append(hosts, h.Rank)
	}
	c.machine = agent.NewChannels(agent.ChannelsConfig{
		OnDemand: s.OnDemand,
		Job:      s.Routes.World, Own: s.Own, Hosts: hosts, Resumes: s.Routes.ChannelResumable,
		From: func(x wire.ClientRank) []netip.Prefix {
			site, _ := s.Routes.ForeignSite(x)
			return site.ChannelsFrom
		},
	})
	return c
}

func (c *Channels) with(f func(m *agent.Channels)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.machine)
}

// change is with for an f that may change what the machine decides about waiting connections, which
// then ask it again.
func (c *Channels) change(f func(m *agent.Channels)) {
	c.with(func(m *agent.Channels) {
		f(m)
		close(c.changed)
		c.changed = make(chan struct{})
	})
}

// Token returns the token that belongs to the name that a dialler sends to one of our hosts.
func (c *Channels) Token(h *site.Host, name dynamic.WorldID) (token dynamic.Token, ok bool) {
	c.with(func(m *agent.Channels) { token, ok = m.Token(h.Rank, name) })
	return token, ok
}

// AgentConfig returns the Config of the packet switch of one of the site's hosts.
func (c *Channels) AgentConfig(host int, survives bool, dialect wire.Dialect) (x agent.Config) {
	c.with(func(m *agent.Channels) { x = agent.ConfigOf(m, c.ends[host].Rank, survives, dialect) })
	return x
}

// Proves reports whether the hosts of a client prove who they are on channels.
func (c *Channels) Proves(x wire.ClientRank) (yes bool) {
	c.with(func(m *agent.Channels) { yes = m.Proves(x) })
	return yes
}

// KeepsListening reports whether one of the site's hosts is dialled again for a resumable channel.
func (c *Channels) KeepsListening(host int) (yes bool) {
	c.with(func(m *agent.Channels) { yes = m.KeepsListening(c.ends[host].Rank) })
	return yes
}

// WarnOfOthers logs, at the head of a site, the sites whose hosts do not prove their identity on
// channels, and those of another release.
func (c *Channels) WarnOfOthers() {
	if c.Routes.HostsBefore > 0 {
		return
	}
	var ours, foreign, other []wire.ClientRank
	c.with(func(m *agent.Channels) {
		ours, foreign = m.Unproven()
		other = m.OfOtherRelease()
	})
	names := func(clients []wire.ClientRank) string {
		var all []string
		for _, x := range clients {
			all = append(all, c.Routes.ClientName(x))
		}
		return strings.Join(all, ", ")
	}
	if len(ours) > 0 {
		c.Log.Warn("channels to sites of ours are known by their addresses alone, for in a job with another MPI only a key can prove more",
			"sites", names(ours), "remedy", `give all of them auth "key"`)
	}
	if len(foreign) > 0 {
		c.Log.Info("channels to sites of other MPIs are known by their addresses alone", "sites", names(foreign))
	}
	if len(other) > 0 {
		c.Log.Warn("channels to sites of another release of impi are all made at the start, though the job is large", "sites", names(other), "remedy", "install the same release at all sites")
	}
}
