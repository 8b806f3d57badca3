package sim

import (
	"slices"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

// Shrink makes a failing case smaller, as long as the same oracle finds fault
// with it, until nothing helps or time is over. It gives the smallest one that
// it has found, which may be c itself, and how many it has run.
func Shrink(c *Case, oracle string, budget time.Duration) (smallest *Case, runs int) {
	s := &shrinker{best: c, oracle: oracle, end: time.Now().Add(budget), run: Run}
	for s.round() {
	}
	return s.best, s.runs
}

type shrinker struct {
	best   *Case
	oracle string
	end    time.Time
	runs   int
	run    func(c *Case, o Options) *Verdict
}

// tries is how many seeds a smaller case is run with: it takes other ways
// through chance than the case it was made from.
const tries = 3

func (s *shrinker) over() bool { return !time.Now().Before(s.end) }

// fails tells whether a case fails in the same way, and keeps it then.
func (s *shrinker) fails(c *Case) bool {
	if c.Check() != nil {
		return false
	}
	for i := range uint64(tries) {
		if s.over() {
			return false
		}
		try := c.clone()
		try.Seed += i
		s.runs++
		if f := s.run(try, Options{Twice: s.oracle == "repeat"}).Failure; f != nil && f.Oracle == s.oracle {
			s.best = try
			return true
		}
	}
	return false
}

// round tries everything once and tells whether anything helped.
func (s *shrinker) round() (better bool) {
	for i := len(s.best.Faults) - 1; i >= 0; i-- {
		better = s.try(func(c *Case) { c.Faults = slices.Delete(c.Faults, i, i+1) }) || better
	}
	better = s.program() || better
	for _, simpler := range simplifications {
		better = s.try(simpler) || better
	}
	for i := range s.best.Sites {
		for _, simpler := range siteSimplifications {
			better = s.try(func(c *Case) {
				if i < len(c.Sites) {
					simpler(&c.Sites[i])
				}
			}) || better
		}
	}
	return better && !s.over()
}

// try runs the best case with a change, if that makes a difference.
func (s *shrinker) try(change func(c *Case)) bool {
	c := s.best.clone()
	change(c)
	return c.String() != s.best.String() && s.fails(c)
}

// program makes the program smaller, and the sites with it.
func (s *shrinker) program() bool {
	before := s.best
	script.Shrink(s.best.Program, func(p *script.Program) bool {
		c := s.best.clone()
		c.Program = p
		c.fit(p.Procs)
		return s.fails(c)
	})
	return s.best != before
}

// fit takes procs away from the end until there are n.
func (c *Case) fit(n int) {
	for c.Procs() > max(n, 1) {
		last := &c.Sites[len(c.Sites)-1]
		h := len(last.Hosts) - 1
		if last.Hosts[h]--; last.Hosts[h] > 0 {
			continue
		}
		if last.Hosts = last.Hosts[:h]; h == 0 {
			c.Sites = c.Sites[:len(c.Sites)-1]
		}
	}
}

// simplifications of the job as a whole.
var simplifications = []func(c *Case){
	func(c *Case) { c.Key = false },
	func(c *Case) { c.Direct = false },
	func(c *Case) { c.DialFail = 0 },
	func(c *Case) { c.Resume = nil },
	func(c *Case) {
		if c.Resume != nil {
			c.Resume.Cuts = 0
		}
	},
	func(c *Case) { c.Chunk = 0 },
	func(c *Case) { c.Links = job.Links{} },
	func(c *Case) { c.Links.Server = kernel.LinkSpec{} },
	func(c *Case) { c.Links.Proc = kernel.LinkSpec{} },
	func(c *Case) { c.Links.Channel = kernel.LinkSpec{} },
	func(c *Case) { c.Links.Direct = kernel.LinkSpec{} },
	func(c *Case) { eachLink(c, func(l *kernel.LinkSpec) { l.Chop = 0 }) },
	func(c *Case) { eachLink(c, func(l *kernel.LinkSpec) { l.Lend = 0 }) },
	func(c *Case) { eachLink(c, func(l *kernel.LinkSpec) { l.Reset = 0 }) },
	func(c *Case) { eachLink(c, func(l *kernel.LinkSpec) { l.Jitter = 0 }) },
	func(c *Case) { eachLink(c, func(l *kernel.LinkSpec) { l.Capacity = 64 << 10 }) },
	func(c *Case) { eachLink(c, func(l *kernel.LinkSpec) { l.Delay = l.Delay.Round(time.Millisecond) }) },
	func(c *Case) { // the last two sites are one
		if n := len(c.Sites); n > 1 {
			c.Sites[n-2].Hosts = append(c.Sites[n-2].Hosts, c.Sites[n-1].Hosts...)
			c.Sites = c.Sites[:n-1]
		}
	},
}

func eachLink(c *Case, change func(l *kernel.LinkSpec)) {
	for _, l := range linkNames {
		if s := l.of(&c.Links); s.Capacity > 0 {
			change(s)
		}
	}
}

// siteSimplifications are those of one site.
var siteSimplifications = []func(s *job.Site){
	func(s *job.Site) { s.Foreign = nil },
	func(s *job.Site) { manners(s, func(f *job.Foreign) { f.Skip = nil }) },
	func(s *job.Site) { manners(s, func(f *job.Foreign) { f.Extra = nil }) },
	func(s *job.Site) { manners(s, func(f *job.Foreign) { f.FalseLen = false }) },
	func(s *job.Site) { manners(s, func(f *job.Foreign) { f.Eager = false }) },
	func(s *job.Site) { manners(s, func(f *job.Foreign) { f.Habits = false }) },
	func(s *job.Site) { s.NoDirect = false },
	func(s *job.Site) { s.Params = startup.DefaultParams() },
	func(s *job.Site) { s.Params.DataLen = startup.DefaultDataLen },
	func(s *job.Site) {
		s.Params.AckMark, s.Params.HiWater = startup.DefaultAckMark, startup.DefaultHiWater
	},
	func(s *job.Site) { // all procs on one host
		n := 0
		for _, h := range s.Hosts {
			n += h
		}
		s.Hosts = []int{n}
	},
}

// manners changes a copy of what is foreign.
func manners(s *job.Site, change func(f *job.Foreign)) {
	if s.Foreign != nil {
		f := *s.Foreign
		change(&f)
		s.Foreign = &f
	}
}
