package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// builder merges the file's blocks into a Job and reports contradictions between them.
type builder struct {
	*faults
	opt    Options
	env    map[string]cty.Value
	dir    string
	root   *block
	locked lockFile
	job    *block // may be nil
	sites  []*siteDraft
	result Job
}

// MaxSites is the most sites of a job: IMPI's client mask has 32 bits.
const MaxSites = 32

type siteDraft struct {
	Site
	*builder
	block *block
	ranks bool // the client rank is known
	doubt bool // faults of its auth blocks were reported, so their contents are not checked further

	guessed bool // procs = "auto" of a host is its number of cores, not a number from a scheduler
}

func (b *builder) build() *Job {
	b.job = b.root.only("job")
	sites := b.root.all("site")
	if len(sites) > MaxSites { // checking all of them would take too long
		b.fault(sites[MaxSites].pos, fmt.Sprintf("a job has at most %d sites, and the file has %d", MaxSites, len(sites)), "split the job, or make one site of several")
		return nil
	}
	for _, sb := range sites {
		b.sites = append(b.sites, b.draft(sb))
	}
	if len(b.sites) == 0 && len(b.list) > 0 {
		return nil // one of the faults may be in a site block
	}
	if len(b.sites) == 0 {
		b.fault(Pos{}, "the file describes no site", `add site "alpha" { client = 0 ... }`)
		return nil
	}
	b.result = Job{File: b.file, Dir: b.dir, Limits: b.limits(), Report: b.report(), Builtins: b.opt.Builtins, source: b.lines}
	b.plugins()
	b.servers()
	b.checkRanks()
	b.sharedHosts()
	for _, s := range b.ours() {
		s.launch()
		s.hosts()
	}
	b.countAuto()
	for _, s := range b.ours() {
		s.site()
	}
	b.ports()
	b.checkTogether()
	b.survive()
	slices.SortStableFunc(b.sites, func(x, y *siteDraft) int { return x.Client - y.Client })
	for _, s := range b.sites {
		if s.Spare {
			b.result.Spares = append(b.result.Spares, s.Site)
		} else {
			b.result.Sites = append(b.result.Sites, s.Site)
		}
	}
	return &b.result
}

func (b *builder) draft(sb *block) *siteDraft {
	_, ok := get[int64](sb, "client")
	s := &siteDraft{builder: b, block: sb, ranks: ok}
	s.Site = Site{Name: sb.label, Pos: sb.pos}
	fill(&s.Site, sb)
	s.HeadName = nameIn("head", sb)
	if s.Name == "*" {
		b.fault(sb.pos, `a site cannot be called "*"`, "give it another name: routes use *")
	}
	if s.Foreign {
		b.checkForeign(sb)
	} else {
		b.checkOurs(sb)
	}
	checkSpare(s)
	return s
}

func (b *builder) ours() []*siteDraft {
	var ours []*siteDraft
	for _, s := range b.sites {
		if !s.Foreign {
			ours = append(ours, s)
		}
	}
	return ours
}

// here reports whether s runs on this machine, so that its files and ports can be checked.
func (s *siteDraft) here() bool {
	return s.opt.Local == nil || s.isLocal(s.opt.Local)
}

// layers returns the blocks called name that apply to s: its own, which has priority, and that at
// the top of the file.
func (s *siteDraft) layers(name string) (own, shared *block) {
	return s.block.only(name), s.root.only(name)
}

func (b *builder) limits() Limits {
	l := defaultLimits()
	fill(&l, b.root.only("limits"))
	return l
}

func (b *builder) report() (r Report) {
	in := b.root.only("report")
	fill(&r, in)
	if in == nil || r.Path == "" {
		return r
	}
	r.Pos, r.Dir = in.at("path"), b.dir
	if problem, remedy := reportFault(r.Path); problem != "" {
		b.fault(r.Pos, problem, remedy)
	}
	return r
}

func (s *siteDraft) site() {
	s.auth()
	s.program()
	s.transports()
	s.routes()
	s.protocol()
	s.labels()
	own, shared := s.layers("wait")
	s.Wait = pick(Wait{Auto: true}, "spin", own, shared)
	s.Progress = pick(time.Duration(0), "progress", own, shared)
	s.log()
	metricsOf(s)
	uiOf(s)
	traceOf(s)
	s.spawn()
	s.names()
	s.native()
}

func metricsOf(s *siteDraft) {
	own, shared := s.layers("metrics")
	fill(&s.Metrics, own, shared)
	from := own
	if !own.has("listen") {
		from = shared
	}
	switch in := cmp.Or(own, shared); {
	case from.has("listen"):
		s.Metrics.Pos = from.at("listen")
	case in != nil:
		s.fault(in.pos, "metrics of site "+quote(s.Name)+" has no listen", `add listen = "127.0.0.1:9464"`)
	}
}

func uiOf(s *siteDraft) {
	own, shared := s.layers("ui")
	fill(&s.UI, own, shared)
	if in := cmp.Or(own, shared); in != nil {
		s.UI.Pos = in.at("listen")
	}
}

