package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/channel"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/connmgr/meet"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/metrics"
	"github.com/openimpi/impi/internal/operator/inspect"
	"github.com/openimpi/impi/internal/operator/probe"
	"github.com/openimpi/impi/internal/operator/record"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/site/nativelaunch"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/internal/spawner"
	"github.com/openimpi/impi/internal/spawner/spares"
	"github.com/openimpi/impi/internal/ui"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
)

type node struct {
	opt      Options
	log      hclog.Logger
	spawner  *spawner.Spawner // of the site; the nodes of spawned worlds share it
	deadline time.Time        // for everything until all sites are connected
	end      *lifetime.Lifetime
	launcher *launch.Launcher
	dir      *host.RunDir
	stdout   *launch.Output
	stderr   *launch.Output

	cluster *client.Cluster // hosts of the site on other machines; nil: there are none
	routes  *routes.Table
	site    *site.Site
	hosts   []*ownHost // hosts of the site, with their packet switches
	procs   *procs.Set
	native  *nativelaunch.Launch // what starts the procs of a native site; nil: the node does

	server *server.Server // embedded; nil if it runs elsewhere
	client *client.Client

	listening  chan struct{} // closed when all listeners are open
	ready      chan struct{} // closed when the procs run in MPI
	job        *startup.Job
	table      *os.File        // what procs get of the job; open until all have it
	world      []byte          // head of the job's description for other worlds; nil: it cannot meet any
	tasks      *lifetime.Group // tasks that end when the procs are gone; nil until startup is over
	direct     *direct.Links
	channels   *channel.Channels
	meetings   *meet.Meetings
	prober     *probe.Prober
	parents    *spawner.Parents   // the procs as parents of spawned worlds
	spareSites *spares.SpareSites // the job's spare sites; nil: the node is of one, or of a spawned world
	spare      *spareNode         // nil: this is not the node of a spare site
	fallBacks  dial.FallBacks
	control    *inspect.Control
	metrics    *metrics.Server  // nil: none are served
	unserve    func()           // of a spawned world whose metrics are served: ends that
	recorder   *record.Recorder // nil: no record of the job is written
	ui         *ui.Server       // nil: no page is served
	spans      spans
	survival   survival

	awaits atomic.Pointer[func() string] // returns what the present step of startup waits for

	limiter *loglimit.Limiter // of log; nil if it is not the node's own
}

// Run runs a site from the start of its plugins to the end of its procs. It
// returns nil when every proc has ended in order, and otherwise a *ending.Failure,
// which all sites of the job report alike. Nothing that it started is left then.
//
// The end of ctx ends the job: procs are told, then signalled, then killed.
func Run(ctx context.Context, opt Options) error {
	if o := newNode(opt).life(ctx); o.Failure != nil {
		return o.Failure
	}
	return nil
}

func (n *node) life(ctx context.Context) (o ending.Outcome) {
	if n.opt.spawned == nil {
		n.spawner = n.newSpawner(ctx)
		defer n.spawner.Stop(nil)
		defer context.AfterFunc(ctx, n.cluster.Stop)() // the spawner's context ends with it here
	}
	n.end, ctx = lifetime.New(ctx)
	n.procs.End = n.end
	if n.native != nil {
		n.native.End = n.end
	}
	n.client = client.New(client.Settings{
		Runs:   n.ready,
		Routes: n.routes, Site: n.site, Procs: n.procs, End: n.end, Log: n.log,
		Deadline: n.deadline, EndNow: n.opt.EndNow, Spawned: n.opt.spawned != nil, Cluster: n.cluster, OnDemand: n.opt.OnDemand,
	})
	if n.cluster != nil {
		n.cluster.End = n.end
		n.end.OnLate = n.cluster.ReportLate
	}
	if n.opt.spawned == nil {
		defer n.passSignals()()
		defer reloads(ctx, n)()
	}
	n.recorder = newRecorder(n)
	if err := routes.MeasuredProblem(n.opt.Site); err != nil {
		n.log.Warn("what earlier jobs have measured is not known", "error", err)
	}
	err := lives(ctx, n)
	f := n.verdict(ctx, err)
	n.recorder.CollectOwnSite()
	if f != nil {
		f.Early = !n.isReady()
		if n.opt.Failing != nil {
			n.opt.Failing(f)
		}
	}
	n.shutDown(f)
	f = n.native.WithReason(f)
	n.limiter.Close()
	incomplete := n.sayLosses()
	n.end.Report(func(_ time.Time, e *ending.Ending) { o = e.Conclude(f) })
	n.survival.sum(&o)
	if o.Failure == nil {
		o.Failure = incomplete
	}
	n.recorder.Write(o)
	n.spans.over(n, o)
	return o
}

