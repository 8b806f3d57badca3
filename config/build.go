package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// builder merges the file's blocks into a Job and reports what does not fit
// together.
type builder struct {
	*faults
	opt    Options
	env    map[string]cty.Value
	dir    string
	root   *block
	job    *block // may be nil
	sites  []*siteDraft
	result Job
}

// MaxSites is how many sites a job has at most: IMPI has a bit for each in a client mask.
const MaxSites = 32

// siteDraft is a site and what the file says of it.
type siteDraft struct {
	Site
	block *block
	ranks bool // the client rank is known
	doubt bool // what its auth blocks say is not known: that was reported
}

func (b *builder) build() *Job {
	b.job = b.root.only("job")
	sites := b.root.all("site")
	if len(sites) > MaxSites { // what else is wrong with them would take long to say
		b.fault(sites[MaxSites].pos, fmt.Sprintf("a job has at most %d sites, and the file has %d", MaxSites, len(sites)), "split the job, or make one site of several")
		return nil
	}
	for _, sb := range sites {
		b.sites = append(b.sites, b.draft(sb))
	}
	if len(b.sites) == 0 && len(b.list) > 0 {
		return nil // a site block may be among the faults
	}
	if len(b.sites) == 0 {
		b.fault(Pos{}, "the file describes no site", `add site "alpha" { client = 0 ... }`)
		return nil
	}
	b.result = Job{File: b.file, Dir: b.dir, Limits: b.limits(), Builtins: b.opt.Builtins, source: b.lines}
	b.servers()
	b.checkRanks()
	for _, s := range b.ours() {
		b.site(s)
	}
	b.checkTogether()
	slices.SortFunc(b.sites, func(x, y *siteDraft) int { return x.Client - y.Client })
	for _, s := range b.sites {
		b.result.Sites = append(b.result.Sites, s.Site)
	}
	return &b.result
}

func (b *builder) draft(sb *block) *siteDraft {
	client, ok := get[int64](sb, "client")
	s := &siteDraft{block: sb, ranks: ok}
	s.Site = Site{Name: sb.label, Client: int(client), Foreign: pick(false, "foreign", sb), Pos: sb.pos}
	if s.Name == "*" {
		b.fault(sb.pos, `a site cannot be called "*"`, "give it a name; routes use it")
	}
	if s.Foreign {
		s.Implementation = Implementation(pick("", "implementation", sb))
		s.Representation = Representation(pick("", "representation", sb))
		s.ChannelsFrom = pick([]netip.Prefix(nil), "channels_from", sb)
		b.checkForeign(sb)
	} else {
		b.checkOurs(sb)
	}
	return s
}

// ours are the sites that are not foreign.
func (b *builder) ours() []*siteDraft {
	var ours []*siteDraft
	for _, s := range b.sites {
		if !s.Foreign {
			ours = append(ours, s)
		}
	}
	return ours
}

// here tells whether this machine's files and ports are s's.
func (b *builder) here(s *siteDraft) bool {
	return b.opt.Local == nil || s.isLocal(b.opt.Local)
}

// layers are the blocks that hold for s under a name, the stronger one first.
func (b *builder) layers(s *siteDraft, name string) (own, shared *block) {
	return s.block.only(name), b.root.only(name)
}

func (b *builder) limits() Limits {
	l := b.root.only("limits")
	return Limits{
		Start: pick(DefaultStart, "start", l),
		Stop:  pick(DefaultStop, "stop", l),

		Resume: pick(DefaultResume, "resume", l), Silence: pick(DefaultSilence, "silence", l),
	}
}

func (b *builder) site(s *siteDraft) {
	b.hosts(s)
	b.auth(s)
	b.program(s)
	b.transports(s)
	b.routes(s)
	b.protocol(s)
	b.labels(s)
	own, shared := b.layers(s, "wait")
	s.Wait = pick(Wait{Auto: true}, "spin", own, shared)
	b.log(s)
	b.spawn(s)
	b.names(s)
}

