package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/links"
)

// TestDrainCommand: the command finds the host, says what is left, and takes it back.
func TestDrainCommand(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites+"route \"*\" {\n  prefer = [\"tcp\"]\n  data_plane = [\"stream\"]\n  resume = true\n}\n"))
	drain := func(args ...string) (int, string, string) {
		return impiNode(t, "", append([]string{"drain", "-run-dir", r.base}, args...)...)
	}
	status, out, errs := drain("-transport", "tcp", "127.0.0.3")
	if status != 3 || !strings.Contains(out, "host 127.0.0.3: links by tcp, process ") || !strings.Contains(out, ": 1 are resumed, but have no other transport") ||
		!strings.Contains(errs, "impi-node plugins reload tcp replaces it") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	status, out, errs = drain("-json", "-transport", "tcp", "127.0.0.3")
	var got links.Drain
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 3 || got.Site != "beta" || got.Transports[0].Waiting != 1 || !got.Transports[0].Drained {
		t.Errorf("status %d, %v\n%s%s", status, err, out, errs)
	}
	if status, out, errs := drain("-undrain", "127.0.0.3"); status != statusOK || out != "host 127.0.0.3: new links use tcp again\n" {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := drain("-transport", "unix", "127.0.0.2"); status != statusBad || !strings.Contains(errs, `no plugin of transport "unix" runs at site alpha`) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for args, want := range map[string]string{"": "give one host", "a b": "give one host", "127.0.0.9": "has a host 127.0.0.9; run the command on that host", "127.0.0.2": "name one by -transport", "-undrain 127.0.0.3": "no transport is drained here"} {
		if status, out, errs := drain(strings.Fields(args)...); status == statusOK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
}

// TestDrainOnMachines: the command is given on another machine than the host's. The links of its
// procs to all other machines leave the plugin while messages go to and fro, nothing of them is
// lost, and the plugin's process is replaced while nothing uses it.
func TestDrainOnMachines(t *testing.T) {
	plugins := t.TempDir()
	chaosPlugin(t, plugins, "chaos")
	file, machines := machineJob(t, fmt.Sprintf(`plugin_dir = %q
transport "chaos" {
  plugin = "impi-transport-chaos"
  config { around = "tcp" }
}
route "*" {
  prefer = ["chaos", "tcp"]
  resume = true
}
`, plugins))
	nodes := startOn(t, file, "busy", machines)
	for _, head := range []int{0, 3} {
		nodes[head].awaitsTimes(t, nodes[head].out, "ready", 6)
	}
	status, out, errs := nodes[0].command(t, machines[0], "drain", "-deadline", "2m", "10.77.0.2")
	if status != statusOK || !strings.Contains(out, "host 10.77.0.2: ") {
		t.Errorf("drain: status %d\n%s%s", status, out, errs)
	}
	status, out, errs = nodes[0].command(t, machines[0], "links", "-json")
	var r links.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != statusOK || len(r.Jobs) != 1 {
		t.Fatalf("links: status %d, %v\n%s", status, err, errs)
	}
	drained := func(rank int) bool { return rank == 2 || rank == 3 }
	by := make(map[string]int) // links of the host, and those of others
	for _, p := range r.Jobs[0].Pairs {
		by[fmt.Sprint(p.Transport, " ", drained(p.A) || drained(p.B))]++
	}
	if by["chaos true"] > 0 || by["tcp true"] == 0 || by["chaos false"] == 0 {
		t.Errorf("links of the host, and others, by transports: %v", by)
	}
	for _, args := range [][]string{{"plugins", "reload", "chaos"}, {"drain", "-undrain", "10.77.0.2"}} {
		if status, out, errs := nodes[0].command(t, machines[0], args...); status != statusOK {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	for _, n := range []*machineNode{nodes[0], nodes[3]} {
		if err := n.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
}
