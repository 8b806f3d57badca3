package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
)

// onClock has impi-node run on a machine that is up for a longer time than this one.
func onClock(t *testing.T, m *netns.Machine, longer time.Duration, mode string, args ...string) *machineNode {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seconds := fmt.Sprint(int(longer / time.Second))
	args = append([]string{"--time", "--monotonic", seconds, "--boottime", seconds, "--fork", "--kill-child", self}, args...)
	return startNodeOf(t, "unshare", m, mode, "", args...)
}

// TestMachinesThatAreUpForOtherTimes: the clocks that count from a machine's start are only
// compared with themselves. Hosts whose clocks are days apart start, and are not taken for silent.
func TestMachinesThatAreUpForOtherTimes(t *testing.T) {
	if out, err := exec.Command("unshare", "--time", "--monotonic", "1", "--fork", "true").CombinedOutput(); err != nil {
		skips.NotRun(t, "a namespace with another clock cannot be made: "+strings.TrimSpace(string(out)+" "+err.Error()), "run the tests as root, on Linux 5.6 or later with util-linux 2.36 or later")
	}
	file, machines := machineJob(t, "limits {\n  start = \"5m\"\n  silence = \"5s\"\n}\n")
	const day = 24 * time.Hour
	longer := []time.Duration{3 * day, 0, 300 * day, 0, 1 * day, 30 * day}
	nodes := make([]*machineNode, 6)
	for i := len(machines) - 1; i >= 0; i-- {
		nodes[i] = onClock(t, machines[i], longer[i], "beats", "-config", file)
	}
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	for rank := range 12 {
		if !strings.Contains(nodes[rank/6*3].out.String(), fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("the head of site %d has nothing of rank %d", rank/6, rank)
		}
	}
}

// wrongBy is a variable in the environment of nodes that wrongClock has built: by how much their
// clocks are ahead of the time.
const wrongBy = "IMPI_TEST_CLOCK"

// wrongClock builds an impi-node that takes the time for another when it judges certificates, which
// is the only place where what one machine says of the time matters to another.
func wrongClock(t *testing.T) (path string) {
	t.Helper()
	return builtWith(t, "../../plugins/sdk/transports/identity/load.go", "now: time.Now}", `now: func() time.Time {
		d, _ := time.ParseDuration(os.Getenv("`+wrongBy+`"))
		return time.Now().Add(d)
	}}`)
}

// TestMachineWithAWrongClock: a machine whose clock is wrong by less than certificates are valid is
// like any other. If it is wrong by more the start ends at once, and all machines of the site are
// told whose clock is to be looked at.
func TestMachineWithAWrongClock(t *testing.T) {
	program := wrongClock(t)
	const day = 24 * time.Hour
	ca, err := pki.NewAuthority("test", time.Now().Add(-day), 2*day)
	if err != nil {
		t.Fatal(err)
	}
	const fine = "fine"
	for name, c := range map[string]struct {
		by     string        // its clock is ahead
		longer time.Duration // for so much its own certificate is valid before now
		says   string
	}{
		"a little":     {"30m", 0, fine},
		"ahead":        {"2h", 0, "the certificate of \"alpha\" expired on "},
		"behind":       {"-2h", 0, "the certificate of \"alpha\" is valid from "},
		"others' only": {"-30m", 50 * time.Minute, "10.77.0.2 does not accept that of 10.77.0.1: the certificate of \"alpha\" is valid from "},
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := machineJob(t, withCertificates+"limits { start = \"10h\" }\nlog { level = \"debug\" }\n")
			nodes := make([]*machineNode, 6)
			for i, m := range machines {
				if i != 1 && (i < 3 || c.says == fine) {
					nodes[i] = startNode(t, m, "meet", "CERTS="+certificatesOn(t, ca, time.Now()), "-config", file)
				}
			}
			t.Setenv(wrongBy, c.by)
			nodes[0].awaits(t, nodes[0].err, "a host has joined")
			nodes[1] = startNodeOf(t, program, machines[1], "meet", "CERTS="+certificatesOn(t, ca, time.Now().Add(-c.longer)), "-config", file)
			if c.says == fine {
				for i, s := range ends(nodes) {
					if s != 0 {
						t.Errorf("machine %d: status %d", i, s)
					}
				}
				return
			}
			for i, s := range ends(nodes[:3]) {
				log := nodes[i].err.String()
				if s != statusUsage || !strings.Contains(log, c.says) || !strings.Contains(log, ": check the clock of "+machines[1].Name) || strings.Contains(log, "10h0m0s") {
					t.Errorf("machine %d: status %d, or it does not say %q and whose clock is to be checked", i, s, c.says)
				}
			}
		})
	}
}
