package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/skips"
)

// TestNativeBySrun: inside of an allocation of Slurm, srun starts the procs of sites with an MPI of
// their own, by the plugin for what that MPI speaks. The nodes of this Slurm are on one machine,
// which a native site can have only once, so that each job has one of them.
func TestNativeBySrun(t *testing.T) {
	c := slurmtest.Start(t, 1)
	dir, self, program := scriptOfNode(t)
	for _, v := range []struct{ name, mpicc, plugin string }{
		{"MPICH", "mpicc.mpich", "pmi2"}, {"Open MPI", "mpicc.openmpi", "pmix"},
	} {
		t.Run(v.name, func(t *testing.T) {
			if _, err := exec.LookPath(v.mpicc); err != nil {
				skips.NotRun(t, "there is no "+v.mpicc, "apt-get install libopenmpi-dev libmpich-dev")
			}
			if plugins := c.Run("sh", "-c", "srun --mpi=list 2>&1"); !strings.Contains(plugins, v.plugin) {
				skips.NotRun(t, "this Slurm has no plugin for "+v.plugin, "a Slurm that was built with it")
			}
			file := filepath.Join(dir, v.plugin+".hcl")
			text := fmt.Sprintf(`job { embedded_server {} }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.11"
    procs   = 2
  }
  native {
    mpicc  = %q
    launch = ["srun", "--overlap", "-n", "{procs}", "--mpi=%s"]
  }
  route "alpha" { prefer = ["native"] }
}
%s
program {
  command = [%q]
  env     = { %s = "sum" }
}
`, v.mpicc, v.plugin, patient, self, asProgram)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "salloc", "--quiet", "-N1", "-n2", program, "-config", file)
			cmd.Env = append(os.Environ(), c.Env()...)
			out, err := cmd.CombinedOutput()
			skipWithoutCgo(t, string(out))
			if err != nil || strings.Count(string(out), "[alpha] sum 1\n") != 2 {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
