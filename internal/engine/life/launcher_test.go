package life

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/engine/proc"
)

// TestLaunchersOfOthers tells the processes of other launchers from programs that are alone.
func TestLaunchersOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		env   string
		names string // what the refusal has in it, or "": alone
	}{
		"nothing":                   {"", ""},
		"PMI":                       {"PMI_RANK=2 PMI_SIZE=4", "one of 4 processes of a launcher that speaks PMI (PMI_SIZE=4, PMI_RANK=2)"},
		"PMI of one":                {"PMI_RANK=0 PMI_SIZE=1", ""},
		"PMI without size":          {"PMI_RANK=0", "PMI_RANK=0"},
		"PMI of no size":            {"PMI_RANK=0 PMI_SIZE=many", "PMI_RANK=0"},
		"PMIx":                      {"PMIX_RANK=0", "PMIX_RANK=0"},
		"Open MPI":                  {"OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=1 PMIX_RANK=1", "OMPI_COMM_WORLD_SIZE=3, OMPI_COMM_WORLD_RANK=1"},
		"Open MPI of one":           {"OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0", ""},
		"srun":                      {"SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_STEP_ID=0", "one of 4 processes of Slurm's srun (SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=3)"},
		"srun of one of several":    {"SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0", ""},
		"srun of PMIx":              {"SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 PMIX_RANK=1", "SLURM_STEP_NUM_TASKS=2"},
		"srun of one with PMIx":     {"SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0", ""},
		"a batch script":            {"SLURM_NTASKS=4 SLURM_PROCID=0", "SLURM_NTASKS=4"},
		"a batch script of one":     {"SLURM_NTASKS=1 SLURM_PROCID=0", ""},
		"mpiexec -n 1 in a script":  {"SLURM_NTASKS=4 PMI_SIZE=1 PMI_RANK=0", ""},
		"srun -n 4 in mpiexec -n 1": {"SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 PMI_SIZE=1 PMI_RANK=0", "SLURM_STEP_NUM_TASKS=4"},
		"flux run":                  {"FLUX_JOB_SIZE=2 FLUX_TASK_RANK=1", "one of 2 processes of flux run (FLUX_JOB_SIZE=2, FLUX_TASK_RANK=1)"},
		"flux run of one":           {"FLUX_JOB_SIZE=1 FLUX_TASK_RANK=0", ""},
		"jsrun":                     {"JSM_NAMESPACE_SIZE=2 JSM_NAMESPACE_RANK=0", "JSM_NAMESPACE_SIZE=2"},
		"MVAPICH":                   {"MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=2"},
		"aprun":                     {"ALPS_APP_PE=3", "ALPS_APP_PE=3"},
		"LAM":                       {"LAMRANK=1", "LAMRANK=1"},
		"PALS":                      {"PALS_RANKID=0", "PALS_RANKID=0"},
		"wanted":                    {"PMI_RANK=2 PMI_SIZE=4 IMPI_SINGLETON=1", ""},
		"not wanted":                {"PMI_RANK=2 PMI_SIZE=4 IMPI_SINGLETON=0", "PMI_SIZE=4"},
	} {
		env := map[string]string{}
		for _, f := range strings.Fields(tc.env) {
			k, v, _ := strings.Cut(f, "=")
			env[k] = v
		}
		err := mayBeAlone(func(k string) string { return env[k] })
		switch {
		case tc.names == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.names != "" && (!errors.Is(err, proc.ErrLauncher) || !strings.Contains(err.Error(), tc.names) || !strings.Contains(err.Error(), "impiexec -n ") || !strings.Contains(err.Error(), "IMPI_SINGLETON=1")):
			t.Errorf("%s: got %v, want a refusal that names %s and the remedies", name, err, tc.names)
		}
	}
}

// TestInitOfOtherLaunchers calls Init in processes of their own, which have the variables.
func TestInitOfOtherLaunchers(t *testing.T) {
	const child = "IMPI_TEST_INIT"
	if os.Getenv(child) != "" {
		if err := Init(); err != nil {
			t.Fatal(err)
		}
		if err := Finalize(); err != nil {
			t.Fatal(err)
		}
		return
	}
	none := t.TempDir()
	if err := os.WriteFile(filepath.Join(none, "libpmix.so.2"), nil, 0o600); err != nil { // which cannot be loaded
		t.Fatal(err)
	}
	pmix := "PMIX_NAMESPACE=a PMIX_RANK=0 LD_LIBRARY_PATH=" + none
	for env, want := range map[string]string{
		pmix:                                     "PMIx cannot be spoken",
		pmix + " OMPI_COMM_WORLD_SIZE=2":         "PMIx cannot be spoken",
		pmix + " OMPI_COMM_WORLD_SIZE=1":         "PASS",
		"PMI_RANK=1 PMI_SIZE=2":                  "this program was not started by impiexec",
		"PMI_RANK=1 PMI_SIZE=2 IMPI_SINGLETON=1": "PASS",
		"PMI_RANK=0 PMI_SIZE=1":                  "PASS",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInitOfOtherLaunchers$")
		cmd.Env = append(append(os.Environ(), child+"=1"), strings.Fields(env)...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (want == "PASS") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q:\n%s", env, err, want, out)
		}
	}
}
