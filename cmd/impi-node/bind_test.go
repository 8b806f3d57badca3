package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
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

// cpusOf lists the CPUs of cores as taskset takes them.
func cpusOf(cores ...unix.CPUSet) string {
	var list []string
	for _, core := range cores {
		for cpu, left := 0, core.Count(); left > 0; cpu++ {
			if core.IsSet(cpu) {
				list = append(list, fmt.Sprint(cpu))
				left--
			}
		}
	}
	return strings.Join(list, ",")
}

// TestBindOnMachines: the procs of each machine have cores of that machine, however many procs and
// cores the others have. A machine with fewer cores than procs says so, and its procs alone have
// all of them.
func TestBindOnMachines(t *testing.T) {
	skips.Program(t, "taskset")
	cores, err := launch.Cores()
	if err != nil {
		t.Fatal(err)
	}
	if len(cores) < 2 {
		skips.NotRun(t, "there is one core", "run the tests on two cores")
	}
	first, last := cores[0], cores[len(cores)-1]
	both := first
	for i := range both {
		both[i] |= last[i]
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	machines := netns.New(t, 4)
	has := []string{cpusOf(last), cpusOf(both), cpusOf(first), cpusOf(both)} // of each machine
	want := []unix.CPUSet{last, first, last, first, both, both, both}        // by rank
	for name, c := range map[string]struct {
		program, site string
		starts        int // machines where something is started by hand
		args          []string
	}{
		"by hand": {`bind = "core"`, "", 4, nil},
		"by exec": {"", fmt.Sprintf("launch \"exec\" {\n    command = [%q, \"{host}\"]\n    program = \"NODE\"\n  }", enterBy(t, machines)), 1, []string{"-bind", "core"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			node, file := filepath.Join(dir, "node"), filepath.Join(dir, "job.hcl")
			script := "#!/bin/sh\ncase $(hostname) in\n"
			for i, m := range machines {
				script += fmt.Sprintf("%s) cpus=%s ;;\n", m.Name, has[i])
			}
			script += "esac\n" + asNode + "=1 exec taskset -c $cpus " + self + ` "$@"` + "\n"
			job := fmt.Sprintf(`job {
  embedded_server { listen = "10.77.0.1:7800" }
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  host {
    address = "10.77.0.1"
    procs   = 1
  }
  host {
    address = "10.77.0.2"
    procs   = 2
  }
  host {
    address = "10.77.0.3"
    procs   = 1
  }
  host {
    address = "10.77.0.4"
    procs   = 3
  }
  %s
}
program {
  command = [%q]
  %s
}
%s`, strings.Replace(c.site, "NODE", node, 1), self, c.program, patient)
			err := errors.Join(os.WriteFile(node, []byte(script), 0o700), os.WriteFile(file, []byte(job), 0o600), os.WriteFile(filepath.Join(dir, "job.key"), []byte("4242\n"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			nodes := make([]*machineNode, c.starts)
			for i := range nodes {
				nodes[i] = startNodeOf(t, node, machines[i], "cpus", "", append([]string{"-config", file}, c.args...)...)
			}
			log := ""
			for i, s := range ends(nodes) {
				if s != 0 {
					t.Errorf("machine %d: status %d", i, s)
				}
				log += nodes[i].err.String()
			}
			for rank, cpus := range want {
				if !strings.Contains(nodes[0].out.String(), fmt.Sprintf("[%d] %v\n", rank, cpus)) {
					t.Errorf("rank %d does not have %s", rank, cpusOf(cpus))
				}
			}
			if n := strings.Count(log, "fewer cores than procs"); n != 1 || !strings.Contains(log, "host=10.77.0.4 site=alpha cores=2 procs=3") {
				t.Errorf("%d warnings of too few cores, want that of 10.77.0.4", n)
			}
		})
	}
}
