package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestCompletion: a bash completes commands and flags of impi-node.
func TestCompletion(t *testing.T) {
	status, script, errs := impiNode(t, "hello", "completion", "bash")
	if status != 0 || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := skips.Program(t, "bash")
	for line, want := range map[string]string{
		"impi-node sta": "status", "impi-node -con": "-config", "impi-node status -wa": "-watch", "impi-node manifest k": "kubernetes",
		"impi-node plugins re": "reload", "impi-node plugins verify -a": "-all", "impi-node ports job.hcl -n": "-nft", "impi-node links -exp": "-explain",
		"impi-node -log-level de": "debug", "impi-node report diff -": "-json", "impi-node help exi": "exit",
	} {
		words := "'" + strings.Join(strings.Split(line, " "), "' '") + "'"
		cmd := exec.Command(shell, "-c", "source "+path+"; COMP_WORDS=("+words+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _impi_node; printf '%s ' ${COMPREPLY[@]}")
		cmd.Dir = filepath.Dir(path)
		b, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(b)); err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
	if status, _, errs := impiNode(t, "hello", "completion", "csh"); status != statusUsage || !strings.Contains(errs, "bash, fish, zsh") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, out, errs := impiNode(t, "hello", "completion", "jobs"); status != statusOK || errs != "" {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

// TestHelpTexts: they tell of all flags, and of none that there is not.
func TestHelpTexts(t *testing.T) {
	root := tree(streams{})
	for _, fault := range root.Faults() {
		t.Error(fault)
	}
	for _, c := range root.Commands {
		if c.Hidden || c.Name == "help" || c.Name == "version" {
			continue
		}
		if c.Help == "" {
			t.Errorf("there is no help on %s", c.Name)
		}
	}
}
