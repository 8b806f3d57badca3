package spawner

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/routes"
)

// Local is the part of a spawned world on one host of this site: procs with a node of their own.
// That node is in the process of the site's node and uses its output and its transports.
type Local struct {
	hostClaim // where its slots are
	spawner   *Spawner
	part      *spawn.Part
	host      config.Host
	programs  []config.Program // by command
	granted   []int            // number of procs, by command

	of *world // the world of this part, if a proc of this node has spawned it

	numbers []int  // by proc: its command among all of the spawn
	runs    []int  // by proc: its command among the part's
	parent  string // the port that the procs connect to
	cluster *Cluster

	// Of the spawner's mu until it has begun.
	ended   bool // it was given up
	node    Node
	cancel  context.CancelCauseFunc
	done    chan struct{}  // closed when its procs have ended; nil: it has not begun
	outcome ending.Outcome // valid when done is closed
}

// start is what the parts of a spawned world have to know of each other. Only their nodes may see
// it, as it has the world's key.
type start struct {
	Server netip.AddrPort `json:"server"`
	Key    uint64         `json:"key"`
	Sites  []string       `json:"sites"` // names, by client
	Client int            `json:"client"`
	Parent string         `json:"parent"` // port
	// Survive reports that the job of the parents continues without procs that are lost, and so
	// does this one.
	Survive bool         `json:"survive,omitempty"`
	Hosts   *clientHosts `json:"hosts,omitempty"` // hosts of the client; nil: it has one
}

// clientHosts are the hosts of a client of a spawned world, which have a node each. The first one
// is their head.
type clientHosts struct {
	Hosts  []int  `json:"hosts"` // their numbers in the site; one of them may be there several times
	Procs  []int  `json:"procs"`
	Self   int    `json:"self"`
	Secret []byte `json:"secret"`         // proves them to each other
	Head   string `json:"head,omitempty"` // where the head accepts the others: "ip:port"; empty at the head
}

const secretSize = 32

// Cluster is this host's place among the hosts of a client of a spawned world.
type Cluster struct {
	Hosts    []config.Host
	Self     int
	Secret   []byte
	Head     string
	Listener net.Listener // the head's
}

// Spawner returns the spawner of the site.
func (p *Local) Spawner() *Spawner { return p.spawner }

// World returns the name of the spawned world.
func (p *Local) World() string { return p.part.World }

// Parent returns the port that the procs connect to in Init.
func (p *Local) Parent() string { return p.parent }

// Program returns the program of a proc, by its number at the host.
func (p *Local) Program(local int) config.Program { return p.programs[p.runs[local]] }

// AppNum returns a proc's MPI_APPNUM.
func (p *Local) AppNum(local int) int { return p.numbers[local] }

// Inherit records a failure of procs that this world itself has spawned, if it comes after the end
// of this world. It passes the failure on to the parents of this world, if they were connected.
func (p *Local) Inherit(o ending.Outcome) {
	if p.state().PassesOn() {
		p.of.parents.Inherit(o)
	}
}

