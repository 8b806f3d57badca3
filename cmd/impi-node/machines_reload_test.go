package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
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

// TestReloadOnMachines: the hosts of a site, each with a file of its own, change together or not at
// all, from whichever of them the command comes.
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

// TestReloadOfHostsWithoutFiles: hosts that the head has started by an engine get the text of its
// file.
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

// TestCertificatesOfMachinesReplaced: when all hosts of a site have certificates of another CA, and
// no longer those of before, their connections with the head are made anew, and the job goes on.
func TestCertificatesOfMachinesReplaced(t *testing.T) {
	machines := machinesApart(t, 3)
	put := func(ca *pki.Authority) {
		for _, m := range machines {
			dir := certificatesOn(t, ca, time.Now())
			for _, name := range []string{"site.pem", "site.key", "ca.pem"} {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				m.Put("/tmp/"+name, b, 0o600)
			}
		}
	}
	put(pkitest.Authority(t))
	nodes := make([]*machineNode, len(machines))
	for i, m := range machines {
		m.Put("/tmp/job.key", []byte("4242\n"), 0o600)
		m.Put("/tmp/job.hcl", fmt.Appendf(nil, `job {
  embedded_server {}
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  hosts  = "10.77.0.[1-3]"
  procs  = 2
}
%s%s
program { command = [%q] }
`, strings.ReplaceAll(withCertificates, "${env.CERTS}", "/tmp"), patient, programApart), 0o600)
		nodes[i] = startApart(t, m, "sum and stay", "-config", "/tmp/job.hcl")
	}
	nodes[0].awaitsTimes(t, nodes[0].out, "sum ", 6)
	const anew = "made the connection to a host anew, with the certificates as they are now"
	if strings.Contains(nodes[0].err.String(), anew) {
		t.Error("before the reload")
	}
	put(pkitest.Authority(t))
	if status, out, errs := nodes[1].reloadOn(t, machines[1]); status != statusOK || errs != "" || !strings.Contains(out, "other certificates") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, m := range machines[1:] {
		nodes[0].awaits(t, nodes[0].err, anew+": host="+m.Address)
	}
	if status, out, errs := nodes[2].command(t, machines[2], "links"); status != statusOK || !strings.Contains(out, "10.77.0.1") || !strings.Contains(out, "10.77.0.2") {
		t.Errorf("links: status %d\n%s%s", status, out, errs)
	}
	if log := nodes[0].err.String(); strings.Contains(log, "is lost") {
		t.Error("a host is lost")
	}
}
