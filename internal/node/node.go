package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/metrics"
	"github.com/openimpi/impi/internal/node/channel"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/direct"
	"github.com/openimpi/impi/internal/node/inspect"
	"github.com/openimpi/impi/internal/node/lifetime"
	"github.com/openimpi/impi/internal/node/meet"
	"github.com/openimpi/impi/internal/node/member"
	"github.com/openimpi/impi/internal/node/nativelaunch"
	"github.com/openimpi/impi/internal/node/probe"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/reload"
	"github.com/openimpi/impi/internal/node/report"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/server"
	"github.com/openimpi/impi/internal/node/site"
	"github.com/openimpi/impi/internal/node/spawner"
	"github.com/openimpi/impi/internal/node/tasks"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/internal/ui"
	"github.com/openimpi/impi/plugins/host"
)

// node is one site's agent process.
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

	cluster *member.Cluster // hosts of the site on other machines; nil: there are none
	routes  *routes.Table
	site    *site.Site
	hosts   []*ownHost // of the site, with their packet switches
	procs   *procs.Set
	native  *nativelaunch.Launch // what starts the procs of a native site; nil: the node does

	server *server.Server // embedded; nil if it runs elsewhere
	member *member.Member

	listening chan struct{} // closed when all listeners are open
	ready     chan struct{} // closed when the procs run in MPI
	job       *startup.Job
	table     *os.File     // what procs get of job; open until they have it
	world     []byte       // the head of what describes the job to other worlds; nil: it cannot meet any
	tasks     *tasks.Group // that end when the procs are gone; nil until startup is over
	direct    *direct.Links
	channels  *channel.Channels
	meetings  *meet.Meetings
	prober    *probe.Prober
	parents   *spawner.Parents // the procs as those who spawn
	fallBacks dial.FallBacks
	control   *inspect.Control
	metrics   *metrics.Server // nil: none are served
	recorder  *recorder       // nil: nothing is to be left of the job
	ui        *ui.Server      // nil: no page is served
	spans     spans

	awaits atomic.Pointer[func() string] // says what the step of startup waits for, of those that wait for others

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

// life runs the node to its end, and says how the job has ended for it.
func (n *node) life(ctx context.Context) (o ending.Outcome) {
	if n.opt.spawned == nil {
		n.spawner = n.newSpawner(ctx)
		defer n.spawner.Stop(nil)
		defer context.AfterFunc(ctx, n.cluster.Stop)() // as the spawner's ends with it here
	}
	n.end, ctx = lifetime.New(ctx)
	n.procs.End = n.end
	if n.native != nil {
		n.native.End = n.end
	}
	n.member = member.New(member.Settings{
		Runs:   n.ready,
		Routes: n.routes, Site: n.site, Procs: n.procs, End: n.end, Log: n.log,
		Deadline: n.deadline, Now: n.opt.Now, Spawned: n.opt.spawned != nil, Cluster: n.cluster,
	})
	if n.cluster != nil {
		n.cluster.End = n.end
		n.end.OnLate = n.cluster.Late
	}
	if n.opt.spawned == nil {
		defer n.passSignals()()
		defer reloads(ctx, n)()
	}
	n.recorder = newRecorder(n)
	err := n.run(ctx)
	f := n.verdict(ctx, err)
	n.recorder.ending()
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
	n.end.Report(func(_ time.Time, e *ending.Ending) { o = e.Over(f) })
	if o.Failure == nil {
		o.Failure = incomplete
	}
	n.recorder.write(o)
	n.spans.over(n, o)
	return o
}

