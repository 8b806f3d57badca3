package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/node"
)

// runJob runs a job: one site in this process, or a process for each of several sites.
func runJob(o *options, std streams) int {
	signals, stop := passedOn() // before anything else: an unhandled signal would end this process
	defer stop()
	keepHangup()
	h, err := takeHandoff()
	if err != nil {
		complain(std.err, err)
		return ending.StatusNode
	}
	job, told, found := prepare(o, h, std)
	if h == nil || found.HasErrors() {
		show(std.err, found) // the launcher has shown the warnings
	}
	if found.HasErrors() && !found.OfMachine() {
		return statusUsage
	}
	if h == nil {
		if err := toHead(o, job); err != nil {
			complain(std.err, err)
			return ending.StatusNode
		}
	}
	if o.file == "" {
		if err := job.CheckRecords(true); err != nil {
			show(std.err, fault(err))
			return statusUsage
		}
	}
	sites, err := choose(job, o.site)
	if err == nil && h == nil && o.site != "" {
		err = checkAlone(job, sites[0])
	}
	if err != nil {
		complain(std.err, err)
		return statusUsage
	}
	nodes, err := nodesOf(sites, o.host)
	if err != nil {
		complain(std.err, err)
		return statusUsage
	}
	if found.HasErrors() && slices.ContainsFunc(nodes, func(p nodeSpec) bool { return p.alone() }) {
		return statusUsage
	}
	if len(nodes) > 1 {
		return launchSites(o, job, nodes, told, signals, std)
	}
	p := nodes[0]
	p.fault = found.Err()
	p.source = o.source(job, p.site.Name, told.Addresses)
	o.apply(&p.site)
	if h != nil {
		h.apply(&p.site)
		p.reloaded, p.lost = h.reloaded, h.lost
		return h.report(runNode(o, job, p, h.order, signals, std))
	}
	drawKey(&p.site.Auth)
	return conclude(runNode(o, job, p, told, signals, std), std)
}

func checkAlone(job *config.Job, site config.Site) error {
	switch {
	case len(job.All()) == 1 && !site.Spare:
		return nil
	case site.Auth.Random:
		return fmt.Errorf("site %s has no key in common with the others: add auth \"key\" { file = \"job.key\" } to the block job, or run all sites with one command, without -site", site.Name)
	case site.Server.Address.Port() == 0:
		return fmt.Errorf("site %s and the others do not know the server's port: write embedded_server { listen = \"%v:7800\" }, or run all sites with one command, without -site", site.Name, site.Server.Address.Addr())
	}
	return nil
}

// prepare reads the job file, or makes the job for a command line without one. A launcher has
// checked the ports already, and may have opened one; h is its message, or nil. told is what this
// process tells the nodes that it starts.
func prepare(o *options, h *handoff, std streams) (job *config.Job, told order, found config.Diagnostics) {
	isLocal, err := local()
	if err != nil {
		return nil, told, fault(err)
	}
	if o.file == "" {
		if job, found = withoutFile(o); o.on == "" || found.HasErrors() {
			return job, told, found
		}
		if told.Addresses, told.Waited, found = lookUpIn(o, job, isLocal, std); !found.HasErrors() {
			found = fault(resolve(job, told.Addresses, isLocal))
		}
		return job, told, found
	}
	ports := allPorts
	if h != nil {
		told.Addresses, ports = h.order.Addresses, nil
	} else if told.Addresses, told.Waited, found = lookUp(o, isLocal, std); found.HasErrors() {
		return nil, told, found
	}
	if h == nil && o.site != "" {
		ports = portsOf(o.file, o.site, o.host, isLocal, told.Addresses)
	}
	job, found = load(context.Background(), o.file, isLocal, told.Addresses, ports, o.site, false)
	return job, told, found
}

func fault(err error) config.Diagnostics {
	if err == nil {
		return nil
	}
	return config.Diagnostics{{Severity: config.Error, Problem: err.Error()}}
}

// withoutFile makes the job for a command line without a job file. Hosts may lack their addresses.
func withoutFile(o *options) (*config.Job, config.Diagnostics) {
	job, found := programsOf(o)
	if job != nil && !found.HasErrors() {
		found = fault(job.Record(o.records))
	}
	return job, found
}

func programsOf(o *options) (*config.Job, config.Diagnostics) {
	if o.programs != "" || o.on != "" {
		job, err := ofParts(o)
		return job, fault(err)
	}
	job := config.Default(o.procs, o.command, known())
	if job.Sites[0].Program.Path == "" {
		_, why := config.FindProgram(job.Dir, o.command[0])
		return nil, fault(errors.New(why))
	}
	return job, nil
}

