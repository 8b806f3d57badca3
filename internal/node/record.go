package node

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/inspect"
	"github.com/openimpi/impi/internal/version"
)

// Intervals at which all nodes are asked for the data of a report, at first and at most. A proc
// that is killed is in the report with its last data.
const (
	firstLook   = 2 * time.Second
	longestLook = 30 * time.Second
	lookPause   = 20 * time.Millisecond
)

// lastLook bounds how long to wait for a site that does not answer, and for the others at the end.
// The time for which a site was already silent counts, but it gets at least leastLook. Tests raise
// it, as their machines are slow.
var lastLook = 2 * time.Second

const leastLook = 100 * time.Millisecond

// recorder gathers what is left of a job, for the file that the operator wants. Its methods do nothing if
// it is nil.
type recorder struct {
	n      *node
	path   string
	begun  time.Time
	cancel context.CancelFunc
	over   chan struct{} // closed when the nodes are not asked at intervals any more

	mu     sync.Mutex
	known  jobreport.Known
	silent silences
	sites  []links.Site
	id     string
	ran    time.Time
}

// silences are the sites that were asked and have not answered since, with the time when they were asked
// first.
type silences map[int]time.Time

// asked notes that a site is asked now, and returns for how long to wait for its answer.
func (s silences) asked(client int, now time.Time) time.Duration {
	since, before := s[client]
	if !before {
		s[client], since = now, now
	}
	return max(leastLook, lastLook-now.Sub(since))
}

// gone reports whether not to wait for a site: it has been silent for lastLook, or it has never
// asked this one (hasAsked) although the procs have run for so long (ran) that a site that writes a
// report and can reach this one would have.
func (s silences) gone(client int, hasAsked bool, ran time.Duration, now time.Time) bool {
	since, silent := s[client]
	return silent && now.Sub(since) >= lastLook || !hasAsked && ran >= firstLook+lastLook
}

// newRecorder returns nil if no report is wanted, or another node writes it.
func newRecorder(n *node) *recorder {
	r := &n.opt.Job.Report
	if r.Path == "" || n.opt.spawned != nil || n.spare != nil || !n.cluster.IsHead() {
		return nil
	}
	path := r.Name(n.name(), n.opt.Site.Name, len(n.opt.Job.Sites))
	if err := jobreport.Try(path); err != nil {
		n.log.Warn("the report of the job will probably not be written: make the folder, or choose another path in the report block", "line", r.Pos, "path", path, "error", err)
	}
	return &recorder{n: n, path: path, begun: time.Now(), silent: make(silences)}
}

func (r *recorder) begin(ctx context.Context) {
	if r == nil {
		return
	}
	r.ran = time.Now()
	for _, s := range inspect.Unreachable(r.n.control) {
		r.n.log.Info("the report will have nothing of a site: no transport leads there, or its route has direct = false; its own head writes what it knows", "other", s.Site)
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.over = make(chan struct{})
	go func() {
		defer close(r.over)
		for pause := firstLook; ; pause = min(2*pause, longestLook) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
				r.look(ctx)
			}
		}
	}()
}

func (r *recorder) look(ctx context.Context) {
	var wg sync.WaitGroup
	for _, s := range inspect.Reachable(r.n.control) {
		wg.Go(func() { r.ask(ctx, s.Client) })
	}
	r.lookHere(ctx)
	wg.Wait()
}

func (r *recorder) lookHere(ctx context.Context) {
	a := r.n.control.Answer(ctx, links.Request{Op: links.OpLinks, Account: true, Log: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Add(a, time.Now())
	if a.Node != nil && len(a.Node.Sites) > 0 {
		r.sites, r.id = a.Node.Sites, a.Node.ID
	}
}

func (r *recorder) ask(ctx context.Context, client int) {
	r.mu.Lock()
	limit := r.silent.asked(client, time.Now())
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := inspect.AskSite(ctx, r.n.control, client, links.Request{Op: links.OpLinks, Account: true, Log: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(all, func(o links.Other) bool { return o.Node != nil }) {
		delete(r.silent, client)
	}
	r.known.Add(links.Answer{Others: all}, time.Now())
}

func (r *recorder) gone(client int, hasAsked bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent.gone(client, hasAsked, time.Since(r.ran), time.Now())
}

// complete reports whether the last words of all procs of a site are known.
func (r *recorder) complete(client int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.sites, func(s links.Site) bool { return s.Client == client })
	return i >= 0 && r.known.Complete(r.sites[i])
}

// last asks a last time, once the procs of this node have passed MPI_Finalize: those of other nodes
// may be about to. It returns when this node has the last words of all sites that answer, and all
// sites that write a report and can ask have those of this site: once it has left, it cannot be
// asked any more.
func (r *recorder) last(ctx context.Context) {
	if r == nil {
		return
	}
	r.stop()
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	until := func(done func() bool, ask func()) {
		for !done() {
			ask()
			if done() {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookPause):
			}
		}
	}
	var wg sync.WaitGroup
	r.lookHere(ctx) // finds how many procs each site has
	self := int(r.n.routes.World.Self)
	wg.Go(func() { until(func() bool { return r.complete(self) }, func() { r.lookHere(ctx) }) })
	for _, s := range inspect.Reachable(r.n.control) {
		wg.Go(func() {
			known := func() bool { return r.complete(s.Client) || r.gone(s.Client, true) }
			if r.complete(s.Client) {
				return
			}
			r.ask(ctx, s.Client)
			until(known, func() { r.ask(ctx, s.Client) })
		})
	}
	wg.Wait()
	until(func() bool { return inspect.AllHeard(r.n.control, r.gone) }, func() {})
}

func (r *recorder) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.over
	}
}

// ending looks at this site just before its part of the job ends.
func (r *recorder) ending() {
	if r == nil {
		return
	}
	r.stop()
	if r.n.isReady() {
		ctx, cancel := context.WithTimeout(context.Background(), lastLook)
		defer cancel()
		r.lookHere(ctx)
	}
}

// write writes the file. Errors are only logged.
func (r *recorder) write(o ending.Outcome) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.n
	x := &jobreport.Report{
		Job: n.name(), ID: r.id, By: n.opt.Site.Name, Began: r.begun, Ran: r.ran, Ended: time.Now(),
		Config: n.opt.Job.Open(), Versions: versionsOf(n),
	}
	if o.Failure != nil {
		x.Failure, x.Status = o.Failure.Text, o.Failure.Status
	}
	r.known.Fill(x, r.sites)
	if err := x.Save(r.path); err != nil {
		n.log.Warn("the report of the job cannot be written", "path", r.path, "error", err)
		return
	}
	n.log.Debug("report written", "path", r.path)
}

func versionsOf(n *node) []jobreport.Version {
	list := []jobreport.Version{{What: "impi", Version: version.String()}, {What: "Go", Version: runtime.Version()}}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		list = append(list, jobreport.Version{What: "kernel", Version: fmt.Sprintf("%s %s %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))})
	}
	for _, t := range n.routes.Transports {
		a := t.Plugin.About()
		list = append(list, jobreport.Version{What: "plugin " + t.Name, Version: fmt.Sprintf("%s %s, protocol %d", a.Name, a.Version, a.Protocol)})
	}
	return list
}
