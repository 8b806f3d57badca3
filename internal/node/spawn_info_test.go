package node

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/wireup"
)

func TestSoft(t *testing.T) {
	for _, tt := range []struct {
		text        string
		procs, room int
		want        int
	}{
		{"", 4, 9, 4},
		{"", 4, 3, -1},
		{"0:8", 8, 5, 5},
		{"1:16:2,20", 20, 30, 30},
		{"1:16:2,20", 20, 19, 15},
		{"1:16:2,20", 20, 0, -1},
		{"7,3", 9, 5, 3},
		{"8:2:-3", 9, 7, 5},
		{" 2 , 4 ", 9, 3, 2},
	} {
		s, problem := readSoft(tt.text, tt.procs)
		if got := s.most(min(tt.procs, tt.room)); problem != "" || got != min(tt.want, tt.procs) {
			t.Errorf("%q of %d with room for %d: %d %s", tt.text, tt.procs, tt.room, got, problem)
		}
	}
	for _, text := range []string{",", "a", "1:2:3:4", "1:4:0", "99999999", "1::2", "-99999:99999"} {
		if _, problem := readSoft(text, 4); !strings.Contains(problem, "no list of numbers") {
			t.Errorf("%q: %q", text, problem)
		}
	}
}

func TestProgramOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tool", "bin/tool", "bin/other"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	site := config.Site{Name: "alpha", Program: config.Program{Dir: dir, Env: map[string]string{"A": "1"}}}
	open := &spawnService{root: &node{opt: Options{Site: site}}}
	site.Spawn.Allow = []string{dir + "/bin/*"}
	listed := &spawnService{root: &node{opt: Options{Site: site}}}
	for _, tt := range []struct {
		d         *spawnService
		guest     bool
		path      string
		info      map[string]string
		want, why string
	}{
		{d: open, path: "./tool", want: "tool"},
		{d: open, path: "bin/../tool", want: "tool"},
		{d: open, path: dir + "/tool", want: "tool"},
		{d: open, path: "./nope", why: `no program "./nope"`},
		{d: open, path: "./text", why: "not executable"},
		{d: open, path: "", why: "no name"},
		{d: open, path: "impi-there-is-none", why: "PATH"},
		{d: open, path: "tool", info: map[string]string{"path": "/nowhere:bin"}, want: "bin/tool"},
		{d: open, path: "tool", info: map[string]string{"path": "/nowhere"}, why: "/nowhere, its path"},
		{d: open, path: "./tool", info: map[string]string{"path": "bin"}, want: "tool"},
		{d: open, path: "./tool", info: map[string]string{"wdir": "bin", "arch": runtime.GOARCH}, want: "tool"},
		{d: open, path: "./tool", info: map[string]string{"wdir": "tool"}, why: "no folder"},
		{d: open, path: "./tool", info: map[string]string{"arch": "pdp11"}, why: `arch is "pdp11"`},
		{d: open, path: "./tool", info: map[string]string{"env": "B=2\nA=3\n"}, want: "tool"},
		{d: open, path: "./tool", info: map[string]string{"env": "B"}, why: "no NAME=value"},
		{d: open, path: "./tool", info: map[string]string{"env": wireup.EnvSocket + "=7"}, why: "no NAME=value"},
		{d: open, guest: true, path: "./tool", why: "lets no other site spawn"},
		{d: listed, path: "./tool", why: "not in the allow list"},
		{d: listed, path: "bin/tool", want: "bin/tool"},
		{d: listed, guest: true, path: "bin/tool", want: "bin/tool"},
		{d: listed, guest: true, path: "bin/../tool", why: "not in the allow list"},
		{d: listed, guest: true, path: "bin/tool", info: map[string]string{"env": "LD_PRELOAD=x"}, why: "one's own site"},
	} {
		p, why := tt.d.programOf(&wireup.Command{Path: tt.path, Args: []string{"x"}, Info: tt.info}, tt.guest)
		switch {
		case tt.why != "":
			if !strings.Contains(why, tt.why) {
				t.Errorf("%s %v: %q, want %q", tt.path, tt.info, why, tt.why)
			}
		case why != "" || p.Path != filepath.Join(dir, tt.want) || len(p.Command) != 2:
			t.Errorf("%s %v: %+v, %s", tt.path, tt.info, p, why)
		case tt.info["wdir"] != "" && p.Dir != dir+"/bin", tt.info["env"] != "" && (p.Env["A"] != "3" || p.Env["B"] != "2"):
			t.Errorf("%s %v: %+v", tt.path, tt.info, p)
		}
	}
	if site.Program.Env["A"] != "1" {
		t.Error("the site's own environment has changed")
	}
}
