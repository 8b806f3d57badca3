package startup

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// VersionFor returns the version that clients a and b use with each other: the
// highest that both list. IMPI ch.2, C_VERSION.
func (j *Job) VersionFor(a, b wire.ClientRank) wire.Version {
	va, vb := j.Clients[a].Versions, j.Clients[b].Versions
	for _, v := range slices.Backward(va) {
		if slices.Contains(vb, v) {
			return v
		}
	}
	return wire.Version00
}

// Set replaces the proc of a rank. It takes as long as listing all of them again.
func (p *Procs) Set(rank wire.WorldRank, x ProcInfo) {
	var all Procs
	for r, old := range p.All() {
		if r == rank {
			old = x
		}
		all.Add(old)
	}
	*p = all
}
