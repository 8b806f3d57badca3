package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/firewall"
	"github.com/openimpi/impi/internal/netns"
)

// TestPortsSuffice: a job of two sites of three machines runs, with all its direct links, between firewalls that
// let in what impi-node ports prints and no other TCP connection; and one without the channels does not.
func TestPortsSuffice(t *testing.T) {
	ranges := `transport "tcp" { config { port_range = "7900-7919" } }`
	t.Run("all", func(t *testing.T) {
		file, machines := machineJob(t, ranges+"\nroute \"*\" { prefer = [\"tcp\"] }\n")
		wall(t, machines, rulesOf(t, file))
		nodes := startOn(t, file, "meet", machines)
		for i, s := range ends(nodes) {
			if s != 0 || strings.Contains(nodes[i].err.String(), "[WARN]") {
				t.Errorf("machine %d: status %d\n%s", i, s, nodes[i].err)
			}
		}
	})
	t.Run("no head", func(t *testing.T) {
		file, machines := machineJob(t, ranges+"\nlimits { start = \"5s\" }\n")
		wall(t, machines, slices.DeleteFunc(rulesOf(t, file), func(r firewall.Rule) bool { return r.For == "the head of the site" }))
		nodes := startOn(t, file, "meet", machines)
		for i, s := range ends(nodes) {
			if s == 0 {
				t.Errorf("machine %d: status 0\n%s", i, nodes[i].err)
			}
		}
	})
}

func rulesOf(t *testing.T, file string) (rules []firewall.Rule) {
	t.Helper()
	status, out, errs := impiNode(t, "hello", "ports", "-json", file)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	if err := json.Unmarshal([]byte(out), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// wall makes connections between machines to ports below those that the system chooses vanish, unless a rule is
// for them.
func wall(t *testing.T, machines []*netns.Machine, rules []firewall.Rule) {
	t.Helper()
	for _, m := range machines {
		run := func(args string) {
			if b, err := m.Command(t.Context(), "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v: %s", args, err, b)
			}
		}
		added := make(map[string]bool)
		for _, r := range rules {
			args := fmt.Sprintf("rule add prio 100 to %s ipproto %s dport %s lookup main", r.Host, r.Proto, r.Ports)
			if slices.Contains(r.From, m.Address) && !added[args] {
				added[args] = true
				run(args)
			}
		}
		run("rule add prio 200 to 10.77.0.0/24 ipproto tcp dport 1-32767 blackhole")
	}
}
