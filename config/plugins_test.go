package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/pluginlock"
)

// What a transport gets of the lock file, and what is wrong with the file.
func TestLockedPlugins(t *testing.T) {
	sum, other := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	here := pluginlock.Platform()
	site := "site \"a\" {\n  client = 0\n  embedded_server {}\n  auth \"none\" {}\n  host {\n    address = \"127.0.0.2\"\n    procs = 1\n  }\n}\nprogram { command = [\"/bin/true\"] }\n"
	plugin := "plugin \"ofi\" {\n  source = \"./mirror\"\n  version = \"~> 1.2\"\n}\n"
	locked := func(version, platform, sum string) *pluginlock.Lock {
		return &pluginlock.Lock{Plugins: map[string]pluginlock.Entry{"ofi": {Source: "./mirror", Version: version, SHA256: map[string]string{platform: sum}}}}
	}
	for name, c := range map[string]struct {
		text string
		lock *pluginlock.Lock
		want string // of the fault
	}{
		"its own name":            {plugin + `transport "ofi" {}`, locked("1.2.3", here, sum), ""},
		"another name":            {plugin + `transport "fabric" { plugin = "ofi" }`, locked("1.2.3", here, sum), ""},
		"in a folder":             {"plugin_dir = \"plugins\"\n" + plugin + `transport "ofi" {}`, locked("1.2.3", here, sum), ""},
		"not used":                {plugin, nil, ""},
		"not installed":           {plugin + `transport "ofi" {}`, locked("1.2.4", here, sum), `plugin "ofi" 1.2.4 is not installed`},
		"another constraint":      {plugin + `transport "ofi" {}`, locked("2.0.0", here, sum), `the job file wants "ofi" ~> 1.2, and impi.lock.hcl has 2.0.0`},
		"another platform":        {plugin + `transport "ofi" {}`, locked("1.2.3", "plan9_arm", sum), "has no checksum of plugin"},
		"not locked":              {plugin + `transport "ofi" {}`, nil, `plugin "ofi" is not in impi.lock.hcl`},
		"another checksum":        {strings.Replace(plugin, "}", "  sha256 = \""+other+"\"\n}", 1) + `transport "ofi" {}`, locked("1.2.3", here, sum), "the job file trusts 0b0b0b0b0b0b..., and impi.lock.hcl has 0a0a0a0a0a0a... for 1.2.3"},
		"that of another chip":    {strings.Replace(plugin, "}", "  sha256 = { plan9_arm = \""+other+"\" }\n}", 1) + `transport "ofi" {}`, locked("1.2.3", here, sum), ""},
		"a lock file with faults": {plugin + `transport "ofi" {}`, locked("one", here, sum), `the lock file: `},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := pluginlock.Path(filepath.Join(dir, "plugins"), "ofi", "1.2.3", here)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.lock != nil {
				if err := c.lock.Write(filepath.Join(dir, pluginlock.Name)); err != nil {
					t.Fatal(err)
				}
			}
			job := filepath.Join(dir, "job.hcl")
			if err := os.WriteFile(job, []byte(site+c.text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			j, found := Load(job, testOptions())
			if c.want != "" {
				if j != nil || len(found) != 1 || !strings.Contains(found[0].Problem, c.want) || !strings.Contains(found[0].Remedy, "impi-node plugins install -config "+job) || found[0].Source == "" {
					t.Errorf("%v", found)
				}
				return
			}
			if len(found) > 0 {
				t.Fatal(found)
			}
			for _, x := range j.Sites[0].Transports {
				if !x.Builtin && (x.Path != path || x.SHA256 != sum || x.Version != "1.2.3") {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

func TestLoadPlugins(t *testing.T) {
	all, found := LoadPlugins("testdata/full.hcl")
	if found.HasErrors() && os.Getenv("HOST_ADDRESS") == "" {
		t.Setenv("HOST_ADDRESS", "127.0.0.9")
		all, found = LoadPlugins("testdata/full.hcl")
	}
	if len(found) > 0 {
		t.Fatal(found)
	}
	dir, _ := filepath.Abs("testdata")
	if len(all.List) != 1 || all.Dir != filepath.Join(dir, "bin") || all.Lock != filepath.Join(dir, pluginlock.Name) || all.Base != dir {
		t.Errorf("%+v", all)
	}
	p := all.List[0]
	for version, want := range map[string]bool{"1.2.0": true, "1.9.9": true, "2.0.0": false, "1.1.9": false, "1.3.0-rc.1": false} {
		if v, err := pluginlock.Version(version); err != nil || p.Accepts(v) != want {
			t.Errorf("%s: %t, %v", version, !want, err)
		}
	}
	v, err := pluginlock.Version("1.3.0-rc.1")
	if free := (&Plugin{}); err != nil || free.Accepts(v) {
		t.Error("a pre-release is taken as a release")
	}
}
