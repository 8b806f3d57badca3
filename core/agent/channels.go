package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// ChannelsConfig contains what Channels need in addition to the job.
type ChannelsConfig struct {
	Job   *startup.Job
	Own   dynamic.Token   // a secret of this site alone; zero: none
	Hosts []wire.HostRank // the site's hosts, whose channels these are

	OnDemand OnDemand // must be the same at all sites that list wire.OnDemandVersion

	Resumes func(local, peer wire.HostRank) bool // whether a channel outlives its connection
	From    func(wire.ClientRank) []netip.Prefix // as in DanceHost; nil: no further addresses
}

// OnDemand selects which channels are made when the first packet needs them, and not at the start.
// Only channels whose ends can prove themselves are made on demand.
type OnDemand uint8

// Which channels are made on demand.
const (
	InLargeJobs OnDemand = iota // in jobs of more than MaxAllChannelsHosts, channels between hosts whose ranks do not differ by a power of 2
	Always                      // all channels
)

// MaxAllChannelsHosts is the maximum number of hosts of a job that makes all channels at the start:
// a host can easily have that many connections.
const MaxAllChannelsHosts = 64

// Channels are the channels between the hosts of a site and all others, from the dances that make
// them until the job's end: they determine how the ends prove their identity, and what is done with
// connections that arrive (IMPI ch.2, Host-to-host connections). Only one goroutine may use it at a
// time.
type Channels struct {
	c      ChannelsConfig
	names  map[wire.HostRank][]dynamic.WorldID // by host of the site, then by peer: names of channels that the peer dials; zero: it dials none
	phases map[wire.HostRank]channelPhase
	ready  bool
	kept   map[channelEnds]bool           // channels that resume, and whether this side dials again
	pairs  dynamic.PairLinks[channelEnds] // states of channels that are made on demand
}

// channelEnds is a host of the site and another one.
type channelEnds struct{ local, peer wire.HostRank }

type channelPhase uint8

const (
	undanced channelPhase = iota
	dancing
	danced
)

// NewChannels makes the Channels of hosts that have none yet.
func NewChannels(c ChannelsConfig) *Channels {
	x := &Channels{
		c: c, names: make(map[wire.HostRank][]dynamic.WorldID),
		phases: make(map[wire.HostRank]channelPhase), kept: make(map[channelEnds]bool),
	}
	for _, h := range c.Hosts {
		for i := range c.Job.Hosts {
			ends := channelEnds{h, wire.HostRank(i)}
			if token, ok := x.token(ends); ok && (!ends.dials() || x.OnDemand(ends.local, ends.peer)) {
				if x.names[h] == nil {
					x.names[h] = make([]dynamic.WorldID, len(c.Job.Hosts))
				}
				x.names[h][i] = token.World()
			}
		}
	}
	return x
}

// token returns the token with which the ends of a channel prove themselves to each other; ok is
// false if they share no secret.
func (c *Channels) token(ends channelEnds) (token dynamic.Token, ok bool) {
	if ends.peer < 0 || int(ends.peer) >= len(c.c.Job.Hosts) || ends.local == ends.peer || !slices.Contains(c.c.Hosts, ends.local) {
		return token, false
	}
	secret, ok := c.secretWith(c.c.Job.Hosts[ends.peer].Client)
	if !ok {
		return token, false
	}
	return secret.Channel(c.describe(ends.local), c.describe(ends.peer)), true
}

// OnDemand reports whether the channel between a host of the site and another host is made when the
// first packet needs it, by whichever of the two hosts has such a packet first.
func (c *Channels) OnDemand(local, peer wire.HostRank) bool {
	_, proves := c.secretWith(c.c.Job.Hosts[peer].Client)
	if c.c.Job.Hosts[local].Port == 0 || c.c.Job.Hosts[peer].Port == 0 {
		return false // no host can dial it
	}
	far := !ConnectAtStart(len(c.c.Job.Hosts), local, peer)
	return proves && local != peer && (far || c.c.OnDemand == Always) && c.agrees(c.c.Job.Hosts[peer].Client)
}

// ConnectAtStart reports whether two hosts of a job with that many hosts try to reach each other at
// its start: all do in a job of up to MaxAllChannelsHosts, and in a larger one those whose ranks
// differ by a power of 2.
func ConnectAtStart(hosts int, a, b wire.HostRank) bool {
	apart := max(a-b, b-a)
	return hosts <= MaxAllChannelsHosts || apart&(apart-1) == 0
}

