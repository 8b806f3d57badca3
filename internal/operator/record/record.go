// Package record gathers what is left of a job, for the report that its operator wants: it asks all
// nodes that it can for what they know, from time to time and at the end, and writes the file.
package record

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/operator/inspect"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/version"
)

// Intervals at which all nodes are asked for the data of a report, at first and at most. A proc
// that is killed is in the report with its last data.
const (
	firstLook   = 2 * time.Second
	longestLook = 30 * time.Second
	lookPause   = 20 * time.Millisecond
)

// leastLook is how long to wait at least for a site, however long it was silent before.
const leastLook = 100 * time.Millisecond

// Settings say which report is wanted.
type Settings struct {
	Job    *config.Job // says where it goes
	Name   string      // of the job
	Site   string      // that writes it
	Routes *routes.Table
	Log    hclog.Logger

	// Patience bounds how long to wait for a site that does not answer, and for the others at the
	// end. The time for which a site was already silent counts.
	Patience time.Duration
}

// Recorder gathers what is left of a job. Its methods do nothing if it is nil.
type Recorder struct {
	Settings
	control *inspect.Control // nil before Begin
	path    string
	before  fs.FileInfo // what was there at the begin, or nil
	begun   time.Time
	cancel  context.CancelFunc
	over    chan struct{} // closed when nobody is asked from time to time any more

	mu     sync.Mutex
	known  jobreport.LatestAnswers
	silent silences
	sites  []links.Site
	id     string
	ran    time.Time
}

// silences are the sites that were asked and have not answered since, with the time when they were
// asked first.
type silences struct {
	last  time.Duration // as Settings.Patience
	since map[int]time.Time
}

// asked notes that a site is asked now, and returns for how long to wait for its answer.
func (s silences) asked(client int, now time.Time) time.Duration {
	since, before := s.since[client]
	if !before {
		s.since[client], since = now, now
	}
	return max(leastLook, s.last-now.Sub(since))
}

// gone reports whether not to wait for a site: it has been silent for Settings.Patience, or it has
// never asked this one (hasAsked) although the procs have run for so long (ran) that a site that
// writes a report and can reach this one would have.
func (s silences) gone(client int, hasAsked bool, ran time.Duration, now time.Time) bool {
	since, silent := s.since[client]
	return silent && now.Sub(since) >= s.last || !hasAsked && ran >= firstLook+s.last
}

// New returns nil if no report is wanted.
func New(s Settings) *Recorder {
	r := &s.Job.Report
	if r.Path == "" {
		return nil
	}
	path := r.Name(s.Name, s.Site, len(s.Job.Sites))
	if err := jobreport.CheckWritable(path); err != nil {
		s.Log.Warn("the report of the job will probably not be written: make the folder, or choose another path", "given_by", r.Pos, "path", path, "error", err)
	}
	before, err := os.Lstat(path)
	if err != nil {
		before = nil
	}
	return &Recorder{Settings: s, path: path, before: before, begun: time.Now(), silent: silences{s.Patience, make(map[int]time.Time)}}
}

// Begin asks from now on, until ctx ends, by c. The procs run.
func (r *Recorder) Begin(ctx context.Context, c *inspect.Control) {
	if r == nil {
		return
	}
	r.control, r.ran = c, time.Now()
	for _, s := range inspect.Unreachable(c) {
		r.Log.Info("the report will have nothing of a site: no transport leads there, or its route has direct = false, and it cannot be asked over the agents' channel; its own head writes what it knows", "other", s.Site)
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

func (r *Recorder) look(ctx context.Context) {
	var wg sync.WaitGroup
	for _, s := range inspect.Reachable(r.control) {
		wg.Go(func() { r.ask(ctx, s.Client) })
	}
	r.lookHere(ctx)
	wg.Wait()
}

func (r *Recorder) lookHere(ctx context.Context) {
	a := r.control.Answer(ctx, links.Request{Op: links.OpLinks, Account: true, Log: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Add(a, time.Now())
	if a.Node != nil && len(a.Node.Sites) > 0 {
		r.sites, r.id = a.Node.Sites, a.Node.ID
	}
}

func (r *Recorder) ask(ctx context.Context, client int) {
	r.mu.Lock()
	limit := r.silent.asked(client, time.Now())
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := inspect.AskSite(ctx, r.control, client, links.Request{Op: links.OpLinks, Account: true, Log: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(all, func(o links.HostAnswer) bool { return o.Node != nil }) {
		delete(r.silent.since, client)
	}
	r.known.Add(links.Answer{Others: all}, time.Now())
}

func (r *Recorder) gone(client int, hasAsked bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent.gone(client, hasAsked, time.Since(r.ran), time.Now())
}

// complete reports whether the last words of all procs of a site are known.
func (r *Recorder) complete(client int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.sites, func(s links.Site) bool { return s.Client == client })
	return i >= 0 && r.known.Complete(r.sites[i])
}

// AskLastTime asks a last time, once the procs of this node have passed MPI_Finalize: those of
// other nodes may be about to. It returns when this node has the last words of all sites that
// answer, and all that write a report and can ask have those of this site: whoever left earlier
// could not be asked any more.
func (r *Recorder) AskLastTime(ctx context.Context) {
	if r == nil {
		return
	}
	r.stop()
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
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
	self := int(r.Routes.World.Self)
	wg.Go(func() { until(func() bool { return r.complete(self) }, func() { r.lookHere(ctx) }) })
	for _, s := range inspect.ReachableAtEnd(r.control) {
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
	until(func() bool { return inspect.NoMoreQuestions(r.control, r.gone) }, func() {})
}

func (r *Recorder) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.over
	}
}

// CollectOwnSite looks at this site, as it is when its part of the job is about to end.
func (r *Recorder) CollectOwnSite() {
	if r == nil {
		return
	}
	r.stop()
	if r.control != nil {
		ctx, cancel := context.WithTimeout(context.Background(), r.Patience)
		defer cancel()
		r.lookHere(ctx)
	}
}

// Write writes the file: the job has ended so. Whatever goes wrong is for the log alone.
func (r *Recorder) Write(o ending.Outcome) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &jobreport.Report{
		Job: r.Name, ID: r.id, By: r.Site, Began: r.begun, Ran: r.ran, Ended: time.Now(),
		Config: r.Job.Open(), Versions: versionsOf(r.Routes.Transports),
	}
	if o.Failure != nil {
		x.Failure, x.Status = o.Failure.Text, o.Failure.Status
	}
	r.known.Fill(x, r.sites)
	path, err := x.SaveBeside(r.path, r.before)
	switch {
	case err != nil:
		r.Log.Warn("the report of the job cannot be written", "given_by", r.Job.Report.Pos, "path", path, "error", err)
	case path != r.path:
		r.Log.Warn("the report of the job has another name, as a job that ran at the same time has written this one: put %p, the node's process ID, into the name", "given_by", r.Job.Report.Pos, "path", path, "kept", r.path)
	default:
		r.Log.Debug("report written", "path", path)
	}
}

func versionsOf(transports []*routes.Transport) []jobreport.Version {
	list := []jobreport.Version{{What: "impi", Version: version.String()}, {What: "Go", Version: runtime.Version()}}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		list = append(list, jobreport.Version{What: "kernel", Version: fmt.Sprintf("%s %s %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))})
	}
	for _, t := range transports {
		a := t.Plugin.About()
		list = append(list, jobreport.Version{What: "plugin " + t.Name, Version: fmt.Sprintf("%s %s, protocol %d", a.Name, a.Version, a.Protocol)})
	}
	return list
}
