package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A list means the same as one block for each of its hosts, in a site and at the top of a file
// with one; host blocks come after it.
func TestHostList(t *testing.T) {
	const list, block = "hosts = \"127.0.0.[2-4]\"\nprocs = 2\n", "host {\n address = \"127.0.0.9\"\n procs = 5\n}\n"
	for name, c := range map[string]struct{ site, top, want string }{
		"in the site":      {list, "", "127.0.0.2:2 127.0.0.3:2 127.0.0.4:2"},
		"at the top":       {"", list, "127.0.0.2:2 127.0.0.3:2 127.0.0.4:2"},
		"apart":            {"procs = 3\n", "hosts = \"127.0.0.2,127.0.0.2\"\n", "127.0.0.2:3 127.0.0.2:3"},
		"with a block":     {block + list, "", "127.0.0.2:2 127.0.0.3:2 127.0.0.4:2 127.0.0.9:5"},
		"block at the top": {list, block, "127.0.0.2:2 127.0.0.3:2 127.0.0.4:2 127.0.0.9:5"},
		"of the scheduler": {"hosts = env.NODES\nprocs = 1\n", "", "127.0.0.7:1 127.0.0.8:1"},
	} {
		opt := testOptions()
		opt.Environ = []string{"NODES=127.0.0.[7-8]"}
		text := c.top + "program { command = [\"/bin/true\"] }\nsite \"alpha\" {\n client = 0\n embedded_server {}\n" + c.site + "}\n"
		job, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
		if job == nil {
			t.Errorf("%s: %v", name, found)
			continue
		}
		var got []string
		for _, h := range job.Sites[0].Hosts {
			got = append(got, fmt.Sprintf("%v:%d", h.Address, h.Procs))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// All addresses of other machines in a list are one fault.
func TestHostListElsewhere(t *testing.T) {
	opt := testOptions()
	opt.Local = netip.Addr.IsLoopback
	text := "program { command = [\"/bin/true\"] }\nsite \"alpha\" {\n client = 0\n embedded_server {}\n auth \"none\" {}\n hosts = \"127.0.0.1,192.0.2.[7-9,11]\"\n procs = 1\n}\n"
	_, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
	if len(found) != 1 || found[0].Pos.Line != 6 || !strings.Contains(found[0].Problem, "are on several machines, and the others cannot reach 127.0.0.1") {
		t.Errorf("%v", found)
	}
}

// A name that is close both to a block's and to an attribute's is taken for the one whose syntax
// it has.
func TestHostOrHosts(t *testing.T) {
	for text, want := range map[string]string{
		"hosts { address = \"127.0.0.1\" }": `did you mean "host"?`,
		"host = \"127.0.0.1\"":              `did you mean "hosts"?`,
	} {
		_, found := loadText(t, "site \"a\" {\n"+text+"\n}\n")
		if len(found) == 0 || !strings.Contains(found.Err().Error(), want) {
			t.Errorf("%s: %v", text, found)
		}
	}
}

// Environment variables can give labels, numbers and truth values, although HCL takes them as
// text.
func TestEnvironmentIsTyped(t *testing.T) {
	opt := testOptions()
	opt.Environ = []string{"SITE=1", "NAME=gpu", "PROCS= 010 ", "BOARD=false"}
	text := "program { command = [\"/bin/true\"] }\njob {\n auth \"none\" {}\n server = \"127.0.0.1:80\"\n}\n" +
		"site \"alpha-${env.NAME}${\"}\"== \"\" ? \"\" : \".x\"}\" { client = \"${env.SITE}\"  host { address = \"127.0.0.${env.SITE}\"  procs = env.PROCS  board = env.BOARD } }\nroute \"${env.NAME}\" {}\n"
	job, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
	if job == nil {
		t.Fatal(found)
	}
	s := job.Sites[0]
	if h := s.Hosts[0]; s.Name != "alpha-gpu.x" || s.Client != 1 || h.Procs != 10 || !h.NoBoard || s.Routes[0].Site != "gpu" {
		t.Errorf("%+v", s)
	}
}

func TestSiteNamesOfTheEnvironment(t *testing.T) {
	t.Setenv("NAME", "x")
	path := filepath.Join(t.TempDir(), "job.hcl")
	text := "site \"a-${env.NAME}\" {}\nsite \"b\" { foreign = true }\nsite \"c\" { foreign = env.NAME }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := SiteNames(path); err != nil || !slices.Equal(got, []string{"a-x", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("NAME", "x y")
	if got, err := SiteNames(path); err == nil || !strings.Contains(err.Error(), `NAME is "x y"`) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestHostsOfAScheduler: a site with a scheduler and without hosts takes the scheduler's, and has
// none if the scheduler gives none; its key can be drawn, as its head sends it to the others.
func TestHostsOfAScheduler(t *testing.T) {
	opt := testOptions()
	text := []byte(`job { embedded_server {} }
program { command = ["./prog"] }
site "alpha" {
  client = 0
  launch "slurm" {}
}
`)
	opt.Local = func(netip.Addr) bool { return false }
	for _, given := range [][]Host{nil, {{Address: netip.MustParseAddr("192.0.2.1"), Procs: 2}, {Address: netip.MustParseAddr("192.0.2.2"), Procs: 3}}} {
		opt.Allocation = func(site string, l Launch) []Host {
			if site != "alpha" || l.Engine != LaunchSlurm {
				t.Errorf("asked for site %q, %+v", site, l)
			}
			return given
		}
		job, diags := LoadText("/x/job.hcl", text, opt)
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		s := job.Sites[0]
		if len(s.Hosts) != len(given) || len(given) > 0 && (s.Procs() != 5 || s.Hosts[1].Address != given[1].Address) || !s.Auth.Random {
			t.Errorf("hosts %+v, auth %+v", s.Hosts, s.Auth)
		}
	}
}
