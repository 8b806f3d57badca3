package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Options select what to try.
type Options struct {
	// Run chooses cases: those whose number, name or "number name" it matches, also after the data
	// plane and a colon, as in "ring:T-SIZE-01". Nil: all.
	Run *regexp.Regexp

	// Planes chooses data planes. Empty: all that the plugin offers.
	Planes []transports.DataPlane

	// Quick leaves out slow cases, and makes fewer links and smaller transfers.
	Quick bool

	// Progress, if not nil, is called for each case when it begins, with an empty verdict, and when
	// it has ended.
	Progress func(r Result, done, all int)

	patience time.Duration // of cases, as long as none has hung; 0: the usual one
}

// ErrNotAPlugin is wrapped when there is nothing to judge: the plugin does not start.
var ErrNotAPlugin = errors.New("it cannot be judged")

type job struct {
	Case
	plane  transports.DataPlane
	silent bool // not chosen by Run: it is in the report only if it fails
}

func (o Options) matches(j job) bool {
	if o.Quick && j.Slow {
		return false
	}
	text := j.ID + " " + j.Name
	return o.Run == nil || o.Run.MatchString(text) || j.plane != "" && o.Run.MatchString(string(j.plane)+":"+text)
}

// Cases returns the rules for a plugin's process. The rules for its links are transporttest.Cases.
func Cases() []Case {
	return slices.Concat(startCases, outputCases, callCases, giveUpCases, lifeCases, everyStart, lifeLinkCases, crashCases, idleCases, linkCases, rdmaCases, leakCases, speedCases)
}

// Run judges a plugin. The error wraps ErrNotAPlugin; all other faults are in the report.
func Run(ctx context.Context, s Subject, o Options) (*Report, error) {
	dir, err := host.NewRunDir("")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	s, err = s.settled(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAPlugin, err)
	}
	r := &runner{ctx: ctx, s: s, o: o, dir: dir.Path, trust: trust{most: cmp.Or(o.patience, patience)}, lost: map[transports.DataPlane]bool{},
		report: &Report{Begun: time.Now(), Quick: o.Quick}}
	if err := r.look(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAPlugin, err)
	}
	for _, p := range o.Planes {
		if offers := r.report.Site.Planes; !slices.Contains(offers, p) {
			return nil, fmt.Errorf("%w: it has the data planes %s, and none that is called %q; each -plane has one name", ErrNotAPlugin, joined(offers), p)
		}
	}
	jobs := r.jobs()
	if len(jobs) == 0 && o.Run != nil {
		return nil, fmt.Errorf("%w: -run %v chooses no rule: it is a regular expression for their numbers and names, which a run without it prints; -quick leaves out the slow ones", ErrNotAPlugin, o.Run)
	}
	for i, j := range jobs {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !r.lost[j.plane] {
			r.do(j, i, len(jobs))
		}
	}
	r.wantLinks()
	r.report.Seconds = time.Since(r.report.Begun).Seconds()
	r.report.count()
	return r.report, nil
}

type runner struct {
	ctx    context.Context
	s      Subject
	o      Options
	dir    string
	mtls   error                         // what is wrong with AutoMTLS
	deaf   string                        // why it did not listen when it was started first; empty: it did
	lost   map[transports.DataPlane]bool // with these it does not start
	trust  trust
	report *Report
}

// look starts the plugin as a site does, and records what a site sees of it.
func (r *runner) look() error {
	ctx, cancel := context.WithTimeout(r.ctx, 2*startLimit)
	defer cancel()
	begin := time.Now()
	p, err := host.Start(ctx, r.s.config(""))
	if errors.Is(err, host.ErrMTLS) { // this has its own case; the other cases still run
		r.mtls, r.s.NoMTLS = err, true
		p, err = host.Start(ctx, r.s.config(""))
	}
	if err != nil {
		return r.s.wantsRights(ctx, err)
	}
	defer p.Close()
	site := NewSite(p.About())
	site.Unconfined = r.s.Unconfined
	site.StartSeconds = time.Since(begin).Seconds()
	if u, err := p.Usage(); err == nil {
		site.SetUsage(u)
	}
	e := env{s: r.s, wait: patience, workDir: r.dir}
	out := transporttest.Record(func(t transporttest.T) {
		e.T = t
		ln, err := p.Transport().Listen(ctx, e.at())
		e.must(err)
		defer ln.Close()
		site.Address = ln.Address()
	}, patience)
	if out.Verdict != transporttest.Pass {
		r.deaf = out.Reason
	}
	r.report.Site = site
	return nil
}

