package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const spawnSite = `
site "alpha" { client = 0  embedded_server {}  auth "none" {} }
host { address = "127.0.0.1"  procs = 1 }
program { command = ["./bin/prog"] }
`

func TestSpawnBlock(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want Spawn
	}{
		{"", Spawn{Slots: DefaultSlots}},
		{"spawn {}", Spawn{Slots: DefaultSlots}},
		{"spawn { slots = 0 }", Spawn{}},
		{`spawn { allow = ["bin/*", "/opt/../usr/x"] }`, Spawn{Slots: DefaultSlots, Allow: []string{dir + "/bin/*", "/usr/x"}}},
	} {
		job, diags := loadText(t, spawnSite+tt.text)
		if len(diags) > 0 {
			t.Fatalf("%s: %v", tt.text, diags)
		}
		if got := job.Sites[0].Spawn; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v", tt.text, got)
		}
	}
	job := mustLoad(t, "testdata/full.hcl")
	if a, b := mustSite(t, job, "alpha").Spawn, mustSite(t, job, "beta").Spawn; a.Slots != 256 || b.Slots != 8 || !reflect.DeepEqual(a.Allow, b.Allow) || len(a.Allow) != 2 {
		t.Errorf("alpha has %+v, beta %+v", a, b)
	}
	_, diags := loadText(t, spawnSite+`spawn { allow = ["/bin/a", "/bin/[a"] }`)
	if len(diags) != 1 || !strings.Contains(diags[0].Problem, `"/bin/[a" is no pattern`) || diags[0].Pos.Column < 27 {
		t.Errorf("%+v", diags)
	}
}

func TestSpawnAllows(t *testing.T) {
	list := Spawn{Allow: []string{"/opt/*", "/usr/bin/work?r"}}
	for _, tt := range []struct {
		s          Spawn
		path       string
		own, guest bool
	}{
		{Spawn{}, "/bin/sh", true, false},
		{list, "/opt/a", true, true},
		{list, "/opt/a/b", false, false},
		{list, "/usr/bin/worker", true, true},
		{list, "/bin/sh", false, false},
		{Spawn{Allow: []string{}}, "/bin/sh", false, false},
	} {
		if own, guest := tt.s.Allows(tt.path, false), tt.s.Allows(tt.path, true); own != tt.own || guest != tt.guest {
			t.Errorf("%v allows %s: %t, guests %t", tt.s.Allow, tt.path, own, guest)
		}
	}
}
