package node

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
)

// fateJob is two sites of two procs each, of which rank 2 at beta dies.
func fateJob(fate, way string) *config.Job {
	job := with(testJob("fate", 2, 2), fateVariable, fate)
	switch way {
	case "agents":
		route(job, config.Route{Direct: false})
	case "tcp":
		route(job, config.Route{Prefer: []string{"tcp"}, Direct: true})
	}
	return job
}

// TestFirstFailingProcIsNamed kills a proc in all ways, at all times: every site names
// that proc, and how it ended, whatever its end does to the others.
func TestFirstFailingProcIsNamed(t *testing.T) {
	endings := map[string]struct {
		text   string
		status int
	}{
		"exit0":   {"exited with status 0 without MPI Finalize", 1},
		"exit3":   {"exited with status 3", 3},
		"abort":   {"called MPI Abort with code 7: on purpose", 7},
		"SIGKILL": {"was killed by SIGKILL", 137},
		"SIGSEGV": {"was killed by SIGSEGV", 139},
		"SIGABRT": {"was killed by SIGABRT", 134},
	}
	for _, c := range []struct{ when, ways, how, errors string }{
		{"finalize", "direct", "exit0 exit3 abort SIGKILL SIGSEGV SIGABRT", "fatal"},
		{"finalize", "tcp agents", "exit3 abort SIGSEGV", "fatal"}, // how it ends is the same by each way
		{"finalize", "direct", "exit3 SIGSEGV", "exit9"},
		{"recv", "direct tcp agents", "exit3 SIGSEGV", "fatal"},
		{"recv", "direct", "exit0 exit3 SIGKILL", "exit9"},
		{"alone", "direct", "exit3 SIGSEGV", "fatal"},
	} {
		for way := range strings.FieldsSeq(c.ways) {
			for how := range strings.FieldsSeq(c.how) {
				t.Run(strings.Join([]string{c.when, way, how, c.errors}, " "), func(t *testing.T) {
					all := start(t, fateJob(strings.Join([]string{c.when, how, c.errors}, " "), way))
					f := end(all)
					for i := range all {
						if want := "rank 2 on site beta " + endings[how].text; f[i] == nil || !strings.HasPrefix(f[i].Text, want) {
							t.Errorf("site %d ended with %q, want %q", i, f[i], want)
						}
					}
					if f[1] == nil || f[1].Status != endings[how].status || f[1].Remote {
						t.Errorf("beta: %+v", f[1])
					}
					if f[0] == nil || f[0].Status != ending.StatusRemote || !f[0].Remote {
						t.Errorf("alpha: %+v", f[0])
					}
				})
			}
		}
	}
}

// TestFirstFailingProcIsNamedBeforeItHasARank: the other site may wait for the one that
// fails, at the server or in Init, and hears of it there.
func TestFirstFailingProcIsNamedBeforeItHasARank(t *testing.T) {
	for how, want := range map[string]struct {
		text   string
		status int
	}{
		"exit0":   {"exited with status 0 before it called MPI Init: was the program compiled by impicc? It seems to use another MPI, or none", 1},
		"exit3":   {"exited with status 3 before it called MPI Init", 3},
		"SIGKILL": {"was killed by SIGKILL before it called MPI Init", 137},
		"SIGSEGV": {"was killed by SIGSEGV before it called MPI Init", 139},
	} {
		t.Run("start "+how, func(t *testing.T) {
			job := fateJob("start "+how+" fatal", "")
			serveApart(t, job)
			all := startSites(t, job, job.Sites[:1])
			all[0].err.Await("startup: connected", 1) // the server ends with its job, and who comes later finds nobody
			all = append(all, startSites(t, job, job.Sites[1:])...)
			f := wantAll(t, all, "proc 1 of site beta "+want.text)
			if f[1].Status != want.status || f[0].Status != ending.StatusRemote {
				t.Errorf("alpha %+v, beta %+v", f[0], f[1])
			}
		})
	}
	t.Run("in Init", func(t *testing.T) {
		job := fateJob("init SIGKILL fatal", "")
		serveApart(t, job)
		beta := startSites(t, job, job.Sites[1:]) // whose procs wait for alpha's
		pid := beta[0].out.Number(t, "[beta.1] pid ")
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if f := end(beta)[0]; f == nil || !strings.HasPrefix(f.Text, "proc 1 of site beta was killed by SIGKILL") || f.Status != 137 {
			t.Errorf("%+v", f)
		}
	})
}

// TestFirstFailingProcAfterFinalize: the others are done, and have no part in it.
func TestFirstFailingProcAfterFinalize(t *testing.T) {
	f := end(start(t, fateJob("after SIGSEGV fatal", "")))
	if f[0] != nil || f[1] == nil || !strings.HasPrefix(f[1].Text, "rank 2 on site beta was killed by SIGSEGV") || f[1].Status != 139 {
		t.Errorf("alpha %v, beta %+v", f[0], f[1])
	}
}

// TestAbortAfterFinalize: the job may be over before anything is decided; the site of the
// proc fails all the same, and says why.
func TestAbortAfterFinalize(t *testing.T) {
	f := end(start(t, fateJob("after abort fatal", "")))
	if f[1] == nil || f[1].Text != "rank 2 on site beta called MPI Abort with code 7: on purpose" || f[1].Status != 7 {
		t.Errorf("beta %+v", f[1])
	}
}