// choose returns the sites to run: the named one, or all on this machine.
func choose(job *config.Job, name string) ([]config.Site, error) {
	if name != "" {
		s, ok := job.Site(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s has no site %q; it has %s", job.File, name, siteNames(job.All()))
		case s.Foreign:
			return nil, fmt.Errorf("site %q is run by another MPI: start it there", name)
		}
		return []config.Site{s}, nil
	}
	isLocal, err := local()
	if err != nil {
		return nil, err
	}
	sites := job.LocalSites(isLocal)
	if len(job.All()) == 1 && len(job.Sites) == 1 && len(job.Sites[0].Hosts) == 0 {
		return job.Sites, nil // nodesOf returns the error
	}
	if len(sites) == 0 {
		return nil, fmt.Errorf("no site of %s (%s) is on this machine: run impi-node where they are, or name one with -site", job.File, siteNames(job.All()))
	}
	return sites, nil
}

func siteNames(sites []config.Site) string {
	names := make([]string, len(sites))
	for i, s := range sites {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

func runNode(o *options, job *config.Job, p nodeSpec, told order, signals <-chan os.Signal, std streams) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	now := make(chan struct{})
	// Standard output may be closed before the job ends: Write then returns an error,
	// instead of a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	again := make(chan struct{}, 1)
	stop := onSignals(func() {
		select {
		case again <- struct{}{}:
		default: // a request is pending already
		}
	}, func(s syscall.Signal) {
		if p.orphaned() {
			time.Sleep(serverWord) // the head may send the reason
			cancel(&ending.Failure{Text: fmt.Sprintf("site %s: host %s has lost the node that started it", p.site.Name, p.site.Hosts[p.host]), Status: ending.StatusNode, Precedence: ending.Lost})
			return
		}
		cancel(lifetime.Interrupt{Signal: s})
	}, func(syscall.Signal) { close(now) })
	defer stop()
	if p.launches {
		l, err := launchHosts(o, job, &p, told.Addresses)
		if err != nil {
			return err
		}
		defer l.stop()
	}
	cluster := p.cluster()
	err := useNetwork(&p, cluster)
	if err != nil && cluster == nil {
		return ending.Misconfigured(fmt.Errorf("site %s: %w", p.site.Name, err))
	}
	if cluster != nil {
		cluster.Fault = cmp.Or(p.fault, err)
	}
	return node.Run(ctx, node.Options{
		Job: job, Site: p.site, Cluster: cluster, EndNow: now, Signals: signals, File: p.source, Reload: again, Reloaded: p.reloaded, Lost: p.lost,
		BoundBefore: told.BoundBefore, Bound: told.Bound, Waited: told.Waited,
		Stdin: std.in, Stdout: std.out, Stderr: std.err,
	})
}

// hangupReloads says whether SIGHUP reloads the job file here (cmdline.HangupReloads). A node has
// the value of its launcher.
var hangupReloads = cmdline.HangupReloads()

// keepHangup makes SIGHUP not end a process that does not handle it yet, where it is for a reload.
func keepHangup() {
	if hangupReloads {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// onSignals calls first for the first SIGINT, SIGTERM, SIGHUP or SIGQUIT, second for the
// second, and ignores further ones. Where SIGHUP does not mean that the terminal is gone, it calls
// reload for each instead, unless that is nil.
func onSignals(reload func(), first, second func(syscall.Signal)) (stop func()) {
	hangup, c := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if hangupReloads && reload != nil {
		signal.Notify(hangup, syscall.SIGHUP)
	} else {
		signal.Notify(c, syscall.SIGHUP)
	}
	quit := make(chan struct{})
	go func() {
		for calls := []func(syscall.Signal){first, second}; ; {
			select {
			case <-hangup:
				reload()
			case s := <-c:
				if len(calls) > 0 {
					calls[0](s.(syscall.Signal))
					calls = calls[1:]
				}
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(c)
		signal.Stop(hangup)
		close(quit)
	}
}

// passedOn returns the signals that are passed on to the procs, whose programs decide what
// they mean. Signals that are not read before stop are dropped.
func passedOn() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	return c, func() { signal.Stop(c) }
}

func passOn(signals <-chan os.Signal, f func(syscall.Signal)) (stop func()) {
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				f(s.(syscall.Signal))
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit) }
}

func conclude(err error, std streams) int {
	if err == nil {
		return statusOK
	}
	complain(std.err, err)
	if f, ok := errors.AsType[*ending.Failure](err); ok {
		return f.Status
	}
	return ending.StatusNode
}