// wantsRights says what to do if the plugin does not start because it is confined.
func (s Subject) wantsRights(ctx context.Context, err error) error {
	if s.Unconfined {
		return err
	}
	s.Unconfined = true
	p, other := host.Start(ctx, s.config(""))
	if other != nil {
		return err
	}
	_ = p.Close()
	return fmt.Errorf("%w; with all rights of its node it starts: have it go without them (docs/security.md, Plugins), or judge it with -unconfined, and its users write confine = false", err)
}

// NewSite returns what a site sees of a plugin before it has run the plugin for long.
func NewSite(a host.About) *Site {
	site := &Site{
		Name: a.Name, Version: a.Version, Vendor: a.Vendor, SDK: a.SDK, Protocol: a.Protocol, MTLS: a.MTLS,
		Path: a.Path, SHA256: a.Digest, Planes: a.Capabilities.DataPlanes, Features: a.Capabilities.Features,
		Reach: a.Capabilities.Reach, Newest: a.Newest, Problem: a.Problem,
	}
	for _, x := range a.Lacks {
		site.Lacks = append(site.Lacks, x.Name+": "+x.Without)
	}
	for _, x := range a.Schema {
		site.Settings = append(site.Settings, Setting{x.Name, string(x.Type), x.Required, x.Default, x.Doc})
	}
	return site
}

// SetUsage records the machine's resources that the plugin's process uses.
func (s *Site) SetUsage(u host.Usage) {
	s.Resident, s.Own, s.CPUSeconds, s.Threads, s.Descriptors = u.Resident, u.Own, u.CPU.Seconds(), u.Threads, u.Descriptors
}

// jobs are the cases to do, in the order that is best to read.
func (r *runner) jobs() (jobs []job) {
	choose := func(plane transports.DataPlane, cases ...Case) (list []job) {
		for _, c := range cases {
			if j := (job{Case: c, plane: plane}); r.o.matches(j) {
				list = append(list, j)
			}
		}
		return list
	}
	jobs = choose("", slices.Concat(startCases, outputCases, callCases, giveUpCases, lifeCases)...)
	for _, p := range r.planes() {
		var links []Case
		for _, c := range transporttest.Cases() {
			links = append(links, r.linkCase(c))
		}
		list := choose(p, slices.Concat(links, lifeLinkCases, crashCases, idleCases, linkCases, rdmaCases, leakCases, speedCases)...)
		first := job{Case: everyStart[0], plane: p}
		first.silent = !r.o.matches(first)
		if len(list) > 0 || !first.silent {
			jobs = append(append(jobs, first), list...)
		}
	}
	return jobs
}

// planes are the plugin's data planes that are to be tried.
func (r *runner) planes() (list []transports.DataPlane) {
	for _, p := range r.report.Site.Planes {
		switch {
		case len(r.o.Planes) > 0 && !slices.Contains(r.o.Planes, p):
			r.report.NotTried = append(r.report.NotTried, "data plane "+string(p)+": not chosen")
		case !slices.Contains(planes, string(p)):
			r.report.NotTried = append(r.report.NotTried, "data plane "+string(p)+": this node cannot do it")
		default:
			list = append(list, p)
		}
	}
	return list
}

