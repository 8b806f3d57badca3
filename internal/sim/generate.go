package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Limits bound what Generate makes. Zero values are the defaults.
type Limits struct {
	Procs int // most procs of a job; DefaultProcs
	Steps int // about as many steps in a program at most; DefaultSteps
	// NoFaults leaves faults out, and changes nothing else of a seed's case.
	NoFaults bool
}

// Defaults of Limits.
const (
	DefaultProcs = 12
	DefaultSteps = 120
)

func (l Limits) withDefaults() Limits {
	if l.Procs == 0 {
		l.Procs = DefaultProcs
	}
	if l.Steps == 0 {
		l.Steps = DefaultSteps
	}
	return l
}

// stream is which of the sequences of random numbers of a seed makes cases.
// Another one is the world's.
const stream = 0x63617365

// Generate makes the case of a seed.
func Generate(seed uint64, l Limits) *Case {
	g := &generator{rng: rand.New(rand.NewPCG(seed, stream)), limits: l.withDefaults()}
	c := &Case{Seed: seed, Key: g.one(4), Direct: !g.one(3)}
	if c.Direct && g.one(3) {
		c.DialFail = g.pick(0.1, 0.5, 0.8)
	}
	if g.one(2) {
		c.Chunk = g.between(256, 16<<10)
	}
	g.sites(c)
	c.Links = g.links()
	lends(c)
	if g.one(4) {
		c.Resume = &job.Resume{
			Window: g.between(200, 20_000),
			Again:  time.Microsecond + g.upTo(20*time.Millisecond), Limit: 20 * time.Second,
			Cuts: g.pick(0, 0.01, 0.03), // more, and long frames never come through small links
		}
		if l.NoFaults {
			c.Resume.Cuts = 0
		}
	}
	// Faults have their own numbers, so that leaving them out changes nothing else.
	faults := rand.New(rand.NewPCG(g.rng.Uint64(), stream))
	c.Program = g.program(c)
	if !l.NoFaults {
		c.Faults = (&generator{rng: faults}).faults(c.Resume != nil)
	}
	return c
}

// generator takes decisions.
type generator struct {
	rng    *rand.Rand
	limits Limits
}

// one is true once in n.
func (g *generator) one(n int) bool { return g.rng.IntN(n) == 0 }

func (g *generator) pick(of ...float64) float64 { return of[g.rng.IntN(len(of))] }

// between gives a number from lo to hi, both included.
func (g *generator) between(lo, hi int) int { return lo + g.rng.IntN(max(hi-lo, 0)+1) }

// upTo gives a duration below d, all magnitudes alike.
func (g *generator) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(g.rng.Int64N(int64(d>>g.rng.IntN(8)) + 1)).Round(100)
}

// sites makes few sites with many procs, or many with few.
func (g *generator) sites(c *Case) {
	left := g.between(1, g.limits.Procs)
	if !g.one(12) {
		left = max(left, min(2, g.limits.Procs))
	}
	most := g.between(1, 4)
	own := g.params()
	for left > 0 {
		s := job.Site{Params: own}
		s.NoDirect = c.Direct && g.one(8)
		if len(c.Sites) > 0 && g.one(3) {
			s.Params = g.params()
			s.Params.XSize, s.Params.MaxLinear = own.XSize, own.MaxLinear
		}
		share := left
		if len(c.Sites)+1 < most {
			share = g.between(1, left)
		}
		left -= share
		for share > 0 {
			n := g.between(1, share)
			s.Hosts = append(s.Hosts, n)
			share -= n
		}
		c.Sites = append(c.Sites, s)
	}
	if g.one(3) {
		g.estrange(c)
	}
}

// params are usual, small or tiny.
func (g *generator) params() startup.Params {
	p := startup.DefaultParams()
	switch g.rng.IntN(6) {
	case 0, 1:
	case 2:
		p.DataLen = uint32(g.between(1, 64))
		p.HiWater = uint32(g.between(1, 4))
	case 3:
		p.DataLen = uint32(g.between(1, 4))
	default:
		p.DataLen = uint32(g.between(16, 4096))
		p.HiWater = uint32(g.between(1, 20))
	}
	p.AckMark = min(p.AckMark, p.HiWater)
	if g.one(2) {
		p.AckMark = uint32(g.between(1, int(p.AckMark)))
	}
	if g.one(3) {
		p.XSize = int32(g.between(0, 300))
	}
	if g.one(3) {
		p.MaxLinear = int32(g.between(0, 5))
	}
	if g.one(4) {
		p.TagUB = wire.Tag(g.between(int(startup.MinTagUB), 1<<20))
	}
	return p
}

