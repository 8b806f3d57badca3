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

func TestMachinesApart(t *testing.T) {
	machines := New(t, 2)
	sh := func(m *Machine, line string) string {
		out, err := m.Command(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil {
			return err.Error()
		}
		return string(out)
	}
	for _, m := range machines {
		m.IsolateFiles()
		m.Put("/tmp/name", []byte(m.Address), 0o600)
	}
	for _, m := range machines {
		if got := sh(m, "cat /tmp/name"); got != m.Address {
			t.Errorf("%s is called %q", m.Address, got)
		}
		for _, dir := range own {
			if got := sh(m, "cat "+dir+"/left; echo "+m.Address+" >"+dir+"/left"); got == "" || strings.Contains(got, "10.77") {
				t.Errorf("%s finds %q in %s", m.Address, got, dir)
			}
			if got := sh(m, "cat "+dir+"/left"); got != m.Address+"\n" {
				t.Errorf("%s finds %q in %s, where it has written its address", m.Address, got, dir)
			}
		}
		if dir := t.TempDir(); sh(m, "touch "+dir+"/x") == "" {
			t.Errorf("%s writes to %s", m.Address, dir)
		}
		if got := sh(m, "touch /etc/impi-test"); got == "" {
			t.Errorf("%s writes to /etc", m.Address)
		}
	}
	if sh(machines[0], "cat "+machines[1].Path("/tmp/left")) == machines[1].Address+"\n" {
		t.Error("one machine reads the files of the other")
	}
}
