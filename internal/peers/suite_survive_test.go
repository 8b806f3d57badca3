package peers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/soak"
)

// survivalRuns are MPICH's test programs of User-Level Failure Mitigation, and with how many procs
// they run. MPICH itself is expected to fail most of them. abort is not among them: it ends its
// job.
var survivalRuns = map[string]int{
	"agree": 4, "agree_shrink": 4, "anysource": 3, "barrier": 4, "bcast": 4, "die": 4, "failure_ack": 3, "gather": 4, "irecvdead": 2,
	"isendalive": 3, "isenddead": 2, "multi_isendalive": 4, "nbccoll": 4, "recvdead": 2, "reduce": 4, "revoke_nofail": 2,
	"revoke_shrink": 4, "scatter": 4, "sendalive": 4, "senddead": 2, "shrink": 8,
}

// TestSuiteSurvives runs the programs of MPICH's folder ft in jobs of two sites that go on without
// procs that are lost, but for those of testdata/suite/ft_not.txt.
func TestSuiteSurvives(t *testing.T) {
	s := unpackSuite(t)
	not := readNotes(t, "ft_not.txt")
	for name, why := range not {
		if survivalRuns[name] == 0 || why == "" {
			t.Errorf("ft_not.txt: %s is not run anyway, or there is no reason", name)
		}
	}
	for name, procs := range survivalRuns {
		if not[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if name != "agree" && name != "shrink" && name != "revoke_nofail" {
				soak.SkipUnlessSoak(t, "make test has three of these programs")
			}
			t.Parallel()
			s.survives(t, name, procs)
		})
	}
}

// survives runs one of these programs, which say what they do not like, and at the end that there
// were no errors. That is from a variable that MPI_Reduce has not set if a proc is lost, so it
// begins with 0.
func (s *suite) survives(t *testing.T, name string, procs int) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, name)
	args := []string{"-ftrivial-auto-var-init=zero", "-include", "mpi-ext.h", "-o", program, filepath.Join(s.root, "ft", name+".c"), filepath.Join(s.root, "util", "mtest.c")}
	for _, o := range s.objects {
		if base := filepath.Base(o); base != "mtest_thread.o" && base != "mtest.o" {
			args = append(args, o)
		}
	}
	if _, err := ctest.Run(t.Context(), "", nil, s.k.Command("impicc"), s.flags(append(args, "-lm", "-pthread")...)...); err != nil {
		t.Fatal(err)
	}
	job := strings.Replace(suiteRun{program: name, procs: procs}.job(program, "", ""), "job { embedded_server {} }", "job {\n  survive = true\n  embedded_server {}\n}", 1)
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := ctest.Run(ctx, dir, nil, s.k.Command("impi-node"), "-config", "job.hcl")
	goesOn := name == "revoke_nofail" || strings.Contains(out, "; the job went on without ")
	bad := strings.Contains(out, "xpected") || strings.Contains(out, "Wrong") || strings.Contains(out, "MPI_Abort")
	if ctx.Err() != nil || !goesOn || bad || !strings.Contains(strings.ToLower(out), "no errors") {
		t.Errorf("%v\n%s", err, out)
	}
}
