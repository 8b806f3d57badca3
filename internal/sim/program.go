package sim

import (
	"slices"

	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// program draws what the procs of a case do. Short programs are more frequent: they find as much,
// and sooner. Where packets are tiny, messages are few and short, as run time grows with the number
// of packets.
func (g *generator) program(c *Case) *script.Program {
	o := script.Options{
		Procs: c.Procs(), DataLen: int(min(c.params().DataLen, maxLength)), Steps: g.Between(1, max(1, g.limits.Steps>>g.IntN(4))),
	}
	switch g.IntN(16) {
	case 14:
		g.boxed, o.Weights = true, script.Weights{Shorts: 10, Messages: 1, Pauses: 1}
	case 15:
		g.strays, o.Steps = true, g.Between(1, 60)
		o.Weights = script.Weights{Tokens: 10, Wildcards: 1, Pauses: 1}
	}
	if o.DataLen < 16 {
		o.MaxBytes = 64 + 16*o.DataLen
	}
	p := script.Generate(g.T, o)
	g.windows(c, p)
	return p
}

func (g *generator) windows(c *Case, p *script.Program) {
	foreign := slices.ContainsFunc(c.Sites, func(s job.Site) bool { return s.Foreign != nil })
	length := int(c.params().DataLen)
	if foreign || !g.OneIn(3) || length < 16 && !g.OneIn(4) { // with tiny packets there would be too many
		return
	}
	most := min(512, 4+length/2)
	for range 1 + g.IntN(4)/3 {
		at := g.IntN(len(p.Steps) + 1)
		p.Steps = slices.Insert(p.Steps, at, script.Step(script.Window{Comm: script.World, Seed: g.Between(0, 1<<20), Len: g.Between(0, most>>g.IntN(4))}))
	}
}

// maxLength is about the longest packet that programs fill.
const maxLength = 16 << 10
