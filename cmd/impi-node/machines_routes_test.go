package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/links"
)

// TestRouteToTheOwnSite: links between the hosts of a site are as the route to that very site says.
// Here those of alpha are not direct, and those of beta are.
func TestRouteToTheOwnSite(t *testing.T) {
	file, machines := machineJob(t, `route "alpha" { direct = false }`)
	nodes := startOn(t, file, "exchange", machines)
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	for i, want := range []links.State{links.StateAgents, links.StateLinked} {
		// Of ranks on the first and the second machine of the site; the third has no part in it.
		a, b, asked := 6*i, 6*i+2, 3*i+1
		status, out, errs := nodes[asked].command(t, machines[asked], "links", "-json", "-deadline", "60s")
		var got links.Report
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusOK || len(got.Jobs) != 1 {
			t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
		}
		pairs := got.Jobs[0].Pairs
		at := slices.IndexFunc(pairs, func(p links.Pair) bool { return p.A == a && p.B == b })
		if at < 0 || pairs[at].State != want {
			t.Errorf("site %d has no pair of ranks %d and %d that is %s:\n%s", i, a, b, want, out)
		}
	}
	for _, n := range nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	ends(nodes)
}

// TestSignalReachesAllMachines: a signal to impi-node at the head of a site gets to the procs on
// all of its machines.
func TestSignalReachesAllMachines(t *testing.T) {
	file, machines := machineJob(t, "")
	nodes := startOn(t, file, "catch", machines)
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	for _, head := range []int{0, 3} {
		_ = nodes[head].cmd.Process.Signal(syscall.SIGUSR1)
	}
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
}

// TestMachineThatDoesNotReachItsHead: a host whose packets to the port of the head vanish says so
// with both addresses while it waits, and the head, which cannot know more, that nothing came
// there.
func TestMachineThatDoesNotReachItsHead(t *testing.T) {
	t.Parallel()
	file, machines := machineJob(t, "limits { start = \"15s\" }\n")
	out, err := machines[3].Command(t.Context(), "ip", "rule", "add", "to", "10.77.0.6", "ipproto", "tcp", "sport", "7802", "blackhole").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	nodes := startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		if s == 0 {
			t.Errorf("machine %d: status 0", i)
		}
	}
	for i, want := range map[int]string{
		3: "nothing came to 10.77.0.4:7802 from 10.77.0.6: run impi-node there with the same file, and let it reach that port",
		5: "host 10.77.0.4 at 10.77.0.4:7802 was not reached from 10.77.0.6: ",
	} {
		if log := nodes[i].err.String(); !strings.Contains(log, want) {
			t.Errorf("machine %d does not say %q:\n%s", i, want, log)
		}
	}
	waits, ended, _ := strings.Cut(nodes[5].err.String(), "15s passed: ")
	wantLine(t, "the host, while it waits,", waits, "[WARN]", "no answer within 4s: start impi-node there; if it runs, open that port to this host, or write head = ",
		"host 10.77.0.4 at 10.77.0.4:7802 was not reached from 10.77.0.6: ")
	wantLine(t, "the host, at the end,", ended, "run impi-node there with the same file, and let this host reach that address")
}
