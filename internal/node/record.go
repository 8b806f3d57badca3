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

// How often all nodes are asked for what a report needs, at first and at most: a proc that is killed has
// said what it had counted by then.
const (
	firstLook   = 2 * time.Second
	longestLook = 30 * time.Second
	lookPause   = 20 * time.Millisecond
)

// lastLook is for how long nodes are asked at the end. Tests give them more, as their machines are slow.
var lastLook = 2 * time.Second

// recorder gathers what is left of a job, for the file that the operator wants. Its methods do nothing if
// it is nil.
type recorder struct {
	n      *node
	path   string
	begun  time.Time
	cancel context.CancelFunc
	over   chan struct{} // closed when nobody is asked from time to time any more

	mu    sync.Mutex
	known jobreport.Known
	sites []links.Site
	id    string
	ran   time.Time
}

// newRecorder returns nil if no report is wanted, or another node writes it.
func newRecorder(n *node) *recorder {
	r := &n.opt.Job.Report
	if r.Path == "" || n.opt.spawned != nil || !n.cluster.IsHead() {
		return nil
	}
	path := r.Name(n.name(), n.opt.Site.Name, len(n.opt.Job.Sites))
	if err := jobreport.Try(path); err != nil {
		n.log.Warn("the report of the job will probably not be written: make the folder, or choose another path in the report block", "line", r.Pos, "path", path, "error", err)
	}
	return &recorder{n: n, path: path, begun: time.Now()}
}

// begin asks from now on. The procs run.
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
				r.look(ctx, true)
			}
		}
	}()
}

// look asks the nodes of the site, or of all sites.
func (r *recorder) look(ctx context.Context, all bool) {
	a := r.n.control.Answer(ctx, links.Request{Op: links.OpLinks, Sites: all, Account: true, Log: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Add(a, time.Now())
	if a.Node != nil && len(a.Node.Sites) > 0 {
		r.sites, r.id = a.Node.Sites, a.Node.ID
	}
}

// last asks a last time, once the procs of this node have passed MPI_Finalize: those of other nodes may
// be about to. It returns when this node has the last words of all, and all that write a report have those
// of this site: whoever left earlier could not be asked any more.
func (r *recorder) last(ctx context.Context) {
	if r == nil {
		return
	}
	r.stop()
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	for {
		if !r.complete() {
			r.look(ctx, true)
		}
		if r.complete() && inspect.AllHeard(r.n.control) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookPause):
		}
	}
}

// complete reports whether the last words of all procs of our sites are known that can be.
func (r *recorder) complete() bool {
	apart := inspect.Unreachable(r.n.control)
	r.mu.Lock()
	defer r.mu.Unlock()
	procs := 0
	for _, s := range r.sites {
		if s.Own && !slices.ContainsFunc(apart, func(a links.About) bool { return a.Client == s.Client }) {
			procs += s.Procs
		}
	}
	return procs > 0 && r.known.Complete(procs)
}

func (r *recorder) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.over
	}
}

// ending looks at this site, as it is when its part of the job is about to end.
func (r *recorder) ending() {
	if r == nil {
		return
	}
	r.stop()
	if r.n.isReady() {
		ctx, cancel := context.WithTimeout(context.Background(), lastLook)
		defer cancel()
		r.look(ctx, false)
	}
}

// write writes the file. Whatever goes wrong is for the log alone.
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

// versionsOf says what has run on this machine.
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
