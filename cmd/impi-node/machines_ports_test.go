package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/netns"
)

// The ports of each host of fixedPorts.
const (
	agentPort  = 7900
	directPort = 7950
	headPort   = 7802
)

// fixedPorts writes the job of one site on three machines of two procs each, whose ports are known.
func fixedPorts(t *testing.T, more string) (file string, machines []*netns.Machine) {
	t.Helper()
	machines = netns.New(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hosts := ""
	for _, m := range machines {
		hosts += fmt.Sprintf("  host {\n    address = %q\n    procs   = 2\n    port    = %d\n  }\n", m.Address, agentPort)
	}
	if !strings.Contains(more, "limits {") {
		more += patient
	}
	text := fmt.Sprintf(`job {
  embedded_server {}
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
%s}
transport "tcp" {
  config { port_range = "%d-%d" }
}
program { command = [%q] }
%s`, hosts, directPort, directPort, self, more)
	dir := t.TempDir()
	for name, b := range map[string]string{"job.hcl": text, "job.key": "4242\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "job.hcl"), machines
}

// drop makes what a machine sends from a TCP port to an address vanish, as a firewall that drops
// does.
func drop(t *testing.T, m *netns.Machine, port int, to string) {
	t.Helper()
	out, err := m.Command(t.Context(), "ip", "rule", "add", "to", to, "ipproto", "tcp", "sport", fmt.Sprint(port), "blackhole").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// closed closes a port of one machine to another one, by a firewall that rejects or one that drops.
func closed(t *testing.T, how string, to, from *netns.Machine, port int) {
	t.Helper()
	if how == "reject" {
		from.Forbid(to.Address, port)
	} else {
		drop(t, to, port, from.Address)
	}
}

// wantLine wants one line of a text to have all of some words.
func wantLine(t *testing.T, who, text string, words ...string) {
	t.Helper()
	for line := range strings.Lines(text) {
		has := 0
		for _, w := range words {
			if strings.Contains(line, w) {
				has++
			}
		}
		if has == len(words) {
			return
		}
	}
	t.Errorf("%s has no line with all of %q", who, words)
}

const openPortRange = `write port_range = \"FIRST-LAST\" in the config of transport \"tcp\" and open those; or choose their addresses by network = `

// TestAgentPortClosed: one closed port between the agents of two hosts of a site ends the job. The
// head says which host does not reach which address, and what to do.
func TestAgentPortClosed(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"reject", "drop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			file, machines := fixedPorts(t, "")
			closed(t, how, machines[1], machines[2], agentPort)
			nodes := startOn(t, file, "block", machines)
			for i, s := range ends(nodes) {
				if s != ending.StatusNode {
					t.Errorf("machine %d: status %d", i, s)
				}
				wantLine(t, fmt.Sprint("machine ", i), nodes[i].err.String(), "site alpha: ", "host 1 at 10.77.0.2:7900 was not reached: from 10.77.0.3: ",
					"write port = N in their host blocks and open that; or choose their addresses by network = ")
			}
		})
	}
}

// TestDirectPortClosed: one closed port for direct links between two hosts of a site is named at
// the start, with both addresses and what to do, whichever of the two does not reach the other and
// before any proc needs it.
func TestDirectPortClosed(t *testing.T) {
	t.Parallel()
	if dynamic.DialsLimit > 5*time.Second {
		t.Errorf("it is named after %v", dynamic.DialsLimit)
	}
	for _, how := range []string{"reject", "drop"} {
		for _, c := range []struct{ to, from int }{{1, 2}, {2, 1}} {
			t.Run(fmt.Sprint(how, " ", c.from), func(t *testing.T) {
				t.Parallel()
				file, machines := fixedPorts(t, "")
				to, from := machines[c.to], machines[c.from]
				closed(t, how, to, from, directPort)
				nodes := startOn(t, file, "block", machines) // procs that send nothing
				nodes[0].awaits(t, nodes[0].err, "direct links cannot be dialled")
				for _, n := range nodes {
					_ = n.cmd.Process.Signal(syscall.SIGTERM)
				}
				ends(nodes)
				log := nodes[0].err.String()
				wantLine(t, "the head", log, "[WARN]", "host="+from.Address, "within="+dynamic.DialsLimit.String(), "from="+from.Address,
					fmt.Sprintf("tcp at %s:%d/8: ", to.Address, directPort), openPortRange)
				if n := strings.Count(log, "direct links cannot be dialled"); n != 1 {
					t.Errorf("the head has %d such warnings", n)
				}
			})
		}
	}
}

// TestDirectPortsClosed: where no port for direct links is open, packets go by the agents, which is
// said with the addresses of a pair and what to do.
func TestDirectPortsClosed(t *testing.T) {
	for _, how := range []string{"reject", "drop"} {
		t.Run(how, func(t *testing.T) {
			file, machines := fixedPorts(t, "")
			for _, to := range machines {
				for _, from := range machines {
					if to != from {
						closed(t, how, to, from, directPort)
					}
				}
			}
			nodes := startOn(t, file, "meet", machines)
			for i, s := range ends(nodes) {
				if s != 0 {
					t.Errorf("machine %d: status %d", i, s)
				}
			}
			log := nodes[0].err.String()
			wantLine(t, "the head", log, "[WARN]", "no direct link: packets go through the agents", "from_host=10.77.0.", "to_host=10.77.0.",
				fmt.Sprintf(":%d/8: ", directPort), openPortRange)
			if strings.Count(nodes[0].out.String(), "met\n") != 6 {
				t.Error("not all have met")
			}
		})
	}
}

// TestHeadPortClosed: a host that does not reach the port of its head says so with both addresses
// and what to do while it waits, and again at the end, and the head says from whom nothing came.
func TestHeadPortClosed(t *testing.T) {
	t.Parallel()
	others := regexp.MustCompile(`hosts of the site are missing: 10\.77\.0\.(2|\[2-3\])`) // this computer is too slow
	for _, how := range []string{"reject", "drop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for limit := 15; ; limit *= 3 {
				file, machines := fixedPorts(t, fmt.Sprintf("limits { start = \"%ds\" }\n", limit))
				closed(t, how, machines[0], machines[2], headPort)
				nodes := startOn(t, file, "meet", machines)
				statuses := ends(nodes)
				if limit < 300 && others.MatchString(nodes[0].err.String()) {
					continue
				}
				for i, s := range statuses {
					if s != ending.StatusTimeout {
						t.Errorf("machine %d: status %d", i, s)
					}
					if i < 2 {
						wantLine(t, fmt.Sprint("machine ", i), nodes[i].err.String(), "hosts of the site are missing: 10.77.0.3; nothing came to 10.77.0.1:7802 from 10.77.0.3: run impi-node there with the same file, and let it reach that port")
					}
				}
				const unreached = "host 10.77.0.1 at 10.77.0.1:7802 was not reached from 10.77.0.3: "
				wantLine(t, "the host", nodes[2].err.String(), "[WARN]", "no answer within 4s: ", unreached, "open that port to this host, or write head = ")
				wantLine(t, "the host", nodes[2].err.String(), fmt.Sprintf("%ds passed: ", limit), unreached, "let this host reach that address")
				return
			}
		})
	}
}
