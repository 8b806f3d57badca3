package sim

import "github.com/openimpi/impi/internal/sim/script"

// program makes what the procs of a case do. Short programs are more frequent:
// they find as much, and sooner. Where packets are tiny, messages are few and
// short: it is packets that take time.
func (g *generator) program(c *Case) *script.Program {
	o := script.Options{
		Procs: c.Procs(), DataLen: int(min(c.params().DataLen, maxLength)), Steps: g.between(1, max(1, g.limits.Steps>>g.rng.IntN(4))),
	}
	if o.DataLen < 16 {
		o.MaxBytes = 64 + 16*o.DataLen
	}
	return script.Generate(g.rng, o)
}

// maxLength is about the longest packet that programs fill.
const maxLength = 16 << 10
