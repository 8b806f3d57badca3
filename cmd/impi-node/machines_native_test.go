package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// nativeApart is a job of a site of Open MPI on two machines that share no files, and of one of
// MPICH on another machine, with a program. more are words for Open MPI's launcher.
func nativeApart(t *testing.T, program string, more ...string) []*netns.Machine {
	t.Helper()
	for _, cc := range []string{"mpicc.openmpi", "mpicc.mpich"} {
		if _, err := exec.LookPath(cc); err != nil {
			skips.NotRun(t, "there is no "+cc, "apt-get install libopenmpi-dev libmpich-dev")
		}
	}
	machines := machinesApart(t, 3)
	words, env := pmixtest.MpirunBySSH(t, sshtest.StartOn(t, machines))
	for _, v := range append(env, "XDG_CACHE_HOME=/tmp/cache") {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	var launch []string
	for _, w := range append(append(words, "-n", "{procs}", "--hostfile", "{hostfile}"), more...) {
		launch = append(launch, fmt.Sprintf("%q", w))
	}
	for _, m := range machines {
		m.Put("/tmp/job.key", []byte("4242\n"), 0o600)
		m.Put("/tmp/job.hcl", fmt.Appendf(nil, `job {
  embedded_server { listen = "10.77.0.1:7800" }
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  hosts  = "10.77.0.[1-2]"
  procs  = 2
  native {
    mpicc  = "mpicc.openmpi"
    launch = [%s]
  }
}
site "beta" {
  client = 1
  hosts  = "10.77.0.3"
  procs  = 2
  native { mpicc = "mpicc.mpich" }
}
%s
program {
  command = [%q]
  env     = { %s = %q }
}
`, strings.Join(launch, ", "), patient, programApart, asProgram, program), 0o600)
	}
	return machines
}

// TestNativeSitesOfSeveralMachines: the head has the launcher start the procs of all hosts of its
// site, each of whose nodes has made the shim for itself.
func TestNativeSitesOfSeveralMachines(t *testing.T) {
	machines := nativeApart(t, "sum")
	nodes := make([]*machineNode, 3)
	for i, m := range machines {
		nodes[i] = startApart(t, m, "sum", "-config", "/tmp/job.hcl")
	}
	for i, s := range ends(nodes) {
		skipWithoutCgo(t, nodes[i].err.String())
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	for i, want := range map[int]string{0: "[alpha] sum 15\n", 2: "[beta] sum 15\n"} {
		if n := strings.Count(nodes[i].out.String(), want); n != map[int]int{0: 4, 2: 2}[i] {
			t.Errorf("machine %d has %q %d times", i, want, n)
		}
	}
	if out := nodes[1].out.String(); out != "" {
		t.Errorf("machine 1 writes by itself: %s", out)
	}
	for _, m := range machines {
		awaitEmpty(t, m)
	}
}

// TestNativeLinksOfSeveralMachines: procs of one machine use shared memory, and those of two
// machines the site's own MPI, for which links has the reasons.
func TestNativeLinksOfSeveralMachines(t *testing.T) {
	machines := nativeApart(t, "exchange")
	nodes := make([]*machineNode, 3)
	for i, m := range machines {
		nodes[i] = startApart(t, m, "exchange", "-config", "/tmp/job.hcl")
	}
	for i, want := range map[int]int{0: 4, 2: 2} {
		nodes[i].awaitsTimes(t, nodes[i].out, "] ready\n", want)
	}
	status, out, errs := nodes[0].command(t, machines[0], "links", "-json", "-deadline", "60s")
	var got links.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusOK || len(got.Jobs) != 1 {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
	}
	by := map[[2]int]string{}
	for _, p := range got.Jobs[0].Pairs {
		by[[2]int{p.A, p.B}] = p.Transport
	}
	for pair, want := range map[[2]int]string{
		{0, 1}: "shm", {2, 3}: "shm", {0, 2}: "native (Open MPI", {0, 3}: "native (Open MPI", {1, 2}: "native (Open MPI", {1, 3}: "native (Open MPI", {0, 4}: "tcp",
	} {
		if !strings.HasPrefix(by[pair], want) {
			t.Errorf("ranks %v use %q, want %q", pair, by[pair], want)
		}
	}
	status, out, errs = nodes[0].command(t, machines[0], "links", "-explain", "-deadline", "60s")
	for _, want := range []string{
		"not needed: shm is faster within a machine than the site's own MPI; \"native\" first in the route's prefer changes that",
		"it is preferred unless shared memory is possible",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("status %d: %q is missing in\n%s%s", status, want, out, errs)
		}
	}
	for _, n := range nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	ends(nodes)
}

// TestNativeProcsOnOtherHosts: the operator is told where a launcher has placed procs that the file
// has elsewhere.
func TestNativeProcsOnOtherHosts(t *testing.T) {
	machines := nativeApart(t, "sum", "--map-by", "node")
	nodes := make([]*machineNode, 3)
	for i, m := range machines {
		nodes[i] = startApart(t, m, "sum", "-config", "/tmp/job.hcl")
	}
	statuses := ends(nodes)
	skipWithoutCgo(t, nodes[0].out.String())
	const says = "site alpha: the launcher of its own MPI has placed rank "
	if err := nodes[0].err.String(); statuses[0] != ending.StatusConfig || !strings.Contains(err, says) || !strings.Contains(err, "give it the hosts in the order of the file") {
		t.Errorf("status %d\n%s", statuses[0], err)
	}
	for _, m := range machines {
		awaitEmpty(t, m)
	}
}

// theirs are files that Open MPI and MPICH may leave behind if their processes are killed: folders
// of sessions, and shared memory. They do so without impi, too.
var theirs = regexp.MustCompile(`^/(tmp/ompi\.|dev/shm/(vader_segment|sm_segment|mpich_))`)

// TestNothingIsLeftOfNativeSites: whatever is killed, on no machine a process is left, nor a file
// of ours.
func TestNothingIsLeftOfNativeSites(t *testing.T) {
	node := func(line, env string) bool { return strings.Contains(line, "-config\x00") }
	proc := func(line, env string) bool {
		return strings.Contains(env, native.Variable+"=") && strings.HasPrefix(line, programApart+"\x00")
	}
	for name, c := range map[string]struct {
		machine int
		is      func(line, env string) bool
		soak    bool
	}{
		"the launcher": {0, func(line, _ string) bool {
			return strings.Contains(line, "mpirun.openmpi\x00") && !strings.Contains(line, "-config\x00")
		}, false},
		"the head":          {0, node, false},
		"another node":      {1, node, true},
		"a proc":            {1, proc, true},
		"the node of MPICH": {2, node, true},
		"a proc of MPICH":   {2, proc, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.soak {
				soak.SkipUnlessSoak(t, "make test kills the head")
			}
			machines := nativeApart(t, "exchange")
			nodes, before := make([]*machineNode, 3), map[*netns.Machine][]string{}
			for i, m := range machines {
				before[m] = append(filesOn(t, m), "/tmp/cache", "/run/impi-0/lock")
				nodes[i] = startApart(t, m, "exchange", "-config", "/tmp/job.hcl")
			}
			for i, want := range map[int]int{0: 4, 2: 2} {
				nodes[i].awaitsTimes(t, nodes[i].out, "] ready\n", want)
			}
			killed := 0
			for _, pid := range pidsOn(machines[c.machine]) {
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				env, _ := os.ReadFile("/proc/" + pid + "/environ")
				if number, _ := strconv.Atoi(pid); killed == 0 && c.is(string(line), string(env)) && syscall.Kill(number, syscall.SIGKILL) == nil {
					killed++
				}
			}
			if killed == 0 {
				t.Fatal("there is no such process")
			}
			for i, s := range ends(nodes) {
				if s == 0 {
					t.Errorf("machine %d: status 0", i)
				}
			}
			for i, m := range machines {
				awaitEmpty(t, m)
				if i == c.machine { // the next node here removes what one that is killed leaves in its run directory
					m.Put("/tmp/job.hcl", fmt.Appendf(nil, "job { embedded_server {} }\nprogram { command = [%q] }\nsite \"a\" {\n  client = 0\n  host {\n    address = \"127.0.0.1\"\n    procs = 1\n  }\n}\n", programApart), 0o600)
					ends([]*machineNode{startApart(t, m, "hello", "-config", "/tmp/job.hcl")})
				}
				for _, f := range filesOn(t, m) {
					if !theirs.MatchString(f) && !slices.Contains(before[m], f) {
						t.Errorf("%s has %s left", m.Address, f)
					}
				}
			}
		})
	}
}

