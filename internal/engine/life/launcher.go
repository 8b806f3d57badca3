package life

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/engine/proc"
)

// singletonVariable set to 1 lets a program be a job of its own even if another MPI's launcher has
// started it.
const singletonVariable = "IMPI_SINGLETON"

// counts are the variables by which launchers of other MPIs say how many processes they start, each
// with the variable that numbers them.
var counts = []struct{ size, rank, by string }{
	{"PMI_SIZE", "PMI_RANK", "a launcher that speaks PMI"},
	{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun"},
	{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "Slurm's srun"},
	{"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run"},
	{"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun"},
	{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH's mpirun_rsh"},
}

// numbers are variables that number processes. Without a count, the number of processes is unknown.
var numbers = []struct{ rank, by string }{
	{"PMI_RANK", "a launcher that speaks PMI"},
	{"PMIX_RANK", "a launcher that speaks PMIx"},
	{"PALS_RANKID", "mpiexec of PALS"},
	{"ALPS_APP_PE", "aprun"},
	{"LAMRANK", "LAM's mpirun"},
}

// mayBeAlone returns an error if another MPI's launcher has started several processes: N jobs of
// one rank are not what the user wants, but look like success. The variables of a Slurm step take
// precedence over those of the allocation, which batch scripts have too.
func mayBeAlone(getenv func(string) string) error {
	if getenv(singletonVariable) == "1" {
		return nil
	}
	counted := false
	for _, l := range counts {
		n := count(getenv(l.size))
		if n > 1 {
			return launched(getenv, n, l.by, l.size, l.rank)
		}
		counted = counted || n == 1
	}
	if counted {
		return nil
	}
	for _, l := range numbers {
		if getenv(l.rank) != "" {
			return launched(getenv, 0, l.by, l.rank)
		}
	}
	if n := count(getenv("SLURM_NTASKS")); n > 1 {
		return launched(getenv, n, "Slurm", "SLURM_NTASKS", "SLURM_PROCID")
	}
	return nil
}

// count reads a number of processes; 0 if v is none.
func count(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// launched returns the error for one of n processes, or of an unknown number if n is 0, with the
// variables that show that by has started them.
func launched(getenv func(string) string, n int, by string, variables ...string) error {
	var found []string
	for _, name := range variables {
		if v := getenv(name); v != "" {
			found = append(found, fmt.Sprintf("%s=%.40s", name, v))
		}
	}
	how, procs := "it runs under "+by, "N"
	if n > 0 {
		how, procs = fmt.Sprintf("it is one of %d processes of %s", n, by), strconv.Itoa(n)
	}
	return fmt.Errorf("%w: %s (%s), and each process would be a job of one rank; start it with `impiexec -n %s %.200s`, or by a process manager that speaks PMI or PMIx, such as srun --mpi=pmi2, or set %s=1 where each is to be a job of its own",
		proc.ErrLauncher, how, strings.Join(found, ", "), procs, os.Args[0], singletonVariable)
}
