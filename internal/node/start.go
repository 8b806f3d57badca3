package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/metrics"
	"github.com/openimpi/impi/internal/operator/inspect"
	"github.com/openimpi/impi/internal/operator/reload"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/internal/ui"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// begin opens what tells others of the node, connects the hosts of the site, and begins to start
// the transports; the function that it returns waits for those.
func begin(ctx context.Context, n *node) (transports func() error, err error) {
	if n.dir, err = host.NewRunDir(n.opt.RunBase); err != nil {
		return nil, err
	}
	n.site.Dir = n.dir.Path
	if err := tracesFree(n); err != nil {
		return nil, err
	}
	again := reload.New(reload.Settings{Source: n.opt.File, Routes: n.routes, Log: n.log, Identities: func() []*rendezvous.Identity { return identities(n) }, Renew: func() []string { return renewed(n) }, Applied: n.opt.Reloaded})
	set := inspect.Settings{
		Name: n.name(), Site: n.site, Procs: n.procs, Ready: n.ready, Cluster: n.cluster, Reload: again.Reload, Text: again.Text, Log: n.limiter.Recent,
		Reports: n.recorder != nil, Spawned: n.opt.spawned != nil, Waits: func() string { return waitsFor(n) },
	}
	if n.spare != nil {
		set.Spare = n.spare
	}
	n.control = inspect.Open(set) // before others are waited for
	if err := errors.Join(serveMetrics(n), serveUI(n)); err != nil {
		return nil, err
	}
	transports = func() error { n.borrowTransports(); return nil }
	if n.opt.spawned == nil {
		begun := n.spans.tracer.Begin("transports", n.spans.node)
		ready := n.site.BeginTransports(ctx) // meanwhile this host meets the others
		transports = sync.OnceValue(func() error {
			err := ready()
			begun.End(err)
			return err
		})
	}
	if n.cluster != nil {
		await(n, func() string { return "the other hosts of the site" })
		if err := n.spans.step("hosts meet", func() error { return hostsMeet(ctx, n.cluster) }); err != nil {
			return transports, err
		}
	}
	return transports, nil
}

func (n *node) start(ctx context.Context) (err error) {
	transports, err := begin(ctx, n)
	if transports != nil && n.opt.spawned == nil {
		defer transports() //nolint:errcheck // it is returned below, or another one was first
	}
	if err != nil {
		return err
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
		if without = errors.Is(err, client.ErrWithoutMPI); without {
			return nil
		}
		return err
	})
	if without {
		return n.client.JoinWithoutMPI(ctx)
	}
	if err != nil {
		return err
	}
	await(n, func() string { return sitesAwaited(n) })
	if err := n.spans.step("startup at the server", func() error { return n.client.Join(ctx) }); err != nil {
		return err
	}
	n.job = n.routes.World
	n.spans.met(n.job)
	return n.place()
}

// mostTraced is the maximum number of ranks whose traces are looked at.
const mostTraced = 4096

// tracesFree returns a failure if procs of another job write files now that those of this one would
// write.
func tracesFree(n *node) error {
	calls := n.opt.Site.Trace.Calls
	if calls == "" || n.opt.spawned != nil {
		return nil
	}
	procs := 0
	for i := range n.opt.Job.Sites {
		procs += n.opt.Job.Sites[i].Procs()
	}
	for rank := range min(max(procs, 1), mostTraced) {
		if err := wireup.Claimed(config.TraceFile(calls, rank)); err != nil {
			return ending.Misconfigured(fmt.Errorf("site %s%s: calls cannot be traced: %w: wait for its end, or put %%p, the process ID of the node, into the name of the file", n.opt.Site.Name, onHost(n), err))
		}
	}
	return nil
}

// onHost names the host of a node whose site has others.
func onHost(n *node) string {
	if c := n.opt.Cluster; c != nil {
		return ", host " + c.Hosts[c.Self].String()
	}
	return ""
}

func await(n *node, what func() string) { n.awaits.Store(&what) }

// waitsFor says for whom the node waits in startup; empty: for nobody.
func waitsFor(n *node) string {
	if what := n.awaits.Load(); what != nil {
		return (*what)()
	}
	return ""
}

// sitesAwaited says for whom a site that is itself ready waits.
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
func hostsMeet(ctx context.Context, c *client.Cluster) error {
	if err := c.Open(ctx); err != nil {
		return err
	}
	return c.Count(ctx)
}