// filesOn lists the files on a machine that is apart, in folders as deep as ours.
func filesOn(t *testing.T, m *netns.Machine) (files []string) {
	t.Helper()
	for _, pattern := range []string{"/dev/shm/*", "/run/impi-*/*", "/tmp/*"} {
		found, err := filepath.Glob(m.Path(pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			files = append(files, strings.TrimPrefix(f, m.Path("")))
		}
	}
	return files
}

// TestNativePhasesOfSeveralMachines: members of two machines do the part inside of their site by
// the site's MPI, those that share memory among them.
func TestNativePhasesOfSeveralMachines(t *testing.T) {
	machines := nativeApart(t, "sum")
	shim := filepath.Join(t.TempDir(), "shim.so")
	if out, err := exec.CommandContext(t.Context(), "mpicc.openmpi", "-shared", "-fPIC", "-DIMPI_NATIVE_TRACE", "-o", shim, "../../internal/native/shim/shim.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	library, err := os.ReadFile(shim)
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]*machineNode, 3)
	for i, m := range machines {
		job, err := os.ReadFile(m.Path("/tmp/job.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		m.Put("/tmp/job.hcl", []byte(strings.Replace(string(job), `"mpicc.openmpi"`, "\"mpicc.openmpi\"\n    shim   = \"/tmp/shim.so\"", 1)), 0o600)
		m.Put("/tmp/shim.so", library, 0o755)
		nodes[i] = startApart(t, m, "sum", "-config", "/tmp/job.hcl")
	}
	for i, s := range ends(nodes) {
		skipWithoutCgo(t, nodes[i].err.String())
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	out := nodes[0].out.String() + nodes[0].err.String()
	for _, want := range []string{"sum 15", "impi_native: reduce", "impi_native: bcast"} {
		if n := strings.Count(out, want+"\n"); n != 4 {
			t.Errorf("%d procs have said %q", n, want)
		}
	}
}
