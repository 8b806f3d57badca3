package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// LinkID is the driver's number for a link. It indexes a slice, so the driver should use
// small numbers.
type LinkID int32

// NoLink stands for the absence of a link.
const NoLink LinkID = -1

// maxLinks bounds LinkIDs.
const maxLinks = 1 << 20

// state of an endpoint.
type state uint8

const (
	waiting state = iota // for its link
	open
	gone
)

// endpoint is where the agent receives and sends packets: the link of a local proc, or the
// channel to another host. It exists before its link is attached; packets for it wait in
// its queue until then.
type endpoint struct {
	peer  Peer
	id    identity // of a proc
	link  LinkID
	state state
	done  bool // a proc: finished; a host: it sent FINI
	ended bool // a host: our FINI is queued
	over  bool // a host: ChannelDone was emitted
	own   bool
	local int // a proc: its number among the local ones

	in      input
	out     queue
	urgent  queue // PROTOACKs
	batch   [][]byte
	touched bool
	err     *ProtocolError
}

func (p *endpoint) isProc() bool    { return p.peer.Rank != NoRank }
func (p *endpoint) hasOutput() bool { return p.out.n > 0 || p.urgent.n > 0 }

// accepts reports whether the agent queues packets for the endpoint; packets for other endpoints
// are dropped.
func (p *endpoint) accepts() bool { return p.state != gone && !(p.done && p.isProc()) }

// proc says by which endpoint the agent reaches a proc of the job.
type proc struct {
	endpoint *endpoint // its own if it is local, else its host's; nil if there is no way
	host     wire.HostRank
	index    int // among its host's procs
}

// Agent is the packet switch of one host (IMPI ch.3, Packet Protocol). Only one goroutine
// may use it at a time.
type Agent struct {
	self      wire.HostRank
	hosts     int
	maxData   uint32
	silent    bool       // the dialect has no FINI
	endpoints []endpoint // other hosts and self by rank, then the local procs
	links     []*endpoint
	procs     []proc // by world rank
	sizes     []int  // procs of each host
	byID      *table
	windows   windows
	pool      pool

	running  int // local procs that are not done
	channels int // that have not ended in order
	finished bool

	events         []Event
	eventHead      int
	touched, given []LinkID
	stats          Stats
}

// New makes the agent of a host. No link is attached yet; packets for a host or proc
// without a link wait until it is attached. Errors wrap ErrConfig.
func New(c Config) (*Agent, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a := &Agent{
		self:    c.Self,
		hosts:   len(c.Hosts),
		maxData: c.MaxData,
		silent:  c.Dialect == wire.Draft,
		sizes:   make([]int, len(c.Hosts)),
		pool:    pool{size: c.ChunkSize},
	}
	for _, p := range c.Procs {
		a.sizes[p.Host]++
	}
	a.running = a.sizes[c.Self]
	a.endpoints = make([]endpoint, len(c.Hosts)+a.running)
	for h, host := range c.Hosts {
		a.addHost(wire.HostRank(h), host)
	}
	if err := a.addProcs(&c); err != nil {
		return nil, err
	}
	a.windows = windows{
		ackMark: int64(c.AckMark),
		hiWater: int64(c.HiWater),
		hosts:   a.hosts,
		rows:    make([][]pair, a.running*a.hosts),
	}
	a.allDone()
	return a, nil
}

func (a *Agent) addHost(h wire.HostRank, host Host) {
	p := &a.endpoints[h]
	p.link = NoLink
	p.own = host.Own
	p.peer = Peer{Host: h, Client: host.Client, Rank: NoRank}
	if h == a.self || host.Unlinked {
		p.state = gone
	} else {
		a.channels++
	}
}

func (a *Agent) addProcs(c *Config) error {
	a.procs = make([]proc, len(c.Procs))
	a.byID = newTable(len(c.Procs))
	first, local := 0, 0
	for r, p := range c.Procs {
		if first < r && c.Procs[first].Host != p.Host {
			first = r
		}
		if other, ok := a.byID.insert(identityOf(p.ID), wire.WorldRank(r)); !ok {
			return fmt.Errorf("%w: procs %d and %d have the same identity %v", ErrConfig, other, r, p.ID)
		}
		at := proc{endpoint: &a.endpoints[p.Host], host: p.Host, index: r - first}
		switch {
		case p.Host == a.self:
			at.endpoint = &a.endpoints[a.hosts+local]
			*at.endpoint = endpoint{
				peer:  Peer{Host: a.self, Client: c.Hosts[a.self].Client, Rank: wire.WorldRank(r)},
				id:    identityOf(p.ID),
				link:  NoLink,
				own:   true,
				local: local,
			}
			local++
		case c.Hosts[p.Host].Unlinked:
			at.endpoint = nil
		}
		a.procs[r] = at
	}
	return nil
}

// AttachProc says that l leads to the local proc r. It takes over packets that waited for
// the proc.
func (a *Agent) AttachProc(l LinkID, r wire.WorldRank) error {
	if r < 0 || int(r) >= len(a.procs) || a.procs[r].host != a.self {
		return fmt.Errorf("%w: proc %d is not one of host %d", ErrLink, r, a.self)
	}
	return a.attach(l, a.procs[r].endpoint)
}

// AttachHost says that l is the channel to host h, on which the greeting is over (IMPI
// ch.2, Host-to-host connections).
func (a *Agent) AttachHost(l LinkID, h wire.HostRank) error {
	if h < 0 || int(h) >= a.hosts || h == a.self {
		return fmt.Errorf("%w: host %d of %d cannot have a channel to host %d", ErrLink, a.self, a.hosts, h)
	}
	return a.attach(l, &a.endpoints[h])
}

func (a *Agent) attach(l LinkID, p *endpoint) error {
	if l < 0 || l >= maxLinks {
		return fmt.Errorf("%w: number %d for %v is not in 0 to %d", ErrLink, l, p.peer, maxLinks-1)
	}
	if other := a.lookup(l); other != nil {
		return fmt.Errorf("%w: %d leads to %v already, not to %v", ErrLink, l, other.peer, p.peer)
	}
	if p.state != waiting {
		return fmt.Errorf("%w: %v has or had one, or needs none", ErrLink, p.peer)
	}
	for int(l) >= len(a.links) {
		a.links = append(a.links, nil)
	}
	a.links[l] = p
	p.link, p.state = l, open
	if p.hasOutput() {
		a.touch(p)
	}
	a.channelDone(p) // where there is no FINI to be sent
	return nil
}

func (a *Agent) lookup(l LinkID) *endpoint {
	if l < 0 || int(l) >= len(a.links) {
		return nil
	}
	return a.links[l]
}