// prepare looks for the programs of a part on a host that this node runs. elsewhere means that
// another site asks for the part. begin or end must be called afterwards.
func (d *Spawner) prepare(at hostClaim, part *spawn.Part, elsewhere bool) (*Local, *spawn.Refusal) {
	own := d.Routes.Site.Hosts
	p := &Local{hostClaim: at, spawner: d, part: part, host: own[min(at.at, len(own)-1)]}
	for i := range part.Commands {
		c := &part.Commands[i]
		program, problem := programOf(d.Routes.Site, c, elsewhere)
		if problem != "" {
			if d.Hosts != nil {
				problem = fmt.Sprintf("on host %s, %s", d.Hosts[at.at], problem)
			}
			return nil, c.Refuse(problem)
		}
		p.programs, p.granted = append(p.programs, program), append(p.granted, c.Procs)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.hostParts[at]; h != nil && at.Host == d.Self {
		p.of = h.of
	}
	d.parts[at] = p
	return p, nil
}

func (d *Spawner) release(p *Local) {
	d.mu.Lock()
	delete(d.running, p)
	delete(d.parts, p.hostClaim)
	d.mu.Unlock()
	d.tellHost(0, &hostRequest{Do: doRelease, Claim: p.claim, At: p.at})
}

// begin starts the procs and their node. At the head of several hosts it returns the address where
// that accepts the others.
func (p *Local) begin(o *start) (head string, err error) {
	d := p.spawner
	p.parent = o.Parent
	if err := p.join(o.Hosts); err != nil {
		return "", err
	}
	if p.cluster != nil && p.cluster.Listener != nil {
		head = p.cluster.Listener.Addr().String()
	}
	for i, n := range p.granted {
		for range n {
			p.runs, p.numbers = append(p.runs, i), append(p.numbers, p.part.Commands[i].Number)
		}
	}
	site := p.asClient(o)
	node := d.NewNode(p, p.job(o, site), site)
	ctx, cancel := context.WithCancelCause(d.tasks)
	d.mu.Lock()
	if p.ended || p.done != nil {
		d.mu.Unlock()
		cancel(nil)
		p.leave()
		return "", fmt.Errorf("%s has begun already, or was cancelled", p.part.World)
	}
	p.node, p.cancel, p.done = node, cancel, make(chan struct{})
	d.running[p] = struct{}{}
	d.mu.Unlock()
	goes := d.tasks.Go(func() {
		defer cancel(nil)
		p.outcome = node.Run(ctx)
		p.leave()
		close(p.done)
		d.release(p)
		d.tellHost(p.claim.Host, &hostRequest{Do: doOver, Claim: p.claim, At: p.at, Failure: tell(p.outcome)})
	})
	if !goes {
		cancel(nil)
		p.leave()
		d.release(p)
		return "", ending.EndedByParents("the node of its host has ended")
	}
	return head, nil
}

// join finds this host's place among those of its client.
func (p *Local) join(x *clientHosts) (err error) {
	if x == nil {
		return nil
	}
	c := &Cluster{Self: x.Self, Secret: x.Secret, Head: x.Head}
	all := p.spawner.hosts()
	for i, h := range x.Hosts {
		c.Hosts = append(c.Hosts, config.Host{Address: all[h].Address, Name: all[h].Name, Procs: x.Procs[i], NoBoard: all[h].NoBoard})
	}
	c.Hosts[c.Self].Address = p.host.Address // as this machine knows it
	if c.Self == 0 {
		c.Listener, err = listen.TCP(p.spawner.tasks, net.ListenConfig{}, netip.AddrPortFrom(p.host.Address, 0), routes.CurrentSite(p.spawner.Routes).Ports)
	}
	p.cluster = c
	return err
}

// leave closes the listener that the head has opened, if there is one.
func (p *Local) leave() {
	if p.cluster != nil && p.cluster.Listener != nil {
		_ = p.cluster.Listener.Close()
	}
}

// Cluster returns this host's place among those of its client, or nil if there is no other host.
func (p *Local) Cluster() *Cluster { return p.cluster }

// whyEnded says why the procs, which have ended, were not all in Init, and which proc of the client
// is to blame, if one is: its number at the site, counted from 1.
func (p *Local) whyEnded() (*spawn.Refusal, int) {
	f := p.outcome.Failure
	if f == nil {
		return spawn.Refuse(-1, "%s ended", p.part.World), 0
	}
	return spawn.Refuse(-1, "%s", f.Text), f.Proc
}

func (p *Local) end(f *ending.Failure) {
	p.spawner.mu.Lock()
	cancel := p.cancel
	p.ended = true
	p.spawner.mu.Unlock()
	if cancel == nil {
		p.spawner.release(p)
		return
	}
	cancel(f)
}

func (p *Local) asClient(o *start) config.Site {
	site := *routes.CurrentSite(p.spawner.Routes)
	site.Client, site.Spare = o.Client, false
	site.Server = config.Server{Address: o.Server, Ours: true, TLS: site.Server.TLS}
	site.Auth = config.Auth{Keyed: true, Key: o.Key}
	site.Hosts = []config.Host{{Address: p.host.Address, Procs: len(p.runs), NoBoard: p.host.NoBoard}}
	if p.cluster != nil {
		site.Hosts = p.cluster.Hosts
	}
	site.Program = config.Program{Path: p.programs[0].Path, Stdin: -1} // for messages; see Program
	site.Log.Trace, site.Trace.Calls = p.ofWorld(site.Log.Trace), p.ofWorld(site.Trace.Calls)
	return site
}

// ofWorld is a pattern of files, of which each proc has one, for those of the spawned world.
func (p *Local) ofWorld(pattern string) string {
	if pattern == "" || strings.Contains(pattern, "%r") {
		return strings.ReplaceAll(pattern, "%r", p.part.World+".%r")
	}
	return pattern + "." + p.part.World + ".%r"
}

// job is the spawned world as far as the site's file knows the others of it.
func (p *Local) job(o *start, own config.Site) *config.Job {
	of := p.spawner.Routes.Job
	job := of.ForWorld(p.part.World)
	job.Survive, job.Limits = o.Survive, routes.CurrentLimits(p.spawner.Routes)
	for client, name := range o.Sites {
		site, ok := of.Site(name)
		switch {
		case client == o.Client:
			site = own
		case !ok:
			site = config.Site{Name: name}
		}
		site.Client = client
		job.Sites = append(job.Sites, site)
	}
	return job
}

// leaving reports whether procs of the part may be about to end, since they have disconnected from
// their parents or some have finished. The caller holds the spawner's mu.
func (p *Local) leaving() bool {
	return p.state().Leaving(p.node != nil && p.node.Leaving())
}

// state returns the state of the part's world, which only the node knows that has spawned it.
func (p *Local) state() (s spawn.State) {
	if p.of != nil {
		s = p.of.state()
	}
	return s
}