// lastLook bounds how long to wait at the end for the answers of other sites that a report needs.
// Tests raise it, as their machines are slow.
var lastLook = 2 * time.Second

// newRecorder returns nil if no report is wanted, or another node writes it.
func newRecorder(n *node) *record.Recorder {
	if n.spare != nil || !n.cluster.IsHead() {
		return nil
	}
	return record.New(record.Settings{Job: n.opt.Job, Name: n.name(), Site: siteLabel(n), Routes: n.routes, Log: n.log, Patience: lastLook})
}

func newNode(opt Options) *node {
	n := &node{
		opt: opt, log: opt.Logger,
		launcher:  launch.New(),
		listening: make(chan struct{}), ready: make(chan struct{}),
		deadline: time.Now().Add(opt.Job.Limits.Start - opt.Waited),
	}
	n.survival.n, n.survival.on = n, opt.Job.Survive && !opt.Site.Spare
	if opt.Site.Spare && opt.spawned == nil {
		n.spare = newSpareNode(n)
		opt = n.opt
	}
	n.routes = &routes.Table{Job: n.opt.Job, Site: &n.opt.Site, Drained: &routes.Drained{}}
	n.fallBacks.Routes = n.routes
	if n.opt.spawned != nil {
		n.moveIn()
		if c := opt.Cluster; c != nil {
			n.cluster = &client.Cluster{
				ClusterConfig: *c, Routes: n.routes, Log: n.log, Deadline: n.deadline, Ready: n.ready, Spawned: n.spawnedWorld(),
				Signal: func(syscall.Signal) {}, StopSpawned: func() {}, // the hosts of the site do this
			}
			n.cluster.KeepOwnHost()
		}
	} else {
		stdout, stderr := client.NewRedirect(opt.Stdout), client.NewRedirect(opt.Stderr)
		n.stdout = launch.NewOutput(stdout, n.outputLost)
		n.stderr = newStderr(stderr)
		if n.log == nil {
			n.log, n.limiter = report.NewLogger(opt.Site.Log, n.stderr)
		}
		n.log = n.log.With("site", opt.Site.Name)
		if c := opt.Cluster; c != nil {
			n.log = n.log.With("host", c.Hosts[c.Self].String())
			n.cluster = &client.Cluster{
				ClusterConfig: *c, Routes: n.routes, Log: n.log, Deadline: n.deadline, Ready: n.ready, Signal: n.signal,
				Stdin: opt.Stdin, Stdout: n.stdout, Stderr: n.stderr, Redirects: [2]*client.Redirect{stdout, stderr},
			}
			n.cluster.KeepOwnHost()
		}
	}
	n.fallBacks.Log = n.log
	n.spans = newSpans(n)
	n.site = &site.Site{Routes: n.routes, Log: n.log}
	n.procs = procs.New(procs.Settings{
		BoundBefore: opt.BoundBefore, Bound: opt.Bound,
		Routes: n.routes, World: n.spawnedWorld(), Program: n.program,
		Stdin: opt.Stdin, Stdout: n.stdout, Stderr: n.stderr,
		MayDoWithout: opt.spawned == nil && opt.Joined == nil && opt.Site.Native == nil && opt.Job.Complete && len(opt.Job.All()) == 1,
		Launcher:     n.launcher, Joined: opt.Joined, KillNow: opt.EndNow, Log: n.log, Events: n,
	})
	if n.survival.on {
		n.procs.Losses = &n.survival
		if n.cluster != nil {
			n.cluster.ContinueWithout = n.survival.loseHosts
		}
	}
	if !n.cluster.IsHead() {
		n.procs.Input = n.cluster.Input
	}
	if n.opt.spawned == nil {
		n.native = nativelaunch.New(nativelaunch.Settings{
			Routes: n.routes, Cluster: n.cluster, Procs: n.procs, Launcher: n.launcher, Deadline: n.deadline, Log: n.log,
			Lost: n.survival.lostLauncher,
		})
	}
	return n
}