// agrees reports whether the hosts of a client make the same channels on demand as those of this
// site: the site's own do, and those of sites that say so.
func (c *Channels) agrees(x wire.ClientRank) bool {
	self := c.c.Job.Self
	return x == self || c.c.Job.Clients[x].Lists(wire.OnDemandVersion) && c.c.Job.Clients[self].Lists(wire.OnDemandVersion)
}

// OfOtherRelease returns the own sites in a large job to which all channels are made at the start,
// since these sites do not list that they make channels on demand.
func (c *Channels) OfOtherRelease() (list []wire.ClientRank) {
	for i := range c.c.Job.Clients {
		x := wire.ClientRank(i)
		if _, proves := c.secretWith(x); proves && !c.agrees(x) && len(c.c.Job.Hosts) > MaxAllChannelsHosts {
			list = append(list, x)
		}
	}
	return list
}

// dials reports whether the local host connects to the peer: it does to hosts of lower rank (IMPI
// ch.2, Host-to-host connections).
func (e channelEnds) dials() bool { return e.local > e.peer }

// secretWith returns a secret that this site shares with a client and nobody else has.
func (c *Channels) secretWith(x wire.ClientRank) (secret dynamic.Token, ok bool) {
	if c.c.Job.SharesSecret(x) {
		return c.c.Job.Secret, true
	}
	return c.c.Own, x == c.c.Job.Self && c.c.Own != dynamic.Token{}
}

// Proves reports whether the hosts of a client prove who they are on the channels to this site.
func (c *Channels) Proves(x wire.ClientRank) bool {
	_, ok := c.secretWith(x)
	return ok
}

func (c *Channels) describe(h wire.HostRank) dynamic.ChannelEnd {
	x := c.c.Job.Hosts[h]
	return dynamic.ChannelEnd{Rank: h, Address: x.Address, Port: uint16(x.Port)}
}

// Begin begins the dance of a host of the site now. Other hosts of the site have ReachLimit to
// answer, hosts that run impi at other sites FarLimit, and all others until the deadline.
func (c *Channels) Begin(h wire.HostRank, now, deadline time.Time) (*Dance, error) {
	hosts := make([]DanceHost, len(c.c.Job.Hosts))
	for i, x := range c.c.Job.Hosts {
		_, proves := c.secretWith(x.Client)
		hosts[i] = DanceHost{Address: x.Address, Port: uint16(x.Port), Proves: proves, Skip: c.OnDemand(h, wire.HostRank(i))}
		switch {
		case x.Client == c.c.Job.Self:
			hosts[i].By = now.Add(ReachLimit)
		case c.c.Job.Listens(x.Client):
			hosts[i].By = now.Add(FarLimit)
		}
		if !proves && c.c.From != nil {
			hosts[i].From = c.c.From(x.Client)
		}
	}
	d, err := NewDance(DanceConfig{Self: h, Hosts: hosts, Deadline: deadline})
	if err == nil {
		c.phases[h] = dancing
	}
	return d, err
}

// End records that the dance of a host is over.
func (c *Channels) End(h wire.HostRank) { c.phases[h] = danced }

// Ready records that all hosts of the site have their channels.
func (c *Channels) Ready() { c.ready = true }

// Unproven lists the clients whose channels are used without a proof of identity of the other end:
// own sites, for which a key would make a proof possible, and foreign sites.
func (c *Channels) Unproven() (ours, foreign []wire.ClientRank) {
	for _, x := range c.c.Job.Clients {
		switch _, ok := c.secretWith(x.Rank); {
		case ok:
		case x.Own && c.c.Job.Clients[c.c.Job.Self].Own:
			ours = append(ours, x.Rank)
		default:
			foreign = append(foreign, x.Rank)
		}
	}
	return ours, foreign
}

// Token returns the token that belongs to the name that a dialler sends to one of the site's hosts.
func (c *Channels) Token(h wire.HostRank, name dynamic.WorldID) (token dynamic.Token, ok bool) {
	peer := slices.Index(c.names[h], name)
	if peer < 0 || name == (dynamic.WorldID{}) {
		return token, false
	}
	return c.token(channelEnds{h, wire.HostRank(peer)})
}

// Hello returns the greeting of a host of the site for the first or a further connection of a
// channel, and the token to prove it with; ok is false if there is no secret.
func (c *Channels) Hello(local, peer wire.HostRank) (hello dynamic.Hello, token dynamic.Token, ok bool) {
	token, ok = c.token(channelEnds{local, peer})
	if !ok {
		return hello, token, false
	}
	return dynamic.Hello{
		Src: wire.WorldRank(local), Dst: wire.WorldRank(peer),
		ResumableID: token.ChannelResumableID(), Resumes: true, Hosts: true,
	}, token, true
}

