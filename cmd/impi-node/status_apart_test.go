package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/status"
)

// cycle has each of two procs wait for the other one for ever.
func cycle() error {
	w := mpi.World()
	_, err := mpi.Recv(w, make([]byte, 1), 1-w.Rank(), 7)
	return err
}

// cycleOverWorlds has a proc and one that it has spawned wait for each other for ever.
func cycleOverWorlds() error {
	if p := mpi.Parent(); p != nil {
		_, err := mpi.Recv(p, make([]byte, 1), 0, 7)
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	children, _, err := mpi.World().SpawnMultiple([]mpi.Command{{Path: self, Procs: 1}}, 0)
	if err != nil {
		return err
	}
	if mpi.World().Rank() != 0 {
		return mpi.Barrier(mpi.World())
	}
	_, err = mpi.Recv(children, make([]byte, 1), 0, 7)
	return err
}

// twoCommands begins the sites of a file by a command each, with run directories of their own, so
// that the nodes find each other only as those of two machines do.
func twoCommands(t *testing.T, program, text string) (alpha, beta *running) {
	t.Helper()
	server, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "embedded_server {}", fmt.Sprintf("embedded_server { listen = %q }\n auth \"key\" { env = \"KEY\" }", server), 1)
	path := file(t, text)
	t.Setenv("KEY", "4711")
	alpha = startProgram(t, program, 0, "-config", path, "-site", "alpha")
	return alpha, startProgram(t, program, 0, "-config", path, "-site", "beta")
}

// status asks until the report is as it must be, and returns what the command then says as text.
func (r *running) status(t *testing.T, isRight func([]status.Job) bool) string {
	t.Helper()
	args := []string{"status", "-run-dir", r.base, "-deadline", "60s"}
	for over := time.Now().Add(5 * time.Minute); time.Now().Before(over); {
		_, out, _ := impiNode(t, "", append(args, "-json")...)
		var report status.Report
		_ = json.Unmarshal([]byte(out), &report) // no job yet
		if isRight(report.Jobs) {
			code, text, errs := impiNode(t, "", args...)
			if code != statusOK {
				t.Errorf("status %d: %s", code, errs)
			}
			return text
		}
	}
	_, out, errs := impiNode(t, "", args...)
	t.Fatalf("the status stays\n%s%s", out, errs)
	return ""
}

// TestStatusOfSitesWithoutLinks: where procs of two sites have no links of their own, each site
// still shows all procs, and that they wait for each other.
func TestStatusOfSitesWithoutLinks(t *testing.T) {
	alpha, beta := twoCommands(t, "cycle", twoSites+`route "*" { direct = false }`)
	for name, r := range map[string]*running{"alpha": alpha, "beta": beta} {
		text := r.status(t, func(jobs []status.Job) bool { return len(jobs) == 1 && jobs[0].Deadlock != nil })
		for _, want := range []string{
			"  site alpha  rank 0  ", "  site beta  rank 1  ", " elsewhere, running", "in mpi.Recv (from rank 1, tag 7 in MPI_COMM_WORLD)",
			"in mpi.Recv (from rank 0, tag 7 in MPI_COMM_WORLD)", "probable deadlock: all procs wait for others", "rank 0 --> rank 1 --> rank 0", "under way: nothing",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("at %s nothing says %q", name, want)
			}
		}
		if t.Failed() {
			t.Log(text)
		}
	}
	cmd, _, _ := command(t, "", "status", "-watch", "-json", "-every", "100ms", "-run-dir", alpha.base)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(out)
	for i := range 3 {
		var report status.Report
		if err := lines.Decode(&report); err != nil || len(report.Jobs) != 1 || report.Jobs[0].Deadlock == nil || len(report.Jobs[0].UnderWay) > 0 {
			t.Errorf("look %d: %v: %+v", i, err, report)
		}
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
}

// TestLinksOfSitesWithoutLinks: impi-node links shows both ends of pairs without links of their
// own, and the channel by which their packets go, though the other site has no node here.
func TestLinksOfSitesWithoutLinks(t *testing.T) {
	alpha, _ := twoCommands(t, "exchange", twoSites+`route "*" { direct = false }`)
	alpha.status(t, func(jobs []status.Job) bool {
		return len(jobs) == 1 && len(jobs[0].Pairs) == 1 && len(jobs[0].Pairs[0].Views) == 2 && jobs[0].Pairs[0].Views[0].State == links.StateAgents && jobs[0].Pairs[0].Views[1].State == links.StateAgents
	})
	code, out, errs := impiNode(t, "", "links", "-measure", "-run-dir", alpha.base, "-deadline", "60s")
	for _, want := range []string{"site beta   rank 1  127.0.0.3  elsewhere, running", "0 -o- 1", "1 / 1", "host 0 > 1", "host 1 > 0", "need a restart of the job"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if code != statusOK || t.Failed() {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
	if code, out, errs = impiNode(t, "", "links", "-here", "-run-dir", alpha.base, "-deadline", "60s"); code != statusOK || strings.Contains(out, "elsewhere, running") {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
	code, _, errs = impiNode(t, "", "drain", "-run-dir", alpha.base, "127.0.0.3")
	if want := "host 127.0.0.3 is of site beta of job job, of which no node answers on this machine; run the command there, on that host"; code != statusBad || !strings.Contains(errs, want) {
		t.Errorf("status %d: %s", code, errs)
	}
}

// TestDeadlockOfParentAndChild: procs that wait for each other over the bounds of their worlds are
// a deadlock of both jobs.
func TestDeadlockOfParentAndChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := startProgram(t, "cycle over worlds", 0, "-n", "2", "--", self)
	text := r.status(t, func(jobs []status.Job) bool {
		return len(jobs) == 2 && jobs[0].Deadlock != nil && jobs[1].Deadlock != nil
	})
	parent := filepath.Base(self)
	for _, want := range []string{"probable deadlock over 2 worlds: all procs of " + parent + " and " + parent + "/", "rank 0 of " + parent + " --> rank 0 of " + parent + "/"} {
		if strings.Count(text, want) != 2 {
			t.Errorf("both jobs do not say %q:\n%s", want, text)
		}
	}
}