// outputLost ends a job whose output nobody takes any more.
func (n *node) outputLost(err error) {
	if !n.cluster.IsHead() {
		return // the head is lost, or has ended the job
	}
	f := ending.NodeFailed(fmt.Errorf("the output of site %s cannot be written: %w", n.opt.Site.Name, err))
	if errors.Is(err, syscall.EPIPE) {
		f.Status = 128 + int(syscall.SIGPIPE)
	}
	n.end.Fail(f)
	n.spawner.Stop(f)
	n.cluster.Stop()
}

func lives(ctx context.Context, n *node) error {
	if n.spare != nil {
		return n.spare.run(ctx)
	}
	return n.run(ctx)
}

// run does the steps of a job that goes well, one after the other. When the job fails, its context
// ends and with it the step.
func (n *node) run(ctx context.Context) error {
	if err := n.start(ctx); errors.Is(err, client.ErrWithoutMPI) {
		n.log.Debug("the program has ended without calling MPI Init")
		return n.client.Leave(ctx, n.native.Finish)
	} else if err != nil {
		return err
	}
	arrivals := n.open(ctx)
	n.channels.WarnOfOthers()
	for _, h := range n.hosts {
		for _, l := range h.Direct { // channels come there, too
			arrivals.Serve(l)
		}
		n.direct.Prove(h.Rank)
	}
	var channels []map[wire.HostRank]link.Link
	if err := n.spans.step("dance", func() (err error) { channels, err = n.channels.Connect(ctx); return err }); err != nil {
		return err
	}
	for i, h := range n.hosts {
		if n.channels.KeepsListening(i) {
			arrivals.Serve(n.site.ChannelListener(h.Host))
		} else {
			_ = h.Channel.Close() // nobody else is to come
		}
	}
	if err := n.spans.step("wireup", func() error { return n.startSwitches(channels) }); err != nil {
		return err
	}
	level := hclog.Info
	if n.job.Size() == 1 {
		level = hclog.Debug // no other sites to wait for
	}
	n.log.Log(level, "the job runs", "procs", n.job.Procs.Len(), "sites", sitesOf(n.job, n.routes), "first_rank", n.job.Clients[n.job.Self].FirstProc, "node_pid", os.Getpid())
	n.control.SetRunning(n.running())
	close(n.ready)
	client.SurviveLosses(n.cluster)
	n.control.WriteJobID()
	n.recorder.Begin(ctx, n.control)
	return n.spans.step("run", func() error { return n.finish(ctx) })
}

// sitesOf is how many sites have procs of a job. In a spawned world one may be several clients.
func sitesOf(job *startup.Job, rt *routes.Table) int {
	names := make(map[string]bool)
	others := 0 // sites that the file does not have
	for client := range job.Clients {
		if name := rt.SiteName(client); name != "" {
			names[name] = true
		} else {
			others++
		}
	}
	return len(names) + others
}

// isReady reports whether the procs run, so that what startup has set may be read.
func (n *node) isReady() bool {
	select {
	case <-n.ready:
		return true
	default:
		return false
	}
}
