package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/manual"
	"github.com/openimpi/impi/internal/skips"
)

// TestCompletion: a bash completes commands and flags of impi-node, and every command has a page with a title.
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
		"impi-node plugins re": "reload", "impi-node ports job.hcl -n": "-nft", "impi-node links -exp": "-explain",
	} {
		words := "'" + strings.Join(strings.Split(line, " "), "' '") + "'"
		cmd := exec.Command(shell, "-c", "source "+path+"; COMP_WORDS=("+words+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _impi_node; printf '%s ' ${COMPREPLY[@]}")
		cmd.Dir = filepath.Dir(path)
		b, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(b)); err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
	_, list, _ := impiNode(t, "hello", "completion", "commands")
	for _, v := range verbs() {
		if v.hidden || v.name == "help" || v.name == "version" {
			continue
		}
		if !slices.Contains(strings.Fields(list), v.name) {
			t.Errorf("there is no page of %s", v.name)
		}
		c := manual.Command{Name: "impi-node " + v.name, Help: topics[v.name]}
		if c.Title() == "" || len(c.Title()) > 100 {
			t.Errorf("%s: the title is %q", v.name, c.Title())
		}
	}
	if status, _, errs := impiNode(t, "hello", "completion", "csh"); status != statusUsage || !strings.Contains(errs, "bash, fish, zsh") {
		t.Errorf("status %d: %s", status, errs)
	}
}