func newNode(opt Options) *node {
	n := &node{
		opt: opt, log: opt.Logger,
		launcher:  launch.New(),
		listening: make(chan struct{}), ready: make(chan struct{}),
		deadline: time.Now().Add(opt.Job.Limits.Start - opt.Waited),
	}
	n.routes = &routes.Table{Job: opt.Job, Site: &n.opt.Site, Drained: &routes.Drained{}}
	n.fallBacks.Routes = n.routes
	if n.opt.spawned != nil {
		n.moveIn()
		if c := opt.Cluster; c != nil {
			n.cluster = &member.Cluster{
				ClusterConfig: *c, Routes: n.routes, Log: n.log, Deadline: n.deadline, Ready: n.ready, Spawned: n.spawnedWorld(),
				Signal: func(syscall.Signal) {}, StopSpawned: func() {}, // by the hosts of the site
			}
			n.cluster.Place()
		}
	} else {
		stdout, stderr := member.NewRedirect(opt.Stdout), member.NewRedirect(opt.Stderr)
		n.stdout = launch.NewOutput(stdout, n.outputLost)
		n.stderr = newStderr(stderr)
		if n.log == nil {
			n.log, n.limiter = report.NewLogger(opt.Site.Log, n.stderr)
		}
		n.log = n.log.With("site", opt.Site.Name)
		if c := opt.Cluster; c != nil {
			n.log = n.log.With("host", c.Hosts[c.Self].String())
			n.cluster = &member.Cluster{
				ClusterConfig: *c, Routes: n.routes, Log: n.log, Deadline: n.deadline, Ready: n.ready, Signal: n.signal,
				Stdin: opt.Stdin, Stdout: n.stdout, Stderr: n.stderr, Redirects: [2]*member.Redirect{stdout, stderr},
			}
			n.cluster.Place()
		}
	}
	n.fallBacks.Log = n.log
	n.spans = newSpans(n)
	n.site = &site.Site{Routes: n.routes, Log: n.log}
	n.procs = procs.New(procs.Settings{
		BoundBefore: opt.BoundBefore, Bound: opt.Bound,
		Routes: n.routes, World: n.spawnedWorld(), Program: n.program,
		Stdin: opt.Stdin, Stdout: n.stdout, Stderr: n.stderr,
		MayDoWithout: opt.spawned == nil && opt.Joined == nil && opt.Site.Native == nil && opt.Job.Complete && len(opt.Job.Sites) == 1,
		Launcher:     n.launcher, Joined: opt.Joined, Now: opt.Now, Log: n.log, Events: n,
	})
	if !n.cluster.IsHead() {
		n.procs.Input = n.cluster.Input
	}
	if n.opt.spawned == nil {
		n.native = nativelaunch.New(nativelaunch.Settings{
			Routes: n.routes, Cluster: n.cluster, Procs: n.procs, Launcher: n.launcher, Deadline: n.deadline, Log: n.log,
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

// run does the steps of a job that goes well, one after the other. When the job fails, its context ends
// and with it the step.
func (n *node) run(ctx context.Context) error {
	if err := n.start(ctx); errors.Is(err, member.ErrWithoutMPI) {
		n.log.Debug("the program has ended without calling MPI Init")
		return n.member.Leave(ctx, n.native.Finish)
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
		level = hclog.Debug // there was nobody to wait for
	}
	n.log.Log(level, "the job runs", "procs", n.job.Procs.Len(), "sites", sitesOf(n.job, n.routes), "first_rank", n.job.Clients[n.job.Self].FirstProc, "node_pid", os.Getpid())
	n.control.Run(n.running())
	close(n.ready)
	n.control.TellJob()
	n.recorder.begin(ctx)
	return n.spans.step("run", func() error { return n.finish(ctx) })
}

// sitesOf is how many sites have procs of a job. In a spawned world one may be several clients.
func sitesOf(job *startup.Job, rt *routes.Table) int {
	names := make(map[string]bool)
	others := 0 // that the file does not know
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

// serveMetrics begins to serve metrics if the file wants it. Those of a spawned world are not
// served, as its node is beside that of the site.
func serveMetrics(n *node) (err error) {
	at := n.opt.Site.Metrics
	if !at.Listen.IsValid() || n.opt.spawned != nil {
		return nil
	}
	describe := func(ctx context.Context) *links.Node {
		return n.control.Describe(ctx, links.Request{Account: at.Calls})
	}
	s := metrics.Settings{Job: n.name(), Site: n.opt.Site.Name, Log: n.log, Describe: describe, Phase: n.control.Phase}
	err = listen.First(n.opt.Site.Ports, at.Listen.Port(), func(port uint16) (taken bool, err error) {
		s.Listen = netip.AddrPortFrom(at.Listen.Addr(), port)
		n.metrics, err = metrics.Serve(s)
		return errors.Is(err, syscall.EADDRINUSE), err
	})
	if err != nil {
		return fmt.Errorf("%v: %w: choose another listen, or port 0 for any", at.Pos, err)
	}
	n.log.Info("serves metrics", "url", "http://"+n.metrics.Address().String()+"/metrics")
	return nil
}

// serveUI begins to serve the page of impi-node ui if the file wants it and this is the head. Who may
// read the run directory finds the page's address with its token there.
func serveUI(n *node) (err error) {
	at := n.opt.Site.UI
	if !at.Listen.IsValid() || n.opt.spawned != nil || !n.cluster.IsHead() {
		return nil
	}
	dir := []string{n.dir.Path}
	look := func(ctx context.Context) []status.Job { return ui.Ask(ctx, dir) }
	await := func(ctx context.Context, id string) *links.Ending { return links.AwaitEnding(ctx, dir, id) }
	err = listen.First(n.opt.Site.Ports, at.Listen.Port(), func(port uint16) (taken bool, err error) {
		n.ui, err = ui.Serve(netip.AddrPortFrom(at.Listen.Addr(), port), look, await)
		return errors.Is(err, syscall.EADDRINUSE), err
	})
	if err != nil {
		return fmt.Errorf("%v: %w: choose another listen, or port 0 for any", at.Pos, err)
	}
	if err := os.WriteFile(filepath.Join(n.dir.Path, ui.FileName), []byte(n.ui.URL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("%v: %w", at.Pos, err)
	}
	n.log.Info("serves a page about the job; impi-node ui prints its address with the token", "address", n.ui.Address())
	return nil
}

// start does everything up to the end of startup.
func (n *node) start(ctx context.Context) (err error) {
	if n.dir, err = host.NewRunDir(n.opt.RunBase); err != nil {
		return err
	}
	n.site.Dir = n.dir.Path
	again := reload.New(reload.Settings{Source: n.opt.File, Routes: n.routes, Log: n.log, Identities: func() []*rendezvous.Identity { return identities(n) }, Renew: func() []string { return renewed(n) }, Applied: n.opt.Reloaded})
	n.control = inspect.Open(inspect.Settings{
		Name: n.name(), Site: n.site, Procs: n.procs, Ready: n.ready, Cluster: n.cluster, Reload: again.Reload, Text: again.Text, Log: n.limiter.Recent,
		Reports: n.recorder != nil, Waits: func() string { return waitsFor(n) },
	}) // before others are waited for
	if err := errors.Join(serveMetrics(n), serveUI(n)); err != nil {
		return err
	}
	transports := func() error { n.borrowTransports(); return nil }
	if n.opt.spawned == nil {
		begun := n.spans.tracer.Begin("transports", n.spans.node)
		ready := n.site.BeginTransports(ctx) // meanwhile this host meets the others
		transports = sync.OnceValue(func() error {
			err := ready()
			begun.End(err)
			return err
		})
		defer transports() //nolint:errcheck // it is returned below, or another one was first
	}
	if n.cluster != nil {
		await(n, func() string { return "the other hosts of the site" })
		if err := n.spans.step("hosts meet", func() error { return hostsMeet(ctx, n.cluster) }); err != nil {
			return err
		}
	}
	if err := n.spans.step("server starts", n.startServer); err != nil {
		return err
	}
	if err := transports(); err != nil {
		return err
	}
	if err := n.spans.step("listen", func() error { return n.site.Listen(ctx) }); err != nil {
		return err
	}
	for _, h := range n.site.Hosts {
		n.hosts = append(n.hosts, &ownHost{Host: h, finished: make(chan struct{})})
	}
	close(n.listening)
	if err := n.spans.step("procs start", func() error { return startProcs(ctx, n) }); err != nil {
		return err
	}
	without := false
	await(n, func() string { text, _ := n.procs.Missing(); return text })
	err = n.spans.step("MPI_Init", func() error {
		err := n.awaitHellos(ctx)
		if without = errors.Is(err, member.ErrWithoutMPI); without {
			return nil
		}
		return err
	})
	if without {
		return n.member.JoinWithoutMPI(ctx)
	}
	if err != nil {
		return err
	}
	await(n, func() string { return sitesAwaited(n) })
	if err := n.spans.step("startup at the server", func() error { return n.member.Join(ctx) }); err != nil {
		return err
	}
	n.job = n.routes.World
	n.spans.met(n.job)
	return n.place()
}

// await notes what says for whom the node waits from now on.
func await(n *node, what func() string) { n.awaits.Store(&what) }

// waitsFor says for whom the node waits in startup; empty: for nobody.
func waitsFor(n *node) string {
	if what := n.awaits.Load(); what != nil {
		return (*what)()
	}
	return ""
}

// sitesAwaited says for whom a site waits that is ready itself.
func sitesAwaited(n *node) string {
	if n.server != nil {
		if names := n.server.WaitingFor(wire.ClientRank(n.opt.Site.Client)); names != "" {
			return names
		}
	}
	if n.cluster != nil {
		return "the other hosts of the site, and the other sites"
	}
	return "the server and the other sites"
}

// hostsMeet connects the hosts of a site on several machines, and counts their procs.
func hostsMeet(ctx context.Context, c *member.Cluster) error {
	if err := c.Open(ctx); err != nil {
		return err
	}
	return c.Count(ctx)
}

// startProcs starts the procs, or has the launcher of the site's own MPI do that.
func startProcs(ctx context.Context, n *node) (err error) {
	if n.native != nil {
		n.native.Dir = n.dir.Path
		if n.procs.Joined, err = n.native.Start(ctx); err != nil {
			return err
		}
	}
	return n.procs.Start()
}

// startServer starts the server if it is this site's. Its failure is reported from here, as it may come
// before the node has connected to it.
func (n *node) startServer() (err error) {
	if !n.opt.Site.Server.Embedded {
		return nil
	}
	if n.server, err = server.ServeFor(wire.ClientRank(n.opt.Site.Client), n.opt.Job, n.opt.Site, n.log); err != nil {
		return err
	}
	n.member.Server = n.server
	go func() {
		if f := n.server.Failure(); f != nil {
			n.end.Fail(f)
		}
	}()
	return nil
}

// awaitHellos waits until all procs are in Init.
func (n *node) awaitHellos(ctx context.Context) error {
	stop := report.While(n.log, n.deadline, func() string { text, _ := n.procs.Missing(); return text })
	defer stop()
	limit := time.NewTimer(time.Until(n.deadline))
	defer limit.Stop()
	for range n.procs.All() {
		select {
		case <-n.procs.Greeted():
		case <-n.procs.WithoutMPI():
			return member.ErrWithoutMPI
		case <-limit.C:
			who, first := n.procs.Missing()
			f := ending.TimedOut("site %s: %v passed while waiting for %s: the program must call it, or end before", n.opt.Site.Name, n.opt.Job.Limits.Start, who)
			f.Proc = n.routes.ProcsBefore + first + 1
			return f
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// finish waits until all packets are delivered, then for the end of the procs, then for that of the job
// at the server.
func (n *node) finish(ctx context.Context) error {
	for _, h := range n.hosts {
		select {
		case <-h.finished:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	n.recorder.last(ctx)
	for _, p := range n.procs.All() {
		select {
		case <-p.Judged():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return n.member.Leave(ctx, n.native.Finish)
}

// verdict returns the failure of the job, nil if there is none, by the error of run. A step may
// have failed as a consequence of something else: the ending decides what is to blame.
func (n *node) verdict(ctx context.Context, err error) *ending.Failure {
	if err == nil {
		n.end.Close()
		return nil
	}
	var f *ending.Failure
	if ctx.Err() == nil && !errors.As(err, &f) {
		f = ending.NodeFailed(fmt.Errorf("site %s: %w", n.opt.Site.Name, err))
	}
	if f != nil {
		n.end.Fail(f)
	}
	<-ctx.Done()
	n.end.Close()
	if f := lifetime.Of(ctx); f != nil {
		return f
	}
	return lifetime.Interrupted(n.opt.Site.Name, context.Cause(ctx))
}

// shutDown ends everything that the node has started. If there is a failure f, the other sites are told
// first.
func (n *node) shutDown(f *ending.Failure) {
	declined := n.member.Decline(f)
	if f != nil {
		n.log.Debug("ending", "reason", f.Text)
		n.member.Resign(f)
	}
	n.cluster.Over(f)
	if f != nil {
		n.procs.Tell(f.Text, f.Status)
	}
	if n.metrics != nil {
		n.metrics.Close()
	}
	if n.control != nil {
		failure := ""
		if f != nil {
			failure = f.Text
		}
		n.control.End.Tell(n.opt.Site.Name, failure)
	}
	if n.ui != nil {
		n.ui.Drain() // what the page wants to know is asked at the control socket
		n.ui.Close()
	}
	if n.control != nil {
		n.control.Close()
	}
	if n.parents != nil && f != nil {
		n.parents.Failed(f)
	}
	n.stopSwitches(f)
	n.procs.Stop()
	n.native.Stop()
	if n.tasks != nil {
		n.tasks.Close()
		n.meetings.Close()
	}
	if n.opt.spawned == nil {
		leave := n.cluster.Linger()
		n.spawner.Wait(n.cluster.AwaitBelow)
		leave()
	}
	n.site.Close()
	if n.opt.spawned == nil { // they are the site's
		n.site.StopTransports()
	}
	n.cluster.Close()
	<-declined
	if n.server != nil {
		n.server.Close()
	}
	n.launcher.Close()
	if n.dir != nil {
		if err := n.dir.Close(); err != nil {
			n.log.Warn("cannot remove the runtime directory", "error", err)
		}
	}
}
