package ctest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// survivors is a job that goes on without procs that are lost, of four procs.
const survivors = `job {
  embedded_server {}
  survive = true
}
program { command = [%q, %q]  prefix_output = false }
%s
`

// survivorSites are the shapes of survivors.
var survivorSites = map[string]string{
	"one site": `site "alpha" { client = 0  host { address = "127.0.0.2"  procs = 4 } }`,
	"two sites": `site "alpha" { client = 0  host { address = "127.0.0.2"  procs = 2 } }
site "beta" { client = 1  host { address = "127.0.0.3"  procs = 2 } }`,
	"two sites without links": `site "alpha" { client = 0  host { address = "127.0.0.2"  procs = 2 } }
site "beta" { client = 1  host { address = "127.0.0.3"  procs = 2 } }
route "*" { direct = false }`,
}

// TestSurvive: procs in C go on without one that is killed before an operation, and the status and
// the last line of the job are about that.
func TestSurvive(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "survive.c")
	for _, op := range []string{"barrier", "allreduce", "bcast", "recv", "any", "probe", "wait", "ibarrier", "send", "pending", "win", "file", "writeall", "write", "close",
		"w-fence", "w-shared", "w-free", "w-lock", "w-held", "w-others", "w-lockall", "w-start", "w-post"} {
		for shape, sites := range survivorSites {
			t.Run(op+", "+shape, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "job.hcl")
				if err := os.WriteFile(file, fmt.Appendf(nil, survivors, program, op, sites), 0o600); err != nil {
					t.Fatal(err)
				}
				output, status := run(t, []string{k.Command("impi-node"), "-config", file})
				lines := strings.Split(strings.TrimSpace(output), "\n")
				const last = "rank 1 on site alpha was killed by SIGKILL; the job went on without it"
				if status != 128+9 || !strings.Contains(output, "OK survive\n") || !strings.Contains(lines[len(lines)-1], last) {
					t.Errorf("status %d:\n%s", status, output)
				}
			})
		}
	}
}

// TestSurviveInFortran: the same with INTEGERs of 4 bytes and of 8.
func TestSurviveInFortran(t *testing.T) {
	k := fortran(t)
	for _, flag := range []string{"-O2", "-fdefault-integer-8"} {
		for shape, sites := range survivorSites {
			t.Run(flag[1:]+", "+shape, func(t *testing.T) {
				dir := t.TempDir()
				program, file := filepath.Join(dir, "survive"), filepath.Join(dir, "job.hcl")
				in(t, "", k.Command("impifort"), "-Wall", flag, "-o", program, filepath.Join("testdata", "survive.f90"))
				if err := os.WriteFile(file, fmt.Appendf(nil, survivors, program, "fortran", sites), 0o600); err != nil {
					t.Fatal(err)
				}
				output, status := run(t, []string{k.Command("impi-node"), "-config", file})
				if status != 128+9 || strings.Count(output, "OK survive\n") != 1 {
					t.Errorf("status %d:\n%s", status, output)
				}
			})
		}
	}
}

// TestSurviveFatal: with the default error handler a lost proc ends the job, and the last line has
// what to write.
func TestSurviveFatal(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "survive.c")
	file := filepath.Join(t.TempDir(), "job.hcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, survivors, program, "fatal", survivorSites["two sites"]), 0o600); err != nil {
		t.Fatal(err)
	}
	output, status := run(t, []string{k.Command("impi-node"), "-config", file})
	lines := strings.Split(strings.TrimSpace(output), "\n")
	const want = "; with MPI_ERRORS_RETURN in the place of its error handler (MPI_Comm_set_errhandler) the program can go on without lost procs"
	if last := lines[len(lines)-1]; status != int(mpierr.ProcFailed) || !strings.Contains(last, "MPI_Recv: MPIX_ERR_PROC_FAILED: ") || !strings.HasSuffix(last, want) {
		t.Errorf("status %d:\n%s", status, output)
	}
}

// TestSurviveNot: without the option the first lost proc ends the job, and the functions say that
// they are not for it.
func TestSurviveNot(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "survive.c")
	output, status := run(t, []string{k.Command("impiexec"), "-n", "4", program, "recv"})
	if status != 128+9 || strings.Contains(output, "OK survive") || !strings.Contains(output, "rank 1 on site local was killed by SIGKILL") {
		t.Errorf("status %d:\n%s", status, output)
	}
}

// TestSurviveTwice: two procs are spawned for one that was lost, and one of all is lost, too. The
// procs are in C.
func TestSurviveTwice(t *testing.T) {
	k := kit(t)
	losesTwice(t, k, compiled(t, k, "survivetwice.c"))
}

// TestSurviveTwiceInFortran: the same in Fortran.
func TestSurviveTwiceInFortran(t *testing.T) {
	k := fortran(t)
	program := filepath.Join(t.TempDir(), "survivetwice")
	in(t, "", k.Command("impifort"), "-Wall", "-o", program, filepath.Join("testdata", "survivetwice.f90"))
	losesTwice(t, k, program)
}

// losesTwice runs a program for each of five procs that may be lost.
func losesTwice(t *testing.T, k *Kit, program string) {
	t.Helper()
	sites := survivorSites["two sites"]
	for lost := range 5 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "job.hcl")
			if err := os.WriteFile(file, fmt.Appendf(nil, survivors, program, fmt.Sprint(lost), sites), 0o600); err != nil {
				t.Fatal(err)
			}
			output, status := run(t, []string{k.Command("impi-node"), "-config", file})
			for rank := range 5 {
				want := fmt.Sprintf("rank %d goes on with %d\n", rank, 31&^(1<<lost))
				if strings.Contains(output, want) == (rank == lost) {
					t.Errorf("rank %d has not gone on as it must:\n%s", rank, output)
				}
			}
			lines := strings.Split(strings.TrimSpace(output), "\n")
			if last := lines[len(lines)-1]; status != 128+9 || !strings.Contains(last, "rank 3 on site beta was killed by SIGKILL") || !strings.HasSuffix(last, "the job went on without it") == (lost > 2) {
				t.Errorf("status %d:\n%s", status, output)
			}
		})
	}
}
