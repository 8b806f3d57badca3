package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// nativeApart is a job of a site of Open MPI on two machines that share no files, and of one of MPICH on
// another machine. more are words for Open MPI's launcher.
func nativeApart(t *testing.T, more ...string) []*netns.Machine {
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
  env     = { %s = "sum" }
}
`, strings.Join(launch, ", "), patient, programApart, asProgram), 0o600)
	}
	return machines
}

// TestNativeSitesOfSeveralMachines: the head has the launcher start the procs of all hosts of its site,
// each of whose nodes has made the shim for itself.
func TestNativeSitesOfSeveralMachines(t *testing.T) {
	machines := nativeApart(t)
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

// TestNativeProcsOnOtherHosts: the operator is told where a launcher has placed procs that the file has
// elsewhere.
func TestNativeProcsOnOtherHosts(t *testing.T) {
	machines := nativeApart(t, "--map-by", "node")
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
