package startup

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Abilities are what a site can do beyond IMPI, which it announces as versions (IMPI ch.2,
// C_VERSION).
type Abilities struct {
	Foreign    bool // it behaves as another MPI's site: it announces nothing of this
	Draft      bool // it writes packets as the draft has them, which has no room for some of this
	Allowances bool // its procs keep a limited number of bytes of unexpected messages
	Survives   bool // its job goes on without lost procs
}

var extensions = []wire.Version{
	wire.AllowsVersion, wire.OnDemandVersion, wire.FailVersion, wire.LostVersion, wire.SurviveVersion, wire.AskVersion,
}

// Announce returns the versions that a site lists beside 0.0 and ours: those that its job file has,
// except numbers that mean abilities, and then its abilities, as far as there is room in the list.
func (a Abilities) Announce(file []wire.Version) (list []wire.Version) {
	for _, v := range file {
		if v != wire.Version00 && v != wire.PrivateVersion && !slices.Contains(extensions, v) {
			list = append(list, v)
		}
	}
	if a.Foreign {
		return list
	}
	able := []wire.Version{wire.OnDemandVersion}
	if !a.Draft && a.Allowances {
		able = append(able, wire.AllowsVersion)
	}
	if !a.Draft {
		able = append(able, wire.FailVersion, wire.LostVersion)
	}
	if a.Survives {
		able = append(able, wire.SurviveVersion)
	}
	if !a.Draft {
		able = append(able, wire.AskVersion)
	}
	room := max(0, MaxVersions-2-len(list)) // after 0.0 and ours
	return append(list, able[:min(room, len(able))]...)
}
