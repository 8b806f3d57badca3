package node

import (
	"context"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/internal/spawner"
	"github.com/openimpi/impi/internal/spawner/spares"
)

// ownServer returns where the job's server is: of several that the file names, the one where the
// sites have met.
func (n *node) ownServer() (netip.AddrPort, config.Auth) {
	at := n.opt.Site.Server.Address
	if n.server != nil {
		at = n.server.Address()
	} else if n.job != nil && n.job.Server != "" {
		at, _ = netip.ParseAddrPort(n.job.Server) // was checked
	}
	return at, n.opt.Site.Auth
}

// newSpawner makes the spawner that starts procs at this site until ctx ends.
func (n *node) newSpawner(ctx context.Context) *spawner.Spawner {
	if n.spare == nil {
		n.spareSites = spares.NewSpareSites(n.opt.Job, n.log)
	}
	s := spawner.Settings{
		Routes: n.routes, Procs: n.procs, Log: n.log, SpareSites: n.spareSites, SpareTaken: n.spare.taken(),
		NewServer: func(job *config.Job, site config.Site, world string) (spawner.Server, error) {
			return server.Serve(job, site, report.QuietLogger{Logger: n.log.With("world", world)})
		},
		NewNode: func(p *spawner.Local, job *config.Job, site config.Site) spawner.Node {
			opt := Options{Job: job, Site: site, EndNow: n.opt.EndNow, RunBase: n.opt.RunBase, OnDemand: n.opt.OnDemand, spawned: p, root: n}
			if c := p.Cluster(); c != nil {
				opt.Cluster = &client.ClusterConfig{Hosts: c.Hosts, Self: c.Self, Secret: c.Secret, Head: c.Head, Listener: c.Listener}
			}
			return spawnedNode{newNode(opt)}
		},
	}
	if o := n.cluster; o != nil {
		s.Hosts, s.Self, s.ProcsFor, s.Present = o.Hosts, o.Self, o.Procs, o.Present
		s.Ask = func(ctx context.Context, host int, question []byte) ([]byte, error) {
			return o.Ask(ctx, client.Spawning, host, question)
		}
	}
	d := spawner.New(ctx, s)
	if o := n.cluster; o != nil {
		o.AnswerBy(client.Spawning, d.Answer)
		o.StopSpawned = func() {
			d.Stop(ending.RemoteFailure("the head of the site has ended, or has been told to end, all procs"))
		}
	}
	return d
}

// inherit treats the failure of procs that this job has spawned and is connected with as a failure
// of the job. If the job is already over, the failure is passed on to the job that has spawned this
// one, if any.
func (n *node) inherit(o ending.Outcome) {
	passOn := false
	n.end.Report(func(now time.Time, e *ending.Ending) { passOn = e.Inherit(now, o) })
	if passOn && n.opt.spawned != nil {
		n.opt.spawned.Inherit(o)
	}
}

type spawnedNode struct{ *node }

func (n spawnedNode) Run(ctx context.Context) ending.Outcome { return n.life(ctx) }

func (n spawnedNode) Ready() <-chan struct{} { return n.ready }

func (n spawnedNode) Leaving() bool { return n.isReady() && n.procs.Finishing() }

// Signal passes a signal on, unless the procs are not in MPI yet and may have no handler for it.
func (n spawnedNode) Signal(s syscall.Signal) {
	if n.isReady() {
		n.signal(s)
	}
}

// The rest of this file is what differs in a node of a spawned world: its output, its transports
// and the programs of its procs.

// moveIn gives a new node of a spawned world the spawner and the output of the site's own node.
func (n *node) moveIn() {
	root := n.opt.root
	n.spawner = root.spawner
	n.stdout, n.stderr = root.stdout, root.stderr
	n.log = root.log.With("world", n.opt.spawned.World())
}

func (n *node) borrowTransports() {
	root := n.opt.root
	n.routes.Transports, n.routes.Channels = slices.Clone(root.routes.Transports), root.routes.Channels
	n.routes.Drained = root.routes.Drained
	n.routes.CloseRoutes()
}

func (n *node) program(local int) config.Program {
	if s := n.opt.spawned; s != nil {
		return s.Program(local - n.routes.ProcsBefore)
	}
	program, _ := n.opt.Site.ProgramOf(local)
	return program
}

func (n *node) appNum(p *procs.Proc) int {
	if s := n.opt.spawned; s != nil {
		return s.AppNum(p.Local - n.routes.ProcsBefore)
	}
	if n.opt.Joined != nil {
		return p.AppNum
	}
	_, part := n.opt.Site.ProgramOf(p.Local)
	return appNum(n.opt.Job.Sites, n.opt.Site) + part
}

// parent is the port that the procs connect to in Init; empty if nobody has spawned them.
func (n *node) parent() string {
	if s := n.opt.spawned; s != nil {
		return s.Parent()
	}
	return ""
}

// spawnedWorld names the world that the node is of; empty: the site's own.
func (n *node) spawnedWorld() string {
	if s := n.opt.spawned; s != nil {
		return s.World()
	}
	return ""
}
