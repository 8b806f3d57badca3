package examples

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMeet runs two jobs as their README says, but at a port that is free: the one that
// asks first.
func TestMeet(t *testing.T) {
	out, err := exec.Command("go", "build", "-o", filepath.Join(checkout, "bin")+"/", "./meet", "../cmd/impi-server").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	folder := filepath.Join(checkout, "examples", "meet")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(folder, "names.key")
	if err := os.WriteFile(key, []byte("1234567890123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := namesServer(t, key)
	for _, name := range []string{"server.hcl", "client.hcl"} {
		job, err := os.ReadFile(filepath.Join("meet", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(job), "127.0.0.1:7900", at)
		if text == string(job) {
			t.Fatalf("%s does not say where the server for names is", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asks := exec.CommandContext(t.Context(), filepath.Join(checkout, "bin", "impi-node"), "-config", "examples/meet/client.hcl")
	var asked, problems bytes.Buffer
	asks.Dir, asks.Stdout, asks.Stderr = checkout, &asked, &problems
	if err := asks.Start(); err != nil {
		t.Fatal(err)
	}
	printed(t, succeed(t, "-config", "examples/meet/server.hcl"), "meet: serving", "meet: served 1 jobs")
	if err := asks.Wait(); err != nil {
		t.Fatalf("the job that asks: %v\n%s%s", err, &asked, &problems)
	}
	printed(t, asked.String(), "meet: 17984 primes below 200000, counted by 3 ranks of another job for 2 of this one")
}

// namesServer starts impi-server -names and gives its address.
func namesServer(t *testing.T, key string) (address string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(checkout, "bin", "impi-server"), "-names", "-key-file", key, "-host", "127.0.0.1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		if err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