// wantLinks adds a failure if rules about links were to be tried and none was, or if the plugin did
// not listen when it was started first.
func (r *runner) wantLinks() {
	allowed := slices.ContainsFunc(transporttest.Cases(), func(c transporttest.Case) bool {
		j := job{Case: r.linkCase(c)}
		return r.o.matches(j) || slices.ContainsFunc(r.report.Site.Planes, func(p transports.DataPlane) bool {
			j.plane = p
			return r.o.matches(j)
		})
	})
	fail := func(reason string) {
		c := everyStart[0]
		r.report.Results = append(r.report.Results, Result{
			ID: c.ID, Name: c.Name, Rule: c.Rule, Kind: c.Kind, Verdict: transporttest.Fail, Remedy: remedies[c.ID],
			Reason: fmt.Sprintf("%s: %s (the rule: %s)", c.ID, reason, c.Rule),
		})
	}
	switch {
	case r.deaf != "" && allowed:
		fail("when it was started first it did not listen: " + r.deaf)
	case r.deaf != "":
		r.report.NotTried = append(r.report.NotTried, "an example of an address: "+r.deaf)
	case allowed && len(r.lost) == 0 && !r.trust.lost() && !r.report.triedLinks(r.o.Run == nil):
		fail("no rule about links was tried; its data planes are " + joined(r.report.Site.Planes) + ", those of this node " + strings.Join(planes, " "))
	}
}

// KindOf returns the half of the verdict to which a rule of links belongs.
func KindOf(id string) Kind {
	for _, area := range []string{"T-PRESS-", "T-LOAD-", "T-LEAK-", "T-CLOSE-04", "T-DIAL-05"} {
		if strings.HasPrefix(id, area) {
			return Robust
		}
	}
	return Correct
}

// linkCase makes a case of one of package transporttest. Two processes of the plugin
// serve it: one that listens and one that dials.
func (r *runner) linkCase(c transporttest.Case) Case {
	return Case{ID: c.ID, Name: c.Name, Rule: c.Rule, Kind: KindOf(c.ID), run: func(e *env) {
		e.links(c)
		if c.ID == anyPlanes { // also by the plane that sites get which choose none
			free := *e
			free.plane = ""
			free.links(c)
		}
	}}
}

// anyPlanes is the rule of which planes links have.
const anyPlanes = "T-ABOUT-06"

func (e *env) links(c transporttest.Case) {
	h := transporttest.Harness{
		Transport: e.host().Transport(), Dialler: e.host().Transport(),
		Listen: e.at(), Large: 64 << 20, Links: 2000, Patience: e.wait,
	}
	if e.quick {
		h.Large, h.Links = 4<<20, 300
	}
	c.Run(e.T, h)
}

func (r *runner) do(j job, i, all int) {
	res := Result{ID: j.ID, Name: j.Name, Rule: j.Rule, Kind: j.Kind, Plane: j.plane}
	if !j.silent {
		r.progress(res, i, all)
	}
	wait, limit := r.trust.patience(), r.trust.limit()
	died := &crashes{}
	var speed Speed
	begun := time.Now()
	var body atomic.Int64 // nanoseconds until its processes are ended; an abandoned case may still run
	out := transporttest.Record(func(t transporttest.T) {
		if r.trust.lost() {
			t.Skipf("not tried, since %d cases have hung: mend those first, or try this one with -run %s", r.trust.hung, j.ID)
		}
		defer func() { body.Store(int64(time.Since(begun))) }()
		j.run(&env{T: noted{t, died}, c: j.Case, s: r.s, mtls: r.mtls, plane: j.plane, quick: r.o.Quick, wait: wait, workDir: r.dir, crashes: died, speed: &speed})
	}, limit)
	r.trust.saw(out, wait, out.Took-time.Duration(body.Load()))
	res.Verdict, res.Reason, res.Log, res.Seconds = out.Verdict, out.Reason, out.Log, out.Took.Seconds()
	if res.Verdict == transporttest.Fail {
		res.Remedy = remedies[res.ID]
	}
	died.judge(&res)
	if speed.Plane != "" {
		r.report.Speed = append(r.report.Speed, speed)
	}
	if j.ID == everyStart[0].ID && res.Verdict == transporttest.Fail {
		r.lost[j.plane] = true
		r.report.NotTried = append(r.report.NotTried, fmt.Sprintf("the other rules by %s: see %s", j.plane, j.ID))
	} else if j.silent {
		return
	}
	r.report.Results = append(r.report.Results, res)
	r.progress(res, i+1, all)
}

func (r *runner) progress(res Result, done, all int) {
	if r.o.Progress != nil {
		r.o.Progress(res, done, all)
	}
}
