package netns

import (
	"strings"
	"testing"
)

func TestMachines(t *testing.T) {
	m := New(t, 3)
	reaches := func(from *Machine, address string) bool {
		return from.Command(t.Context(), "bash", "-c", "exec 3<>/dev/tcp/"+address).Run() == nil
	}
	server := m[1].Command(t.Context(), "go", "version") // anything that runs there
	if out, err := server.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := m[0].Command(t.Context(), "ip", "-brief", "address").Output()
	if err != nil || !strings.Contains(string(out), "10.77.0.1/16") || strings.Contains(string(out), "10.77.0.2") {
		t.Errorf("%v: %s", err, out)
	}
	if name, err := m[2].Command(t.Context(), "hostname").Output(); err != nil || string(name) != m[2].Name+"\n" {
		t.Errorf("%v: the host is called %q, want %s", err, name, m[2].Name)
	}
	// Nobody listens: a refusal comes from a machine that is there, silence from one that is not.
	refused := func(from *Machine, address string) bool {
		out, _ := from.Command(t.Context(), "timeout", "5", "bash", "-c", "exec 3<>/dev/tcp/"+address).CombinedOutput()
		return strings.Contains(string(out), "refused")
	}
	if reaches(m[0], "10.77.0.2/9") || !refused(m[0], "10.77.0.2/9") || !refused(m[2], "10.77.0.1/9") {
		t.Error("the machines do not reach each other")
	}
	m[0].Forbid("10.77.0.2", 9)
	if refused(m[0], "10.77.0.2/9") || !refused(m[0], "10.77.0.2/10") {
		t.Error("the firewall does not forbid one port")
	}
	sleep := m[2].Command(t.Context(), "sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	for m[2].Idle() {
	}
	m[2].Crash()
	if err := sleep.Wait(); err == nil {
		t.Error("sleep has slept")
	}
	m[1].Cut()
	if out, _ := m[0].Command(t.Context(), "timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/10.77.0.2/10").CombinedOutput(); strings.Contains(string(out), "refused") {
		t.Error("a machine without a cable answers")
	}
}
