package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// LinkID is the driver's number for a link. It indexes a slice, so the driver should use
// small numbers.
type LinkID int32

// SetNoLink stands for the absence of a link.
const NoLink LinkID = -1

const maxLinks = 1 << 20

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
	id    identity // of a proc; unset for a host
	link  LinkID
	state state
	done  bool // a proc: finished; a host: it sent FINI
	ended bool // a host: our FINI is queued
	over  bool // a host: ChannelDone was returned by Next, or will be
	meant bool // a host: its channel is made on demand, and exists or is being made
	died  bool // a host: HostDied was emitted, and ContinueWithout was not called
	own   bool

	in      input
	out     queue
	urgent  queue // PROTOACKs and other urgent packets
	batch   [][]byte
	touched bool
	err     error    // reason why nothing more is read: a *ProtocolError or a *FailedError
	inquiry *inquiry // a host: what the nodes at both ends ask each other; nil: nothing so far
}

func (p *endpoint) isProc() bool { return p.peer.Rank != NoRank }
func (p *endpoint) hasOutput() bool {
	return p.out.n > 0 || p.urgent.n > 0 || p.inquiry != nil && p.inquiry.bytes > 0
}

// accepts reports whether the agent queues packets for the endpoint; packets for other endpoints
// are dropped.
func (p *endpoint) accepts() bool { return p.state != gone && !(p.done && p.isProc()) }

// Agent is the packet switch of one host (IMPI ch.3, Packet Protocol). Only one goroutine
// may use it at a time.
type Agent struct {
	self      wire.HostRank
	hosts     []Host
	maxData   uint32
	silent    bool           // the dialect has no FINI
	endpoints []*endpoint    // by host; nil if not needed so far
	locals    []endpoint     // by proc
	first     wire.WorldRank // world rank of the first local proc
	links     []*endpoint
	procs     *directory
	windows   windows
	pool      pool

	running  int // local procs that are not done
	channels int // channels that have not ended in order
	finished bool

	events         []Event
	eventHead      int
	touched, given []LinkID
	stats          Counts
}

// New makes the agent of a host. No link is attached yet; packets for a host or proc
// without a link wait until it is attached. Errors wrap ErrConfig.
func New(c Config) (*Agent, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a := &Agent{
		self:      c.Self,
		hosts:     c.Hosts,
		maxData:   c.MaxData,
		silent:    c.Dialect == wire.Draft,
		endpoints: make([]*endpoint, len(c.Hosts)),
		procs:     newDirectory(c.Procs),
		windows:   newWindows(c.AckMark, c.HiWater),
		pool:      pool{size: c.ChunkSize},
	}
	for h, host := range c.Hosts {
		if wire.HostRank(h) != a.self && !host.Unlinked && !host.OnDemand {
			a.channels++
		}
	}
	a.addLocals()
	a.allDone()
	return a, nil
}

// addLocals makes the endpoints of the local procs, whose ranks are consecutive.
func (a *Agent) addLocals() {
	for r, p := range a.procs.procs.All() {
		if p.Host == a.self {
			if a.running == 0 {
				a.first = r
			}
			a.running++
		}
	}
	a.locals = make([]endpoint, a.running)
	for i := range a.locals {
		r := a.first + wire.WorldRank(i)
		a.locals[i] = endpoint{peer: Peer{Host: a.self, Client: a.hosts[a.self].Client, Rank: r}, id: identityOf(a.procs.procs.At(r).ID), link: NoLink, own: true}
	}
}

// host returns the endpoint of a host, which is made when it is first needed.
func (a *Agent) host(h wire.HostRank) *endpoint {
	if p := a.endpoints[h]; p != nil {
		return p
	}
	p := &endpoint{link: NoLink, own: a.hosts[h].Own, peer: Peer{Host: h, Client: a.hosts[h].Client, Rank: NoRank}}
	if h == a.self || a.hosts[h].Unlinked {
		p.state = gone
	}
	a.endpoints[h] = p
	return p
}

// local returns the endpoint of a local proc, nil if r is not one.
func (a *Agent) local(r wire.WorldRank) *endpoint {
	if i := int(r - a.first); i >= 0 && i < len(a.locals) {
		return &a.locals[i]
	}
	return nil
}

// AttachProc makes l the link to the local proc r. Packets that waited for the proc are queued for
// l.
func (a *Agent) AttachProc(l LinkID, r wire.WorldRank) error {
	p := a.local(r)
	if p == nil {
		return fmt.Errorf("%w: proc %d is not one of host %d", ErrLink, r, a.self)
	}
	return a.attach(l, p)
}

// AttachHost makes l the channel to host h. Its greeting is over (IMPI ch.2, Host-to-host
// connections).
func (a *Agent) AttachHost(l LinkID, h wire.HostRank) error {
	if h < 0 || int(h) >= len(a.hosts) || h == a.self {
		return fmt.Errorf("%w: host %d of %d cannot have a channel to host %d", ErrLink, a.self, len(a.hosts), h)
	}
	p := a.host(h)
	if err := a.attach(l, p); err != nil {
		return err
	}
	if a.running == 0 && !p.ended {
		a.end(p)
	}
	return nil
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
	if a.onDemand(p) && !a.mean(p) {
		return fmt.Errorf("%w: %v comes when everything is over", ErrLink, p.peer)
	}
	for int(l) >= len(a.links) {
		a.links = append(a.links, nil)
	}
	a.links[l] = p
	p.link, p.state = l, open
	if p.hasOutput() {
		a.touch(p)
	}
	a.channelDone(p) // if no FINI is to be sent
	return nil
}

func (a *Agent) lookup(l LinkID) *endpoint {
	if l < 0 || int(l) >= len(a.links) {
		return nil
	}
	return a.links[l]
}
