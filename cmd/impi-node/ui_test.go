package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/launch/launchtest"
)

// TestUICommand: the command serves the page of a job whose file does not ask for one, says the
// address with its token, and ends by a signal; without a job it says so.
func TestUICommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := func(dir string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), asNode+"=1", asProgram+"=block", "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir)
		return cmd
	}
	dir := launchtest.ShortDir(t)
	out, err := command(dir, "ui", "-run-dir", dir).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "no job of this user runs with its run directories in "+dir) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = command(dir, "ui", "-listen", "0.0.0.0:80").CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), "ssh -L") {
		t.Errorf("%v: %s", err, out)
	}

	job := &machineNode{dir: dir, cmd: command(dir, "-n", "2", self)}
	job.start(t, "job")
	for rank := range 2 {
		job.awaits(t, job.out, fmt.Sprintf("[%d] ready", rank))
	}
	page := &machineNode{dir: dir, cmd: command(dir, "ui", "-run-dir", dir)}
	page.start(t, "ui")
	page.awaits(t, page.out, "token=")
	page.awaits(t, page.out, "\n")
	url := strings.TrimSpace(page.out.String())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(url, "/?", "/api/job?", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK || strings.Count(string(b), `"pid":`) != 2 {
		t.Errorf("%s: %v, %s: %s", url, err, a.Status, b)
	}
	_ = page.cmd.Process.Signal(syscall.SIGTERM)
	<-page.over
	if s := page.cmd.ProcessState.ExitCode(); s != 0 {
		t.Errorf("status %d", s)
	}
}
