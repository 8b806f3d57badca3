package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// jobOn makes the job of a command line without a file, on machines.
func jobOn(t *testing.T, procs int, on string) (*config.Job, config.Diagnostics) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return withoutFile(&options{procs: procs, command: []string{self}, on: on})
}

func TestOnMachines(t *testing.T) {
	job, found := jobOn(t, 3, `{"engine":"ssh","hosts":[{"name":"a","user":"me","procs":1},{"name":"b","address":"10.0.0.2","procs":2}]}`)
	if found.HasErrors() {
		t.Fatal(found)
	}
	s := job.Sites[0]
	if names := s.Unknown(); len(names) != 1 || names[0].Name != "a" || s.Launch.Engine != "ssh" || s.Launch.Users["a"] != "me" || s.Hosts[1].Address.String() != "10.0.0.2" {
		t.Errorf("%+v %+v", s.Hosts, s.Launch)
	}
	for name, c := range map[string]struct{ a, here, want string }{
		"right":    {"10.0.0.1", "10.0.0.1", ""},
		"loopback": {"127.0.1.1", "127.0.1.1", "the other machines cannot reach a, which has an address of the loopback network"},
		"other":    {"10.0.0.1", "10.0.0.2", "the first machine of the list, a, is not this one"},
	} {
		job, _ := jobOn(t, 3, `{"engine":"ssh","hosts":[{"name":"a","procs":1},{"name":"b","address":"10.0.0.2","procs":2}]}`)
		err := resolve(job, map[string]netip.Addr{"a": netip.MustParseAddr(c.a)}, func(a netip.Addr) bool { return a.String() == c.here })
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for on, want := range map[string]string{
		`{"engine":"ssh","hosts":[{"name":"a","procs":2}]}`: "the machines have 2 procs, and the programs 3",
		`{"engine":"ssh"}`:                                  "the list has no hosts",
		`{"engine":"ssh","hosts":[{"name":"a"}]}`:           "0 procs",
		`{"engine":"rsh","hosts":[{"name":"a","procs":3}]}`: "there is no engine",
		`{"hots":1}`: "unknown field",
	} {
		if _, found := jobOn(t, 3, on); !found.HasErrors() || !strings.Contains(found[0].Problem, want) {
			t.Errorf("%s: %v, want %q", on, found, want)
		}
	}
}

// TestFileThatCannotBeRun: a program that is there is not said to be missing.
func TestFileThatCannotBeRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := impiNode(t, "", "-n", "2", path); status != statusUsage || !strings.Contains(errs, "prog\" is not executable: chmod +x ") {
		t.Errorf("status %d: %s", status, errs)
	}
}
