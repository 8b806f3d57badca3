package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMachinesWithAnInterfaceThatLeadsNowhere: machines with a second interface whose network does
// not route use the addresses of the file, and say which addresses do not reach each other if the
// file chooses that network, long before the limit of the start.
func TestMachinesWithAnInterfaceThatLeadsNowhere(t *testing.T) {
	file, machines := machineJob(t, "limits { start = \"5m\" }\n")
	for i, m := range machines {
		add := fmt.Sprintf("ip link add spare type veth peer name nowhere && ip link set nowhere up && ip address add 192.168.5.%d/24 dev spare && ip link set spare up", i+1)
		if out, err := m.Command(t.Context(), "sh", "-c", add).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	nodes := startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte("  procs  = 2\n"), []byte("  procs  = 2\n  network = \"spare\"\n"))
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	nodes = startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		if s == 0 {
			t.Errorf("machine %d: status 0", i)
		}
	}
	for _, head := range []int{0, 3} {
		if log := nodes[head].err.String(); !strings.Contains(log, " was not reached: from 192.168.5.") || !strings.Contains(log, " at 192.168.5.") || strings.Contains(log, "5m0s") {
			t.Errorf("the head on machine %d does not name both addresses:\n%s", head, log)
		}
	}
}

// otherRelease builds an impi-node of another release.
func otherRelease(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs("../../internal/version/version.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Replace(text, []byte(`const Release = "`), []byte(`const Release = "0.0.`), 1)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: filepath.Join(dir, "version.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"version.go": old, "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(dir, "impi-node")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestMachineWithAnotherVersion: an impi-node of another release is told so at once, with both
// versions, and the head goes on waiting for one that fits.
func TestMachineWithAnotherVersion(t *testing.T) {
	file, machines := machineJob(t, "")
	other := otherRelease(t)
	head := startOn(t, file, "meet", machines[:1])
	head[0].awaits(t, head[0].err, "waiting for hosts of the site")
	cmd := machines[1].Command(t.Context(), other, "-config", file)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+runDirs(t))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `the hosts run different versions of impi-node: 10.77.0.2 has "0.0.0.`) || !strings.Contains(string(out), `10.77.0.1 has "0.`) {
		t.Errorf("%v:\n%s", err, out)
	}
	if !strings.Contains(head[0].err.String(), "10.77.0.[2-3]") {
		t.Errorf("the head does not wait for both others:\n%s", head[0].err)
	}
	_ = head[0].cmd.Process.Signal(syscall.SIGTERM)
	ends(head)
}
