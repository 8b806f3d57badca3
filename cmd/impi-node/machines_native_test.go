package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// nativeApart is a job of a site of Open MPI on two machines that share no files, and of one of MPICH on
// another machine, with a program. more are words for Open MPI's launcher.
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

// TestNativeSitesOfSeveralMachines: the head has the launcher start the procs of all hosts of its site,
// each of whose nodes has made the shim for itself.
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

// TestNativeLinksOfSeveralMachines: procs of one machine use shared memory, and those of two machines the
// site's own MPI, for which links has the reasons.
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

// TestNativeProcsOnOtherHosts: the operator is told where a launcher has placed procs that the file has
// elsewhere.
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
