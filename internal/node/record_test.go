package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/jobreport"
)

// reportsOf runs a job with reports in a folder, and reads what the head of each site has left.
func reportsOf(t *testing.T, mode string, procs ...int) (all []*jobreport.Report, failures []string) {
	t.Helper()
	job := testJob(mode, procs...)
	job.Report.Path = filepath.Join(t.TempDir(), "r-%j.html")
	running := start(t, job)
	for i, f := range end(running) {
		failure := ""
		if f != nil {
			failure = f.Text
		}
		failures = append(failures, failure)
		r, err := jobreport.Read(job.Report.Name(job.Name(), job.Sites[i].Name, len(job.Sites)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all, failures
}

func init() { lastLook = patience }

// TestReportOfAJob: each head knows the whole job to the end, though the sites end at the same
// time.
func TestReportOfAJob(t *testing.T) {
	all, failures := reportsOf(t, "all", 2, 2)
	for i, r := range all {
		if failures[i] != "" || r.Failure != "" || r.Status != 0 || r.By != siteName(i) || r.Ran.IsZero() || len(r.Sites) != 2 {
			t.Errorf("site %d: %q, %+v", i, failures[i], r)
		}
		if !r.Whole {
			t.Errorf("site %d knows %+v", i, r.Sites)
		}
		for _, x := range r.Ranks {
			if x.Time == 0 || x.Classes["recv"] == 0 || x.Classes["finalize"] == 0 || x.Classes["init"] == 0 || x.Time < x.Classes["init"] || x.Site == siteName(i) && x.State != "exited with status 0" {
				t.Errorf("%+v", x)
			}
			sent := make(map[int]uint64)
			for _, m := range r.Sent {
				if m.From == x.Rank && m.Messages > 0 {
					sent[m.To] = m.Bytes
				}
			}
			for to := range 4 {
				if (sent[to] >= 8) != (to != x.Rank) {
					t.Errorf("rank %d has sent %v", x.Rank, sent)
				}
			}
		}
		called := make(map[string]uint64)
		for _, c := range r.Calls {
			called[c.Name] = c.Calls
		}
		for _, call := range []string{"MPI_Recv", "MPI_Isend", "MPI_Wait"} {
			if n := called[call]; n != 12 {
				t.Errorf("%v", called)
			}
		}
	}
}

// TestReportOverChannels: heads that can ask each other over channels only do not wait for each
// other at the end, when these are closed, for which they would have as long as a test.
func TestReportOverChannels(t *testing.T) {
	job := route(testJob("all", 2, 1), config.Route{Prefer: []string{"tcp"}})
	job.Report.Path = filepath.Join(t.TempDir(), "r-%s.html")
	all := start(t, job)
	wantNone(t, all)
	for i, s := range all {
		if log := s.err.String(); strings.Contains(log, "the report will have nothing of a site") {
			t.Errorf("site %d:\n%s", i, log)
		}
		if r, err := jobreport.Read(job.Report.Name(job.Name(), siteName(i), 2)); err != nil || len(r.Ranks) < job.Sites[i].Procs() {
			t.Errorf("%v, %+v", err, r)
		}
	}
}

// TestReportOfSitesApart: heads that cannot ask each other say so at the start, and do not wait for
// each other at the end, for which they would have as long as a test.
func TestReportOfSitesApart(t *testing.T) {
	job := route(testJob("all", 2, 1), config.Route{Prefer: []string{"tcp"}})
	job.Report.Path = filepath.Join(t.TempDir(), "r-%s.html")
	job.Sites[1].Labels.Versions = manyVersions()
	all := start(t, job)
	wantNone(t, all)
	for i, s := range all {
		if log := s.err.String(); !strings.Contains(log, "the report will have nothing of a site: ") || !strings.Contains(log, "other="+siteName(1-i)) {
			t.Errorf("site %d does not say that it cannot ask the other one:\n%s", i, log)
		}
		r, err := jobreport.Read(job.Report.Name(job.Name(), siteName(i), 2))
		if err != nil {
			t.Fatal(err)
		}
		if r.Whole || len(r.Ranks) != job.Sites[i].Procs() || !strings.HasPrefix(r.Sites[1-i].Known, "nothing: its nodes have not answered") {
			t.Errorf("%+v", r)
		}
	}
}

// TestReportOfWaitany: a wait for any of two requests counts for the one that was done, not for the
// first.
func TestReportOfWaitany(t *testing.T) {
	all, failures := reportsOf(t, "any", 3)
	waited := make(map[int]int64)
	for _, w := range all[0].Waits {
		if w.From == 0 && w.Cause == "recv" {
			waited[w.For] += w.Time
		}
	}
	if failures[0] != "" || waited[1] == 0 || waited[2] == 0 {
		t.Errorf("%q: rank 0 has waited %v", failures[0], waited)
	}
}

// TestReportOfAFailure: what is known of a job that fails is kept, with the failure.
func TestReportOfAFailure(t *testing.T) {
	all, failures := reportsOf(t, "three", 3)
	r := all[0]
	if failures[0] == "" || r.Failure != failures[0] || r.Status != 3 || len(r.Ranks) != 3 || r.Ranks[1].State != "exited with status 3" {
		t.Errorf("%q: %+v", failures[0], r)
	}
}

// TestReportCannotBeWritten: that is said at the start and at the end, and changes nothing else.
func TestReportCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	job := testJob("all", 2)
	job.Report.Path = filepath.Join(dir, "none", "r.html")
	all := start(t, job)
	wantNone(t, all)
	log := all[0].err.String()
	for _, want := range []string{"the report of the job will probably not be written: make the folder", "the report of the job cannot be written"} {
		if !strings.Contains(log, want) {
			t.Errorf("nobody says %q:\n%s", want, log)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