// Admits decides whether a host of the site accepts a connection from another host, whatever the
// connection is for. The dialler has proven the contents of hello with the token of a channel to
// that host. allowed is true if the site's routes allow the connection.
func (c *Channels) Admits(at wire.HostRank, hello dynamic.Hello, allowed bool) dynamic.Verdict {
	ends := channelEnds{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	token, ok := c.token(ends)
	switch {
	case !hello.Hosts:
		return dynamic.NotAllowed
	case ends.local != at || !ok || ends.dials() && !c.OnDemand(ends.local, ends.peer):
		return dynamic.UnknownRank
	case hello.ResumableID != token.ChannelResumableID():
		return dynamic.UnknownLink
	case !allowed:
		return dynamic.NotAllowed
	}
	return dynamic.Accepted
}

// ArrivalTarget is the destination of a connection of a channel.
type ArrivalTarget uint8

// The places.
const (
	Nowhere   ArrivalTarget = iota // the connection is refused
	NotReady                       // the dialler was faster than this site: call Arrive again after Begin, End or Ready
	ToDance                        // pass the connection to Dance.ProvenElsewhere
	ToChannel                      // it replaces the last connection of a channel
	ToHost                         // it becomes the channel to the host; call Drop if it is lost before it is used
)

// Arrive decides what to do with a connection that Admits has accepted.
func (c *Channels) Arrive(hello dynamic.Hello) (ArrivalTarget, dynamic.Verdict) {
	ends := channelEnds{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	dials, kept := c.kept[ends]
	onDemand := c.OnDemand(ends.local, ends.peer)
	switch {
	case c.phases[ends.local] == dancing && !onDemand:
		return ToDance, dynamic.Accepted
	case !c.ready && onDemand: // the peer dials again; if it waited, it could be accepted after it gave up
		return Nowhere, dynamic.Busy
	case !c.ready:
		return NotReady, dynamic.Accepted
	case kept && !dials:
		return ToChannel, dynamic.Accepted
	case !onDemand:
		return Nowhere, dynamic.UnknownLink
	}
	switch v := c.pairs.Arrive(ends, !ends.dials()); v {
	case dynamic.Accepted:
		return ToHost, v
	case dynamic.StillLinked: // this host dials that channel again
		return Nowhere, dynamic.TieLost
	default:
		return Nowhere, v
	}
}

// Request is called for a host that needs a channel which is made on demand. It returns the dial
// plan that makes the channel, over that many candidates and within limit, or nil if the channel
// exists or is being made. The plan may run only while the caller guards these Channels.
func (c *Channels) Request(local, peer wire.HostRank, candidates int, limit time.Duration) *dynamic.DialPlan {
	ends := channelEnds{local, peer}
	if !c.OnDemand(local, peer) || !c.pairs.Request(ends) {
		return nil
	}
	return dynamic.OnDemandChannelPlan(candidates, &c.pairs, ends, limit)
}

// Stop records that the dial plan of a channel was given up before it had a result.
func (c *Channels) Stop(local, peer wire.HostRank) {
	c.pairs.Stop(channelEnds{local, peer})
}

// Drop records that a connection for which Arrive returned ToHost was lost before it was used.
func (c *Channels) Drop(hello dynamic.Hello) {
	c.pairs.Drop(channelEnds{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)})
}

// AddChannel is called for each channel that the site's packet switches get. resumes reports
// whether the channel outlives its connection; if so, session is its name, and dials reports
// whether this site connects again.
func (c *Channels) AddChannel(local, peer wire.HostRank) (session dynamic.ResumableID, resumes, dials bool) {
	ends := channelEnds{local, peer}
	token, ok := c.token(ends)
	if !ok || !c.c.Resumes(local, peer) {
		return session, false, false
	}
	c.kept[ends] = ends.dials()
	return token.ChannelResumableID(), true, ends.dials()
}

// KeepsListening reports whether others may connect to a host of the site after its dance: again
// for a channel that resumes, or for one that is made on demand.
func (c *Channels) KeepsListening(local wire.HostRank) bool {
	for i := range c.c.Job.Hosts {
		ends := channelEnds{local, wire.HostRank(i)}
		if _, proves := c.secretWith(c.c.Job.Hosts[i].Client); !proves || ends.local == ends.peer {
			continue
		}
		if c.OnDemand(local, ends.peer) || !ends.dials() && c.c.Resumes(local, ends.peer) {
			return true
		}
	}
	return false
}
