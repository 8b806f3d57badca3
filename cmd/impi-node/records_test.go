package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/loopback"
)

// TestRecordsWithoutAFile: a job without a file serves metrics while it runs, and leaves a report and the
// calls of its procs.
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
