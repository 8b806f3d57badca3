package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch"
)

// TestBind asks procs which CPUs they may run on: those of one command have a core each, those
// of two sites too, and where there are fewer cores than procs all have all, with a warning.
func TestBind(t *testing.T) {
	cores, err := launch.Cores()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range cores {
		all = append(all, fmt.Sprint(c))
	}
	run := func(procs int, args ...string) {
		t.Helper()
		status, out, said := impiNode(t, "cpus", args...)
		distinct := map[string]bool{}
		for line := range strings.Lines(out) {
			distinct[strings.TrimSpace(line)] = true
		}
		few := strings.Contains(said, "fewer cores than procs")
		if status != 0 || few != (procs > len(cores)) {
			t.Fatalf("%d procs on %d cores: status %d, %s", procs, len(cores), status, said)
		}
		if few && len(distinct) != 1 || !few && len(distinct) != procs {
			t.Errorf("%d procs on %d cores: %s", procs, len(cores), out)
		}
		for cpus := range distinct {
			if !few && !strings.Contains(strings.Join(all, "\n"), cpus) {
				t.Errorf("%s is no core of %v", cpus, all)
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run(len(cores), "-no-prefix", "-bind", "core", "-n", fmt.Sprint(len(cores)), "--", self)
	run(len(cores)+1, "-no-prefix", "-bind", "core", "-n", fmt.Sprint(len(cores)+1), "--", self)
	run(2, "-no-prefix", "-config", file(t, strings.Replace(twoSites, `["PROGRAM"]`, `["PROGRAM"]`+` bind = "core"`, 1)))
}
