package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/loopback"
)

// TestRecordsWithoutAFile: a job without a file serves metrics while it runs, and leaves a report
// and the calls of its procs.
func TestRecordsWithoutAFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	r := startJob(t, 2, "-n", "2", "-metrics", at.String(), "-report", "r-%j.html", "-trace-calls", "calls-%r.json", "--", self)
	answer, err := http.Get("http://" + at.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !strings.Contains(string(text), "impi_") {
		t.Errorf("%v: %s", err, text)
	}
	_, job := r.report(t)
	for _, p := range job.Sites[0].Ranks {
		if err := syscall.Kill(p.PID, syscall.SIGUSR1); err != nil { // it goes on to MPI_Finalize
			t.Fatal(err)
		}
	}
	if err := r.cmd.Wait(); err != nil {
		t.Error(err)
	}
	report, err := jobreport.Read("r-" + filepath.Base(self) + ".html")
	if err != nil || len(report.Ranks) != 2 {
		t.Errorf("%v: %+v", err, report)
	}
	for _, name := range []string{"calls-0.json", "calls-1.json"} {
		if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), "mpi.Recv") && !strings.Contains(string(b), "MPI_Recv") {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
}

// TestRecordsOfJobsSideBySide: a job does not touch the files that another one writes, and says
// what to do.
func TestRecordsOfJobsSideBySide(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "100%p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	first := startJob(t, 2, "-n", "2", "-report", "r.html", "-trace-calls", "calls-%r.json", "--", self)
	before, err := os.ReadFile("calls-1.json")
	if err != nil {
		t.Fatal(err)
	}
	_, job := first.report(t)
	status, _, errs := impiNode(t, "", "-n", "2", "-trace-calls", "calls-%r.json", "--", self)
	want := fmt.Sprintf("calls cannot be traced: %s/calls-0.json is written by process %d, of another job: wait for its end, or put %%p", dir, job.Sites[0].Ranks[0].PID)
	if status != ending.StatusConfig || !strings.Contains(errs, want) {
		t.Errorf("status %d, no %q: %s", status, want, errs)
	}
	if after, err := os.ReadFile("calls-1.json"); err != nil || !strings.HasPrefix(string(after), strings.TrimSuffix(string(before), "]\n")) {
		t.Errorf("%v: the other job's file has changed", err)
	}
	end := func(r *running) {
		_, job := r.report(t)
		for _, p := range job.Sites[0].Ranks {
			if err := syscall.Kill(p.PID, syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	var said bytes.Buffer
	second := startProgramAs(t, func(c *exec.Cmd) { c.Stderr = &said }, runBase(t), "exchange", 2, "-n", "2", "-report", "r.html", "-trace-calls", "calls-%p-%r.json", "--", self)
	end(first)
	end(second)
	reports, err := filepath.Glob("r*.html")
	if own := fmt.Sprintf("r-%d.html", second.cmd.Process.Pid); err != nil || !slices.Equal(reports, []string{own, "r.html"}) {
		t.Errorf("%v: %q, not %s and r.html", err, reports, own)
	}
	if text := said.String(); !strings.Contains(text, "the report of the job has another name") || !strings.Contains(text, "given_by=-report") {
		t.Errorf("nobody says why:\n%s", text)
	}
}

// TestRecordsWithAFile: the file has blocks for that.
func TestRecordsWithAFile(t *testing.T) {
	path := file(t, twoSites)
	for flag, want := range map[string]string{
		"-metrics": `leave out -metrics, and write metrics { listen`, "-report": "leave out -report, and write report {", "-trace-calls": "leave out -trace-calls, and write trace {",
	} {
		if status, _, errs := impiNode(t, "", "-config", path, flag, "x"); status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d: %s", flag, status, errs)
		}
	}
	for _, flag := range []string{"-metrics", "-report", "-trace-calls"} {
		if status, _, errs := impiNode(t, "", "-n", "1", flag, "", "/bin/true"); status != statusUsage || !strings.Contains(errs, flag+": it is empty") {
			t.Errorf("%s: status %d: %s", flag, status, errs)
		}
	}
	if status, _, errs := impiNode(t, "", "-n", "1", "-metrics", "9464", "/bin/true"); status != statusUsage || !strings.Contains(errs, "127.0.0.1:9464") {
		t.Errorf("status %d: %s", status, errs)
	}
}
