package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
)

// secrets finds the key of a test's job and what looks like the secret that a head draws for the nodes
// that it starts, also as JSON has bytes. Names of sockets look like it, but for what they begin with.
func secrets(text, key string) (found []string) {
	text = regexp.MustCompile(`impi-[A-Z2-7]{26}`).ReplaceAllString(text, "")
	if strings.Contains(text, key) {
		found = append(found, key)
	}
	drawn := regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	found = append(found, drawn.FindAllString(text, -1)...)
	for _, word := range regexp.MustCompile(`[A-Za-z0-9+/]{35}=`).FindAllString(text, -1) {
		if b, err := base64.StdEncoding.DecodeString(word); err == nil && drawn.Match(b) {
			found = append(found, word)
		}
	}
	return found
}

// TestSecretsAreNotShown: what hosts prove to each other is in no command line, environment or log, on the
// machine of the head or on one whose node was started from there.
func TestSecretsAreNotShown(t *testing.T) {
	const key = "31415926535897932"
	if got := secrets("A="+key+" ABCDEFGHIJKLMNOPQRSTUVWXYZ "+base64.StdEncoding.EncodeToString([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ")), key); len(got) != 3 {
		t.Fatalf("%q is found, of three", got)
	}
	machines := machinesApart(t, 2)
	config := sshtest.StartOn(t, machines)
	machines[0].Put("/tmp/job.key", []byte(key+"\n"), 0o600)
	machines[0].Put("/tmp/job.hcl", fmt.Appendf(nil, `job {
  embedded_server {}
  auth "key" { file = "job.key" }
}
%s%s
log { level = "trace" }
program { command = [%q] }
`, siteBySSH(config), patient, programApart), 0o600)
	n := startApart(t, machines[0], "block", "-config", "/tmp/job.hcl")
	for rank := range 4 {
		n.awaits(t, n.out, fmt.Sprintf("[%d] ready", rank))
	}
	for _, m := range machines {
		seen := 0
		for _, pid := range pidsOn(m) {
			for _, file := range []string{"cmdline", "environ"} {
				b, _ := os.ReadFile("/proc/" + pid + "/" + file) // it may have ended
				seen += len(b)
				if found := secrets(string(b), key); len(found) > 0 {
					t.Errorf("%s of %s, process %s, has %q", file, m.Address, pid, found)
				}
			}
		}
		if seen == 0 {
			t.Errorf("nothing runs on %s", m.Address)
		}
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	ends([]*machineNode{n})
	if log := n.err.String(); !strings.Contains(log, "[DEBUG]") || len(secrets(log, key)) > 0 {
		t.Errorf("%q is in the log, or nothing is", secrets(log, key))
	}
	awaitEmpty(t, machines[1])
}

// pidsOn are the processes of a machine.
func pidsOn(m *netns.Machine) []string {
	out, _ := exec.Command("ip", "netns", "pids", m.Name).Output()
	return strings.Fields(string(out))
}
