package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var firstHCL = regexp.MustCompile("(?s)```hcl\n(.*?)```")

// The two-minute path of docs/security.md, on this machine: the commands are
// those of the text, and so is the file, but for the addresses, the program, and
// the transports that would be preferred inside one machine.
func TestSecurityDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	found := firstHCL.FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/security.md has no job file")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if !strings.Contains(string(text), "\nimpi-node cert init -sites alpha,beta\n") {
		t.Fatal("the text has another command")
	}
	good(t, dir, "init", "-sites", "alpha,beta")
	job := strings.NewReplacer(
		"192.0.2.7:7800", "127.0.0.2:0", "192.0.2.7", "127.0.0.2", "198.51.100.20", "127.0.0.3",
		`["shm", "unix", "quic"]`, `["quic"]`, "./ring", self,
	).Replace(string(found[1]))
	for name, content := range map[string]string{"job.hcl": job, "job.key": " 4711\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status, out, errs := impiNode(t, "meet", "-config", filepath.Join(dir, "job.hcl"), "-log-level", "debug")
	if status != 0 || strings.Count(out, "met\n") != 4 || !strings.Contains(errs, "transport=quic") {
		t.Errorf("status %d, %s\n%s", status, out, errs)
	}
}