// hosts takes s's host blocks. Those at the top of the file are meant for the
// only site.
func (b *builder) hosts(s *siteDraft) {
	blocks, shared := s.block.all("host"), b.root.all("host")
	if len(b.ours()) == 1 {
		blocks = append(blocks, shared...)
	} else {
		for _, h := range shared {
			b.fault(h.pos, "this host could be of any of the file's sites", "move it into a site block")
		}
	}
	for _, h := range blocks {
		s.Hosts = append(s.Hosts, Host{
			Address: pick(netip.Addr{}, "address", h),
			Procs:   int(pick(int64(1), "procs", h)),
			Port:    uint16(pick(int64(0), "port", h)),
			NoBoard: !pick(true, "board", h),
			Pos:     h.pos,
		})
	}
	b.checkElsewhere(s, blocks)
	if len(blocks) == 0 && len(shared) == 0 {
		b.fault(s.Pos, "site "+quote(s.Name)+" has no host", `add host { address = "127.0.0.1"  procs = 2 }`)
	}
}

func (b *builder) log(s *siteDraft) {
	own, shared := b.layers(s, "log")
	s.Log = defaultLog()
	s.Log.Level = pick(s.Log.Level, "level", own, shared)
	s.Log.Format = pick(s.Log.Format, "format", own, shared)
	trace := pick("", "trace", own, shared)
	if trace == "" {
		return
	}
	s.Log.Trace = absolute(b.dir, trace)
	from := own
	if !own.has("trace") {
		from = shared
	}
	b.checkTrace(s, from.at("trace"), trace)
}

// protocol merges s's values and checks them. IMPI ch.2, COLL labels, has the
// ranges, and the schema checks those.
func (b *builder) protocol(s *siteDraft) {
	own, shared := b.layers(s, "protocol")
	d := defaultProtocol()
	number := func(otherwise int64, name string) int64 { return pick(otherwise, name, own, shared) }
	s.Protocol = Protocol{
		DataLen:    uint32(number(int64(d.DataLen), "datalen")),
		AckMark:    uint32(number(int64(d.AckMark), "ackmark")),
		HiWater:    uint32(number(int64(d.HiWater), "hiwater")),
		Unexpected: number(d.Unexpected, "unexpected"),
		TagUB:      int32(number(int64(d.TagUB), "tag_ub")),
		XSize:      int32(number(int64(d.XSize), "xsize")),
		MaxLinear:  int32(number(int64(d.MaxLinear), "maxlinear")),
		Dialect:    Dialect(pick(string(d.Dialect), "dialect", own, shared)),
		IPv4:       IPv4Form(pick(string(d.IPv4), "ipv4", own, shared)),
	}
	if s.Protocol.AckMark <= s.Protocol.HiWater {
		return
	}
	for _, layer := range []*block{own, shared} {
		for _, name := range []string{"ackmark", "hiwater"} {
			if layer.has(name) {
				b.fault(layer.at(name), "ackmark "+utoa(s.Protocol.AckMark)+" is above hiwater "+
					utoa(s.Protocol.HiWater)+": the sender would stop before it is acknowledged",
					"write ackmark not above hiwater; a quarter of it is usual")
				return
			}
		}
	}
}

// timeout is how long an embedded server waits.
func (b *builder) timeout() time.Duration { return pick(b.result.Limits.Start, "timeout", b.job) }

// pluginPath is where a plugin should be: in plugin_dir, unless its name has a
// folder of its own. A relative path starts from the folder of the job file.
func (b *builder) pluginPath(name string) string {
	if filepath.Base(name) != name {
		return name
	}
	return filepath.Join(pick(".", "plugin_dir", b.root), name)
}

// shown turns a path that starts from the folder of the job file into one that
// starts from the user's.
func (b *builder) shown(path string) string {
	path = absolute(filepath.Dir(b.file), path)
	if !strings.Contains(path, "/") {
		return "./" + path
	}
	return path
}
