package startup

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func TestAnnounce(t *testing.T) {
	other, more := wire.Version{Major: 1}, wire.Version{Major: 2, Minor: 1}
	usual := []wire.Version{wire.OnDemandVersion, wire.FailVersion, wire.LostVersion, wire.AskVersion}
	var many []wire.Version
	for i := range uint32(MaxVersions - 2 - 3) {
		many = append(many, wire.Version{Major: 1 + i})
	}
	for _, x := range []struct {
		name string
		a    Abilities
		file []wire.Version
		want []wire.Version
	}{
		{"as usual", Abilities{}, nil, usual},
		{"with allowances", Abilities{Allowances: true}, nil, []wire.Version{wire.OnDemandVersion, wire.AllowsVersion, wire.FailVersion, wire.LostVersion, wire.AskVersion}},
		{"a job that survives", Abilities{Survives: true}, nil, []wire.Version{wire.OnDemandVersion, wire.FailVersion, wire.LostVersion, wire.SurviveVersion, wire.AskVersion}},
		{"the draft", Abilities{Draft: true, Allowances: true}, nil, []wire.Version{wire.OnDemandVersion}},
		{"those of the file come first", Abilities{}, []wire.Version{more, other}, append([]wire.Version{more, other}, usual...)},
		{"numbers of ours in the file", Abilities{}, []wire.Version{wire.Version00, wire.PrivateVersion, wire.SurviveVersion, wire.AllowsVersion, other}, append([]wire.Version{other}, usual...)},
		{"as another MPI", Abilities{Foreign: true, Allowances: true, Survives: true}, []wire.Version{other, wire.AskVersion}, []wire.Version{other}},
		{"no more than there is room for", Abilities{}, many, append(slices.Clone(many), usual[:3]...)},
		{"no room", Abilities{}, append(slices.Clone(many), many...), append(slices.Clone(many), many...)},
	} {
		if got := x.a.Announce(x.file); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}