// serveMetrics begins to serve metrics if the file wants it. The site's own node serves those of
// the spawned worlds on its host.
func serveMetrics(n *node) (err error) {
	at := n.opt.Site.Metrics
	describe := func(ctx context.Context) *links.Node {
		return n.control.Describe(ctx, links.Request{Account: at.Calls, ByHost: true})
	}
	s := metrics.Settings{Job: n.name(), Site: siteLabel(n), Log: n.log, Describe: describe, State: n.control.NodeState}
	if n.opt.spawned != nil {
		return serveMetricsOfWorld(n, s)
	}
	if !at.Listen.IsValid() {
		return nil
	}
	err = listen.First(n.opt.Site.Ports, at.Listen.Port(), func(port uint16) (taken bool, err error) {
		s.Listen = netip.AddrPortFrom(at.Listen.Addr(), port)
		n.metrics, err = metrics.Serve(s)
		return errors.Is(err, syscall.EADDRINUSE), err
	})
	if err != nil {
		return fmt.Errorf("%v: %w; %s", at.Pos, err, config.ListenRemedy(at.Listen, err))
	}
	n.log.Info("serves metrics", "url", "http://"+n.metrics.Address().String()+"/metrics")
	if !n.opt.Site.Metrics.Calls {
		n.log.Info("the metrics have no calls of MPI and no waits: write calls = true in the metrics block, and procs measure them")
	}
	return nil
}

// serveMetricsOfWorld has the site's own node, if it serves metrics, serve those of a spawned
// world, except for those of its transports, which are that node's.
func serveMetricsOfWorld(n *node, s metrics.Settings) (err error) {
	server, describe := n.opt.root.metrics, s.Describe
	if server == nil {
		return nil
	}
	s.Describe = func(ctx context.Context) *links.Node {
		d := describe(ctx)
		d.Transports = nil
		return d
	}
	n.unserve, err = server.Add(s)
	return err
}

// siteLabel names a node's site among the clients of its job. In a spawned world one site may be
// several of them.
func siteLabel(n *node) string {
	name := n.opt.Site.Name
	if n.opt.spawned == nil {
		return name
	}
	same := 0
	for i := range n.opt.Job.Sites {
		if n.opt.Job.Sites[i].Name == name {
			same++
		}
	}
	if same > 1 {
		name += fmt.Sprintf(".%d", n.opt.Site.Client)
	}
	return name
}

// serveUI begins to serve the page of impi-node ui if the file wants it and this is the head. The
// page's address with its token is in the run directory, for those who may read that.
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
		return fmt.Errorf("%v: %w; %s", at.Pos, err, config.ListenRemedy(at.Listen, err))
	}
	if err := os.WriteFile(filepath.Join(n.dir.Path, ui.FileName), []byte(n.ui.URL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("%v: %w", at.Pos, err)
	}
	n.log.Info("serves a page about the job; impi-node ui prints its address with the token", "address", n.ui.Address())
	return nil
}

// startServer starts the server if it is this site's. Its failure is reported from here, as it may
// come before the node has connected to it.
func (n *node) startServer() (err error) {
	if !n.opt.Site.Server.Embedded {
		return nil
	}
	self := wire.ClientRank(n.opt.Site.Client)
	if n.opt.Server != nil {
		n.server, err = server.ServeAt(n.opt.Server, self, n.opt.Job, n.opt.Site, n.log)
	} else {
		n.server, err = server.ServeFor(self, n.opt.Job, n.opt.Site, n.log)
	}
	if err != nil {
		return err
	}
	n.client.Server = n.server
	go func() {
		if f := n.server.Failure(); f != nil && !ending.OutlivesOwnServer(n.survival.on && n.isReady(), f) {
			n.end.Fail(f)
		}
	}()
	return nil
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

func (n *node) awaitHellos(ctx context.Context) error {
	stop := report.LogWait(n.log, n.deadline, func() string { text, _ := n.procs.Missing(); return text })
	defer stop()
	limit := time.NewTimer(time.Until(n.deadline))
	defer limit.Stop()
	for range n.procs.All() {
		select {
		case <-n.procs.Greeted():
		case <-n.procs.WithoutMPI():
			return client.ErrWithoutMPI
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
