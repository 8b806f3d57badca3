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

// envFetch has this binary print what is at an address, as seen from the machine where it runs.
const envFetch = "IMPI_TEST_FETCH"

func fetch(url string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// TestUIOfMachines: the page that is served on any machine of a job shows the procs of all of its
// hosts, those of the other site too.
func TestUIOfMachines(t *testing.T) {
	file, machines := machineJob(t, "")
	nodes := startBlock(t, file, machines)
	const on = 4 // not the head of its site
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	page := &machineNode{dir: nodes[on].dir, cmd: machines[on].Command(t.Context(), self, "ui", "-run-dir", nodes[on].dir)}
	page.cmd.Env = nodes[on].cmd.Env
	page.start(t, "ui")
	page.awaits(t, page.out, "token=")
	page.awaits(t, page.out, "\n")
	asks := machines[on].Command(t.Context(), self)
	asks.Env = append(os.Environ(), envFetch+"="+strings.Replace(strings.TrimSpace(page.out.String()), "/?", "/api/job?", 1))
	b, err := asks.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if n := strings.Count(string(b), `"pid":`); n != 12 {
		t.Errorf("%d procs are shown: %s", n, b)
	}
	for _, m := range machines {
		if !strings.Contains(string(b), `"`+m.Address+`"`) {
			t.Errorf("host %s is not shown: %s", m.Address, b)
		}
	}
	_ = page.cmd.Process.Signal(syscall.SIGTERM)
	<-page.over
	if s := page.cmd.ProcessState.ExitCode(); s != 0 {
		t.Errorf("status %d", s)
	}
	endBlock(t, machines, nodes)
}
