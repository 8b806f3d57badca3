package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/loopback"
)

// TestJoinPair runs two jobs as their README says, but at a port that is free: the one
// that dials first.
func TestJoinPair(t *testing.T) {
	out, err := exec.Command("go", "build", "-o", filepath.Join(checkout, "bin")+"/", "./joinpair").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(checkout, "examples", "joinpair")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"listen.hcl", "dial.hcl"} {
		job, err := os.ReadFile(filepath.Join("joinpair", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(job), "127.0.0.1:7950", at.String())
		if text == string(job) {
			t.Fatalf("%s does not say where the jobs meet", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dials := exec.CommandContext(t.Context(), filepath.Join(checkout, "bin", "impi-node"), "-config", "examples/joinpair/dial.hcl")
	var dialled, problems bytes.Buffer
	dials.Dir, dials.Stdout, dials.Stderr = checkout, &dialled, &problems
	if err := dials.Start(); err != nil {
		t.Fatal(err)
	}
	const joined = "joinpair: joined, disconnected, and the connection is as it was"
	printed(t, succeed(t, "-config", "examples/joinpair/listen.hcl"), joined)
	if err := dials.Wait(); err != nil {
		t.Fatalf("the job that dials: %v\n%s%s", err, &dialled, &problems)
	}
	printed(t, dialled.String(), "joinpair: the squares of 1 to 1000 add up to 333833500", joined)
}
