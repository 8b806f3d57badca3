package spawner

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/wireup"
)

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
	open := site
	site.Spawn.Allow = []string{dir + "/bin/*"}
	listed := site
	native := open
	native.Native = &config.Native{}
	for _, tt := range []struct {
		at        config.Site
		elsewhere bool
		path      string
		info      map[string]string
		want, why string
	}{
		{at: open, path: "./tool", want: "tool"},
		{at: open, path: "bin/../tool", want: "tool"},
		{at: open, path: dir + "/tool", want: "tool"},
		{at: open, path: "./nope", why: `no program "./nope"`},
		{at: open, path: "./text", why: "not executable"},
		{at: open, path: "", why: "no name"},
		{at: open, path: "impi-there-is-none", why: "PATH"},
		{at: open, path: "tool", info: map[string]string{"path": "/nowhere:bin"}, want: "bin/tool"},
		{at: open, path: "tool", info: map[string]string{"path": "/nowhere"}, why: "/nowhere, its path"},
		{at: open, path: "./tool", info: map[string]string{"path": "bin"}, want: "tool"},
		{at: open, path: "./tool", info: map[string]string{"wdir": "bin", "arch": runtime.GOARCH}, want: "tool"},
		{at: open, path: "./tool", info: map[string]string{"wdir": "tool"}, why: "no folder"},
		{at: open, path: "./tool", info: map[string]string{"arch": "pdp11"}, why: `arch is "pdp11"`},
		{at: open, path: "./tool", info: map[string]string{"env": "B=2\nA=3\n"}, want: "tool"},
		{at: open, path: "./tool", info: map[string]string{"env": "B"}, why: "no NAME=value"},
		{at: open, path: "./tool", info: map[string]string{"env": wireup.EnvSocket + "=7"}, why: "no NAME=value"},
		{at: native, path: "./tool", why: "cannot add procs"},
		{at: open, elsewhere: true, path: "./tool", why: "lets no other site spawn"},
		{at: listed, path: "./tool", why: "not in the allow list"},
		{at: listed, path: "bin/tool", want: "bin/tool"},
		{at: listed, elsewhere: true, path: "bin/tool", want: "bin/tool"},
		{at: listed, elsewhere: true, path: "bin/../tool", why: "not in the allow list"},
		{at: listed, elsewhere: true, path: "bin/tool", info: map[string]string{"env": "LD_PRELOAD=x"}, why: "env is only for procs spawned at the site"},
	} {
		p, why := programOf(&tt.at, &spawn.Command{Path: tt.path, Args: []string{"x"}, Info: tt.info}, tt.elsewhere)
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
