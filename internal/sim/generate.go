package sim

import (
	"cmp"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// Limits bound what Generate makes. Zero means the default.
type Limits struct {
	Procs  int  // most procs of a job; DefaultProcs
	Steps  int  // about as many steps in a program at most; DefaultSteps
	Worlds bool // several jobs that meet, with fewer procs and steps by default
	// Survive is for two jobs that meet and go on without lost procs.
	Survive bool
	deaths  bool // every program has a death of a root
	// NoFaults leaves out the faults; a seed's case is otherwise the same.
	NoFaults bool
}

// Defaults of Limits.
const (
	DefaultProcs = 12
	DefaultSteps = 120

	DefaultWorldsProcs = 9
	DefaultWorldsSteps = 16 // things that are begun
)

func (l Limits) withDefaults() Limits {
	procs, steps := DefaultProcs, DefaultSteps
	if l.Worlds || l.Survive {
		procs, steps = DefaultWorldsProcs, DefaultWorldsSteps
	}
	l.Procs, l.Steps = cmp.Or(l.Procs, procs), cmp.Or(l.Steps, steps)
	return l
}

// Generate returns the case of a seed: the same for equal limits, as long as the generator does not
// change.
func Generate(seed uint64, l Limits) *Case { return drawn(seed, l).Example(rapidSeed(seed)) }

func drawn(seed uint64, l Limits) *rapid.Generator[*Case] {
	return rapid.Custom(func(t *rapid.T) *Case {
		g := &generator{Draws: &script.Draws{T: t}, limits: l.withDefaults()}
		c := &Case{Seed: seed}
		if g.limits.Survive {
			g.survivors(c)
			return c
		}
		if g.limits.Worlds {
			g.worlds(c)
			return c
		}
		g.sites(c)
		c.Program = g.program(c)
		g.surroundings(c)
		return c
	})
}

func (g *generator) surroundings(c *Case) {
	c.Key, c.Direct = g.OneIn(4), g.IntN(3) > 0 || g.strays
	if g.OneIn(3) && c.Direct {
		c.DialFail = g.pick(0.1, 0.3, 0.5) // with more, hosts would not connect in time
	}
	if g.OneIn(2) {
		c.Chunk = g.Between(256, 16<<10)
	}
	for i := range c.Sites {
		c.Sites[i].NoDirect = g.OneIn(8) && c.Direct
		g.routes(&c.Sites[i])
	}
	c.Links = g.links()
	if g.OneIn(4) && !g.strays {
		c.Resume = &job.Resume{
			Window: g.Between(200, 20_000),
			Again:  time.Microsecond + g.upTo(20*time.Millisecond),
			Limit:  2 * time.Minute,       // a dance may take a minute, and hosts resume channels only after it
			Cuts:   g.pick(0, 0.01, 0.03), // with more, long frames would never get through small links
		}
	}
	if c.Resume != nil && g.OneIn(3) {
		c.Lasts = g.upTo(3 * time.Second)
	}
	if c.Resume != nil && g.OneIn(4) {
		c.Resume.Parts = g.pick(0.1, 0.5)
	}
	if c.Resume != nil && c.Resume.Window%3 == 0 { // no random choice of its own, so that cases stay unchanged
		c.Resume.Compress = 1 + c.Resume.Window%700
	}
	c.Boxes, c.OnDemand = g.OneIn(2), g.OneIn(2)
	for i := range c.Sites {
		c.Sites[i].NoOnDemand = c.OnDemand && c.Sites[i].Foreign == nil && g.OneIn(6)
	}
	if c.Boards = g.OneIn(2); (c.Boards || c.Boxes) && g.IntN(3) > 0 || g.boxed {
		c.oneHost()
	}
	if g.boxed {
		c.Direct, c.Boxes = true, true
		for i := range c.Sites {
			c.Sites[i].NoDirect = false
		}
	}
	if g.OneIn(6) {
		c.Silent = g.Between(4, 30)
	}
	c.Serves = c.Sites[0].Foreign == nil && g.OneIn(8)
	g.mishaps(c)
}

func (g *generator) routes(s *job.Site) {
	if s.Foreign != nil || !g.OneIn(3) {
		return
	}
	s.Prefer = [][]string{nil, {job.Encrypted}, {job.Encrypted, job.Plain}, {job.Plain, job.Encrypted}}[g.IntN(4)]
	s.Secret = g.OneIn(4)
	if g.OneIn(3) {
		s.Data = []string{"native-be", "native-le", "external32"}[g.IntN(3)]
	}
}

// oneHost puts all procs of the job on one host, or those of each site if some are foreign: only
// communicators within a host use its board.
func (c *Case) oneHost() {
	one := job.Site{Params: c.Sites[0].Params, Hosts: []int{0}}
	for i := range c.Sites {
		s := &c.Sites[i]
		s.Hosts = []int{procsAt(c.Sites[i : i+1])}
		one.Hosts[0] += s.Hosts[0]
		if s.Foreign != nil {
			one.Foreign = s.Foreign
		}
	}
	if one.Foreign == nil {
		c.Sites = []job.Site{one}
	}
}

// severalHosts gives each own site that has several procs several hosts.
func (c *Case) severalHosts() {
	for i := range c.Sites {
		if s := &c.Sites[i]; s.Foreign == nil && len(s.Hosts) == 1 && s.Hosts[0] > 1 {
			s.Hosts = []int{1, s.Hosts[0] - 1}
		}
	}
}

// worlds draws jobs that meet. In every fourth case a root dies.
func (g *generator) worlds(c *Case) {
	death := g.OneIn(4) && !g.limits.NoFaults || g.limits.deaths
	if death {
		c.Program = script.GenerateDeath(g.T)
	} else {
		o := script.Options{DataLen: 1 << (4 + g.IntN(8)), Steps: 4 + g.IntN(max(1, g.limits.Steps-3))}
		spawns := g.OneIn(2) && !g.limits.deaths && g.limits.Procs > 3
		for left := g.Between(2-oneIf(spawns), max(2, min(4, g.limits.Procs))-oneIf(spawns)); left > 0; left-- {
			n := g.Between(1, max(1, min(3, g.limits.Procs-o.Procs-left+1-oneIf(spawns))))
			o.Worlds, o.Procs = append(o.Worlds, n), o.Procs+n
		}
		c.Sites = g.homes(o.Worlds)
		if spawns {
			g.spawns(c, &o)
		}
		c.Program = script.Generate(g.T, o)
		c.makeRoom()
	}
	if death {
		c.Sites = g.homes(c.Program.Worlds)
	}
	for i := range c.Sites {
		p := &c.Sites[i].Params
		p.DataLen = max(p.DataLen, 16)
	}
	c.Key, c.Direct, c.Links = g.OneIn(4), g.IntN(4) > 0, g.links()
	c.Chunk = 256 << g.IntN(7)
	if g.OneIn(2) {
		c.Names = 1 + g.IntN(2)
	}
	c.Links.Worlds = g.link(time.Millisecond)
	c.Links.Worlds.Lend = g.pick(0, 0.5)
	if g.OneIn(3) {
		c.Links.Worlds.Uneven = g.Between(2, 40)
	}
	if d, _ := c.Program.Death(); d.Stopped { // the root may stop while it lends memory
		c.Links.Worlds.Lend = 0
	}
	c.Boxes, c.Boards, c.OnDemand = g.OneIn(2), g.OneIn(2), g.OneIn(2)
	if _, _, fails := c.Program.Fails(); len(c.Spares) > 0 && !c.OnDemand && !fails && g.OneIn(3) {
		c.ServerLost = time.Microsecond + g.upTo(200*time.Millisecond)
	}
	if !death && g.OneIn(2) {
		c.DialFail = g.pick(0.1, 0.3, 0.5)
		if g.OneIn(2) { // a port has one caller at a time
			c.Backlog = 1
		}
	}
	if g.OneIn(2) {
		c.Resume = g.resumeWorlds(10 * time.Second)
	}
}

// resumeWorlds draws how links between worlds are resumed, which may be without a lower link for so
// long.
func (g *generator) resumeWorlds(limit time.Duration) *job.Resume {
	r := &job.Resume{Window: g.Between(200, 20_000), Again: time.Microsecond + g.upTo(20*time.Millisecond), Limit: limit, Cuts: g.pick(0, 0.01, 0.03)}
	if g.limits.NoFaults {
		r.Cuts = 0
	}
	return r
}

func (g *generator) homes(worlds []int) (all []job.Site) {
	for _, n := range worlds {
		all = append(all, g.place(n, g.Between(1, 2), func(*job.Site) {})...)
	}
	return all
}

func (g *generator) spawns(c *Case, o *script.Options) {
	c.Program = &script.Program{Worlds: slices.Clone(o.Worlds)} // for sitesOf
	names := make([][]string, len(o.Worlds))
	for w := range names {
		names[w] = hosts(c.sitesOf(w))
	}
	for range g.IntN(3) {
		s := Spare{World: g.IntN(len(names)), Spare: job.Spare{Comes: g.upTo(300 * time.Millisecond), Fails: g.pick(0, 0.2, 0.5)}}
		if g.OneIn(3) {
			s.Cut = time.Microsecond + g.upTo(200*time.Millisecond)
		}
		name := spareName(len(c.sparesOf(s.World)))
		names[s.World] = append(names[s.World], name, name, name)
		c.Spares = append(c.Spares, s)
	}
	if g.OneIn(4) { // no spawn names it
		c.Spares = append(c.Spares, Spare{World: g.IntN(len(names)), Spare: job.Spare{Crash: time.Microsecond + g.upTo(300*time.Millisecond)}})
	}
	o.Hosts = func(world int) []string {
		if world < len(names) {
			return names[world]
		}
		return nil
	}
	for left := g.Between(1, 3); left > 0 && o.Procs < g.limits.Procs; left-- {
		s, total := script.Spawn{World: string(rune('a' + len(o.Worlds)))}, 0
		for range g.Between(1, 2) {
			if n := g.Between(1, 2); o.Procs+total+n <= g.limits.Procs {
				s.Procs, total = append(s.Procs, n), total+n
			}
		}
		if total == 0 {
			continue
		}
		o.Spawns, o.Worlds, o.Procs = append(o.Spawns, s), append(o.Worlds, total), o.Procs+total
	}
	for range g.IntN(3) {
		fails := script.Pick(g.Draws, script.NoSlots, script.NoHost, script.ProcEnds)
		s := script.Spawn{Fails: fails, Procs: []int{g.Between(1, 3)}}
		if fails != script.NoHost && g.OneIn(2) {
			s.Procs = append(s.Procs, g.Between(1, 2))
		}
		o.Spawns = slices.Insert(o.Spawns, g.IntN(len(o.Spawns)+1), s)
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

type generator struct {
	*script.Draws
	limits Limits
	boxed  bool // the program has short messages within one host
	strays bool // the program receives from any source, and a link between two procs is to be lost
}

func (g *generator) pick(of ...float64) float64 { return script.Pick(g.Draws, of...) }

// upTo draws a duration below d; all orders of magnitude are equally likely.
func (g *generator) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(g.IntN(int(d>>g.IntN(8)) + 1)).Round(100)
}

func (g *generator) sites(c *Case) {
	left := g.Between(1, g.limits.Procs)
	if g.IntN(12) > 0 {
		left = max(left, min(2, g.limits.Procs))
	}
	c.Sites = g.place(left, g.Between(1, 4), func(s *job.Site) {
		if own := s.Params; g.OneIn(3) {
			s.Params = g.params()
			s.Params.XSize, s.Params.MaxLinear = own.XSize, own.MaxLinear
		}
	})
	if g.OneIn(3) { // the tree of its hosts is deep
		c.Sites[0].Hosts = slices.Repeat([]int{1}, procsAt(c.Sites[:1]))
	}
	if g.OneIn(3) {
		g.makeForeign(c)
	}
}

// place distributes the procs of a job over at most so many sites. other may change all sites but
// the first.
func (g *generator) place(left, most int, other func(*job.Site)) (all []job.Site) {
	own := g.params()
	for left > 0 {
		s := job.Site{Params: own}
		if len(all) > 0 {
			other(&s)
		}
		share := left
		if len(all)+1 < most {
			share = left - g.IntN(left)
		}
		left -= share
		for share > 0 {
			n := share - g.IntN(share)
			s.Hosts = append(s.Hosts, n)
			share -= n
		}
		all = append(all, s)
	}
	return all
}

func (g *generator) params() startup.Params {
	p := startup.DefaultParams()
	switch g.IntN(6) {
	case 0, 1:
	case 2:
		p.DataLen = uint32(g.Between(1, 64))
		p.HiWater = uint32(g.Between(1, 4))
	case 3:
		p.DataLen = uint32(g.Between(1, 4))
	default:
		p.DataLen = uint32(g.Between(16, 4096))
		p.HiWater = uint32(g.Between(1, 20))
	}
	p.AckMark = min(p.AckMark, p.HiWater)
	if g.OneIn(2) {
		p.AckMark = uint32(g.Between(1, int(p.AckMark)))
	}
	if g.OneIn(3) {
		p.XSize = int32(g.Between(0, 300))
	}
	if g.OneIn(3) {
		p.MaxLinear = int32(g.Between(0, 5))
	}
	if g.OneIn(4) {
		p.TagUB = wire.Tag(g.Between(int(startup.MinTagUB), 1<<20))
	}
	return p
}

// makeForeign makes some sites foreign, but never all.
func (g *generator) makeForeign(c *Case) {
	for i := range c.Sites[1:] {
		if g.OneIn(2) {
			s := &c.Sites[i+1]
			s.Foreign = &job.Foreign{Eager: g.OneIn(2), Habits: g.OneIn(2), FalseLen: g.OneIn(2)}
			if g.OneIn(3) {
				// Above all labels of ours, or among them.
				extra := g.Between(0x50000000, 0x50000003)
				s.Foreign.Extra = []wire.Label{wire.Label(extra), 0x60000000, 0x1150 + 0x400*wire.Label(extra%4)}
			}
			for _, l := range []wire.Label{wire.LabelDataLen, wire.LabelTagUB, wire.LabelAckMark, wire.LabelHiWater} {
				if g.OneIn(6) {
					s.Foreign.Skip = append(s.Foreign.Skip, l)
				}
			}
		}
	}
	for p := c.params(); p.AckMark > p.HiWater; p = c.params() {
		// Otherwise no sender would ever be acknowledged.
		for i := range c.Sites {
			if f := c.Sites[i].Foreign; f != nil {
				f.Skip = slices.DeleteFunc(f.Skip, func(l wire.Label) bool { return l == wire.LabelAckMark })
			}
		}
	}
	if n := len(c.Sites); n > 1 && g.OneIn(2) {
		c.Sites[0], c.Sites[n-1] = c.Sites[n-1], c.Sites[0]
	}
}

func (g *generator) links() job.Links {
	near, far := g.link(50*time.Microsecond), g.link(5*time.Millisecond)
	far.Reset = g.pick(0, 0, 0.5, 1)
	l := job.Links{Server: far, Proc: near, Channel: far, Direct: far}
	if g.OneIn(2) {
		l.Direct = g.link(time.Millisecond)
	}
	if g.OneIn(2) {
		l.Server = g.link(10 * time.Millisecond)
	}
	for _, l := range []*kernel.LinkSpec{&l.Proc, &l.Direct} { // procs may lend what they send
		l.Lend = g.pick(0, 0, 0, 0.1, 0.5, 1)
	}
	return l
}

func (g *generator) link(slowest time.Duration) kernel.LinkSpec {
	s := kernel.LinkSpec{
		Delay: g.upTo(slowest), Jitter: g.upTo(slowest),
		Capacity: 64 << 10, Chop: g.pick(0, 0, 0.05, 0.3, 0.8),
	}
	if g.OneIn(2) {
		s.Capacity = g.Between(100, 5000)
	}
	return s
}