func traceOf(s *siteDraft) {
	own, shared := s.layers("trace")
	fill(&s.Trace, own, shared)
	if in := cmp.Or(own, shared); in != nil && !in.has("calls") && !in.has("otlp") {
		s.fault(in.pos, "the trace block has neither calls nor otlp", `write calls = "calls-%r.json", otlp = "http://127.0.0.1:4318", or both`)
	}
	if from := cmp.Or(own, shared); s.Trace.Calls == "" && s.Trace.Short != "" && !slices.ContainsFunc(s.sites, tracesCalls) {
		if !own.has("short") {
			from = shared
		}
		s.fault(from.at("short"), "short says how calls are traced, and none are", `write calls = "calls-%r.json" beside it, or leave short out`)
	}
	if calls := s.Trace.Calls; calls != "" {
		s.Trace.Calls = absolute(inPattern(s.dir), calls)
		s.checkTrace(cmp.Or(own, shared).at("calls"), calls, "calls", "calls-%r.json")
	}
}

func tracesCalls(s *siteDraft) bool {
	own, _ := s.layers("trace")
	return own.has("calls")
}

func (s *siteDraft) log() {
	own, shared := s.layers("log")
	s.Log = defaultLog()
	fill(&s.Log, own, shared)
	trace := s.Log.Trace
	if trace == "" {
		return
	}
	s.Log.Trace = absolute(inPattern(s.dir), trace)
	from := own
	if !own.has("trace") {
		from = shared
	}
	s.checkTrace(from.at("trace"), trace, "packets", "packets-%r.txt")
}

// protocol merges and checks s's protocol values. The schema checks their ranges (IMPI ch.2, COLL
// command).
func (s *siteDraft) protocol() {
	own, shared := s.layers("protocol")
	s.Protocol = defaultProtocol()
	fill(&s.Protocol, own, shared)
	if s.Protocol.Measured != "" {
		s.Protocol.Measured = absolute(s.dir, s.Protocol.Measured)
		if s.Protocol.MeasuredPos = shared.at("measured"); own.has("measured") {
			s.Protocol.MeasuredPos = own.at("measured")
		}
	}
	if s.Protocol.AckMark <= s.Protocol.HiWater {
		return
	}
	for _, layer := range []*block{own, shared} {
		for _, name := range []string{"ackmark", "hiwater"} {
			if layer.has(name) {
				s.fault(layer.at(name), "ackmark "+utoa(s.Protocol.AckMark)+" is above hiwater "+
					utoa(s.Protocol.HiWater)+": the sender would stop before it is acknowledged",
					"write ackmark not above hiwater; a quarter of it is usual")
				return
			}
		}
	}
}

func (b *builder) timeout() time.Duration { return pick(b.result.Limits.Start, "timeout", b.job) }

// pluginPath returns the path of a plugin: in plugin_dir, unless its name contains a
// folder. A relative path starts from the folder of the job file.
func (s *siteDraft) pluginPath(name string) string {
	if filepath.Base(name) != name {
		return name
	}
	return filepath.Join(pick(".", "plugin_dir", s.root), name)
}

// shown converts a path that starts from the folder of the job file to one that starts from
// the user's working folder.
func (b *builder) shown(path string) string {
	path = absolute(filepath.Dir(b.file), path)
	if !strings.Contains(path, "/") {
		return "./" + path
	}
	return path
}

// survive reads job's survive, and reports what a job that goes on without some of its procs cannot
// have.
func (b *builder) survive() {
	if b.result.Survive, _ = get[bool](b.job, "survive"); !b.result.Survive {
		return
	}
	at := b.job.at("survive")
	for _, s := range b.sites {
		switch {
		case s.Foreign:
			b.fault(at, "site "+quote(s.Name)+" runs another MPI, which ends with the job's first lost proc: IMPI has no way to tell it that the others go on", "remove survive, or the site")
		case s.Protocol.Dialect == Draft1999:
			b.fault(at, "site "+quote(s.Name)+" speaks the draft of IMPI, which does not show that a host is lost", "remove survive, or the dialect")
		default:
			warnOfSuspicion(s, at)
		}
	}
}

// suspects reports whether a job that goes on without sites may take a process that is only stopped
// for lost: by a route in which a process has to show itself that it is alive, while with links of
// TCP the kernel does. The links of such a route resume unless the file says otherwise.
func suspects(s *siteDraft, r Route) bool {
	survive, _ := get[bool](s.job, "survive")
	return survive && datagrams(s, r) != ""
}

// datagrams returns the transport by which a route leaves the machine if that uses datagrams, else
// "".
func datagrams(s *siteDraft, r Route) string {
	i := slices.IndexFunc(r.Prefer, func(name string) bool { return !s.result.Known(name).Machine })
	if i < 0 || !s.result.Known(r.Prefer[i]).Datagrams {
		return ""
	}
	return r.Prefer[i]
}

// warnOfSuspicion warns of routes for which suspects is true, and whose links the file keeps from
// resuming.
func warnOfSuspicion(s *siteDraft, at Pos) {
	for _, other := range s.sites {
		r := s.RouteTo(other.Name)
		if other == s && len(s.Hosts) == 1 || r.Resume || !suspects(s, r) {
			continue
		}
		s.warn(cmp.Or(r.Pos, at), "with survive = true and resume = false a site is taken for lost by a route of "+datagrams(s, r)+" when its plugin is stopped, or does not answer, for longer than limits { silence }", "remove resume = false from the route: what breaks is then dialled again for limits { resume } before anything is lost")
		return
	}
}
