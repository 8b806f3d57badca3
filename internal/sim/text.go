package sim

import (
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// String is the case as text, which Parse reads: the job, the faults and then
// the program.
func (c *Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n", c.Seed)
	fmt.Fprintf(&b, "job key=%s direct=%s dialfail=%v chunk=%d\n", yes(c.Key), yes(c.Direct), c.DialFail, c.Chunk)
	if r := c.Resume; r != nil {
		fmt.Fprintf(&b, "resume window=%d again=%v limit=%v cuts=%v\n", r.Window, r.Again, r.Limit, r.Cuts)
	}
	links := c.Links
	for _, l := range linkNames {
		if s := l.of(&links); *s != (kernel.LinkSpec{}) {
			fmt.Fprintf(&b, "link %s delay=%v jitter=%v capacity=%d chop=%v lend=%v reset=%v\n", l.name, s.Delay, s.Jitter, s.Capacity, s.Chop, s.Lend, s.Reset)
		}
	}
	for i := range c.Sites {
		fmt.Fprintln(&b, siteText(&c.Sites[i]))
	}
	for _, f := range c.Faults {
		fmt.Fprintf(&b, "fault %v\n", f)
	}
	if c.Program != nil {
		b.WriteString(c.Program.String())
	}
	return b.String()
}

// linkNames are the kinds of link, as they are written.
var linkNames = []struct {
	name string
	of   func(l *job.Links) *kernel.LinkSpec
}{
	{"server", func(l *job.Links) *kernel.LinkSpec { return &l.Server }},
	{"proc", func(l *job.Links) *kernel.LinkSpec { return &l.Proc }},
	{"channel", func(l *job.Links) *kernel.LinkSpec { return &l.Channel }},
	{"direct", func(l *job.Links) *kernel.LinkSpec { return &l.Direct }},
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// siteText leaves out what is as usual.
func siteText(s *job.Site) string {
	text := "site hosts=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Hosts), " ", ","), "[]")
	usual, p := startup.DefaultParams(), s.Params
	if p != (startup.Params{}) {
		for _, n := range paramNames {
			if v := n.get(&p); v != n.get(&usual) {
				text += fmt.Sprintf(" %s=%d", n.name, v)
			}
		}
	}
	if s.NoDirect {
		text += " direct=no"
	}
	if f := s.Foreign; f != nil {
		text += fmt.Sprintf(" foreign=%s", foreignText(f))
	}
	return text
}

func foreignText(f *job.Foreign) string {
	manners := []string{"yes"}
	for _, m := range mannerNames {
		if *m.of(f) {
			manners = append(manners, m.name)
		}
	}
	for _, l := range f.Skip {
		manners = append(manners, fmt.Sprintf("skip:%#x", uint32(l)))
	}
	for _, l := range f.Extra {
		manners = append(manners, fmt.Sprintf("extra:%#x", uint32(l)))
	}
	return strings.Join(manners, ",")
}

// mannerNames are what a foreign site may do, as it is written.
var mannerNames = []struct {
	name string
	of   func(f *job.Foreign) *bool
}{
	{"eager", func(f *job.Foreign) *bool { return &f.Eager }},
	{"habits", func(f *job.Foreign) *bool { return &f.Habits }},
	{"falselen", func(f *job.Foreign) *bool { return &f.FalseLen }},
}

// paramNames are the parameters of a site, as they are written.
var paramNames = []struct {
	name string
	get  func(p *startup.Params) int64
	set  func(p *startup.Params, v int64)
}{
	{"datalen", func(p *startup.Params) int64 { return int64(p.DataLen) }, func(p *startup.Params, v int64) { p.DataLen = uint32(v) }},
	{"tagub", func(p *startup.Params) int64 { return int64(p.TagUB) }, func(p *startup.Params, v int64) { p.TagUB = tagOf(v) }},
	{"xsize", func(p *startup.Params) int64 { return int64(p.XSize) }, func(p *startup.Params, v int64) { p.XSize = int32(v) }},
	{"maxlinear", func(p *startup.Params) int64 { return int64(p.MaxLinear) }, func(p *startup.Params, v int64) { p.MaxLinear = int32(v) }},
	{"ackmark", func(p *startup.Params) int64 { return int64(p.AckMark) }, func(p *startup.Params, v int64) { p.AckMark = uint32(v) }},
	{"hiwater", func(p *startup.Params) int64 { return int64(p.HiWater) }, func(p *startup.Params, v int64) { p.HiWater = uint32(v) }},
}
