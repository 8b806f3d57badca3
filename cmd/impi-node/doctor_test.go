package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/launchtest"
)

// TestDoctorReaches: the doctor on one machine of a site says which ports of the other machines it
// does not reach: one behind a firewall that rejects, or drops, and those of a machine without a
// network.
func TestDoctorReaches(t *testing.T) {
	file, machines := fixedPorts(t, "")
	examined := func(on int) string {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := machines[on].Command(t.Context(), self, "doctor", file)
		cmd.Env = append(os.Environ(), asNode+"=1", "XDG_RUNTIME_DIR="+launchtest.ShortDir(t))
		b, err := cmd.Output()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Fatal(err)
		}
		return string(b)
	}
	before := examined(1)
	for _, want := range []string{"10.77.0.1:7802", "10.77.0.1:7900", "10.77.0.3:7900", "10.77.0.1:7950", "10.77.0.3:7950"} {
		if !strings.Contains(before, "ok       reaches "+want) {
			t.Errorf("%s is not reached:\n%s", want, before)
		}
	}
	closed(t, "reject", machines[0], machines[1], headPort)
	closed(t, "drop", machines[2], machines[1], agentPort)
	after := examined(1)
	for _, want := range []string{"fault    reaches 10.77.0.1:7802", "fault    reaches 10.77.0.3:7900", "ok       reaches 10.77.0.1:7900"} {
		if !strings.Contains(after, want) {
			t.Errorf("there is no %q:\n%s", want, after)
		}
	}
	wantLine(t, "the doctor", after, "channels", "no answer within")
	wantLine(t, "the doctor", after, "= see that the machine is up", "lets tcp 7900 in")
	machines[2].Cut()
	if cut := examined(1); !strings.Contains(cut, "fault    reaches 10.77.0.3:7950") {
		t.Errorf("a machine without a network is reached:\n%s", cut)
	}
}