// estrange makes some sites foreign, but not all: ours has to be there.
func (g *generator) estrange(c *Case) {
	for i := range c.Sites[1:] {
		if g.one(2) {
			s := &c.Sites[i+1]
			s.Foreign = &job.Foreign{Eager: g.one(2), Habits: g.one(2), FalseLen: g.one(2)}
			if g.one(3) {
				// Behind all labels of ours, and among them.
				extra := g.between(0x50000000, 0x50000003)
				s.Foreign.Extra = []wire.Label{wire.Label(extra), 0x60000000, 0x1150 + 0x400*wire.Label(extra%4)}
			}
			for _, l := range []wire.Label{wire.LabelDataLen, wire.LabelTagUB, wire.LabelAckMark, wire.LabelHiWater} {
				if g.one(6) {
					s.Foreign.Skip = append(s.Foreign.Skip, l)
				}
			}
		}
	}
	for p := c.params(); p.AckMark > p.HiWater; p = c.params() {
		// Nobody would ever be acknowledged. Whoever says less does not keep quiet.
		for i := range c.Sites {
			if f := c.Sites[i].Foreign; f != nil {
				f.Skip = slices.DeleteFunc(f.Skip, func(l wire.Label) bool { return l == wire.LabelAckMark })
			}
		}
	}
	if n := len(c.Sites); n > 1 && g.one(2) {
		c.Sites[0], c.Sites[n-1] = c.Sites[n-1], c.Sites[0]
	}
}

// links may be fast, slow, or different from each other.
func (g *generator) links() job.Links {
	near, far := g.link(50*time.Microsecond), g.link(5*time.Millisecond)
	far.Reset = g.pick(0, 0, 0.5, 1)
	l := job.Links{Server: far, Proc: near, Channel: far, Direct: far}
	if g.one(2) {
		l.Direct = g.link(time.Millisecond)
	}
	if g.one(2) {
		l.Server = g.link(10 * time.Millisecond)
	}
	return l
}

// lends has procs lend what they send, in half of the cases. That has its own
// numbers too.
func lends(c *Case) {
	g := &generator{rng: rand.New(rand.NewPCG(c.Seed, stream+1))}
	for _, l := range []*kernel.LinkSpec{&c.Links.Proc, &c.Links.Direct} {
		if g.one(2) {
			l.Lend = g.pick(0.1, 0.5, 1)
		}
	}
}

func (g *generator) link(slowest time.Duration) kernel.LinkSpec {
	s := kernel.LinkSpec{
		Delay: g.upTo(slowest), Jitter: g.upTo(slowest),
		Capacity: 64 << 10, Chop: g.pick(0, 0, 0.05, 0.3, 0.8),
	}
	if g.one(2) {
		s.Capacity = g.between(100, 5000)
	}
	return s
}

// faults are none for most seeds, harmless ones for some, and deadly for a third.
func (g *generator) faults(resumed bool) (all []job.Fault) {
	for range g.rng.IntN(3) * g.rng.IntN(2) {
		all = append(all, g.fault(job.Stall, job.PluginCrash))
	}
	if resumed && g.one(2) {
		for range g.between(1, 10) {
			all = append(all, g.fault(job.CutLink, job.CutLink, job.HalfClose, job.Stall))
		}
		return all
	}
	if !g.one(3) {
		return all
	}
	for range 1 + g.rng.IntN(4)/3 {
		all = append(all, g.fault(job.CrashProc, job.CrashProc, job.CrashNode, job.CrashServer, job.CutLink, job.CutLink, job.HalfClose))
	}
	return all
}

// fault happens at any time, most often when the job is running.
func (g *generator) fault(kinds ...job.FaultKind) job.Fault {
	f := job.Fault{Kind: kinds[g.rng.IntN(len(kinds))], Target: g.rng.IntN(64)}
	if g.one(3) {
		f.At = g.upTo(200 * time.Millisecond)
	} else {
		f.Event = uint64(g.between(1, 100<<g.rng.IntN(7)))
	}
	return f
}
