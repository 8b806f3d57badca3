package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/netns"
)

// rewriteOn changes the job file of a machine that is apart.
func rewriteOn(t *testing.T, m *netns.Machine, change ...string) {
	t.Helper()
	rewrite(t, m.Path("/tmp/job.hcl"), change...)
}

// reloadOn runs impi-node reload on a machine.
func (n *machineNode) reloadOn(t *testing.T, m *netns.Machine) (status int, out, errs string) {
	t.Helper()
	return n.command(t, m, "reload")
}

// TestReloadOnMachines: the hosts of a site, each with a file of its own, change together or not at all,
// from whichever of them the command comes.
func TestReloadOnMachines(t *testing.T) {
	machines := jobApart(t, "", 0, 1, 2, 3, 4, 5)
	nodes := make([]*machineNode, 6)
	for i, m := range machines {
		nodes[i] = startApart(t, m, "sum and stay", "-config", "/tmp/job.hcl")
	}
	nodes[0].awaitsTimes(t, nodes[0].out, "sum ", 6)
	nodes[3].awaitsTimes(t, nodes[3].out, "sum ", 6)

	for _, m := range machines[:2] {
		rewriteOn(t, m, "limits {", "log { level = \"debug\" }\nroute \"*\" { prefer = [\"tcp\"] }\nlimits {\n stop = \"9s\"\n")
	}
	status, out, errs := nodes[1].reloadOn(t, machines[1])
	if status != statusBad || out != "" || !strings.Contains(errs, "site alpha, host 10.77.0.3: its file says other routes or limits than that of the head, 10.77.0.1") ||
		!strings.Contains(errs, "site alpha: nothing has changed") {
		t.Errorf("a host has another file: status %d\n%s%s", status, out, errs)
	}
	rewriteOn(t, machines[2], "limits {", "limits = {")
	if status, out, errs = nodes[2].reloadOn(t, machines[2]); status != statusBad || out != "" || !strings.Contains(errs, "site alpha, host 10.77.0.3: /tmp/job.hcl:") {
		t.Errorf("a fault at a host: status %d\n%s%s", status, out, errs)
	}
	rewriteOn(t, machines[2], "limits = {", "log { level = \"debug\" }\nroute \"*\" { prefer = [\"tcp\"] }\nlimits {\n stop = \"9s\"\n")
	status, out, errs = nodes[2].reloadOn(t, machines[2])
	if status != statusOK || errs != "" {
		t.Errorf("status %d\n%s", status, errs)
	}
	for _, want := range []string{"site alpha: log level: info -> debug\n", "site alpha: limits stop: 10s -> 9s\n", "site alpha: routes to alpha, beta, any other site: prefer: ", ` -> ["tcp"]: for new links` + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	nodes[0].awaitsTimes(t, nodes[0].err, "reloaded: log level: info -> debug", 3) // which has the log of all
	if strings.Contains(nodes[3].err.String(), "reloaded") {
		t.Error("the other site has changed")
	}
}

// TestReloadOfHostsWithoutFiles: hosts that the head has started by an engine get the text of its file.
func TestReloadOfHostsWithoutFiles(t *testing.T) {
	const enter = "/tmp/enter"
	machines := jobApart(t, fmt.Sprintf("launch \"exec\" { command = [%q, \"{host}\"] }", enter), 0, 3)
	script, err := os.ReadFile(enterBy(t, machines))
	if err != nil {
		t.Fatal(err)
	}
	heads := make([]*machineNode, 2)
	for i := range heads {
		machines[3*i].Put(enter, script, 0o700)
		heads[i] = startApart(t, machines[3*i], "sum and stay", "-config", "/tmp/job.hcl", "-site", []string{"alpha", "beta"}[i])
	}
	heads[0].awaitsTimes(t, heads[0].out, "sum ", 6)
	rewriteOn(t, machines[0], "limits {", "log { level = \"debug\" }\nlimits {\n stop = \"9s\"\n")
	status, out, errs := heads[0].reloadOn(t, machines[0])
	if status != statusOK || errs != "" || out != "site alpha: log level: info -> debug\nsite alpha: limits stop: 10s -> 9s\n" {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	heads[0].awaitsTimes(t, heads[0].err, "reloaded: log level: info -> debug", 3)
	if status, out, errs = heads[0].reloadOn(t, machines[0]); status != statusOK || errs != "" || !strings.Contains(out, "says what it said before") {
		t.Errorf("again: status %d\n%s%s", status, out, errs)
	}
}
