package engine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/hostlist"
)

// Slurm starts programs inside an allocation of salloc or sbatch, by one step of srun. The step
// does not keep the job's own steps from running, and ends with the job: nothing is left after
// scancel. A node that is lost does not end the step (--no-kill), and srun does not report it
// before the step is over. If that is too late, the programs must watch each other.
type Slurm struct {
	Environ []string // has the variables of the allocation, and is passed to srun; nil: os.Environ

	// MPI is srun's --mpi; "": none. Sites whose network needs credentials from a plugin of Slurm,
	// such as Slingshot, name that plugin.
	MPI     string
	Options []string // added to srun's command line after those of Slurm itself, and so override them
}

// InSlurm reports whether environ is that of a process in an allocation of Slurm.
func InSlurm(environ []string) bool { return lookup(environ, "SLURM_JOB_ID") != "" }

// lookup finds a variable; the last one counts, as for programs that are started with environ.
func lookup(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(environ[i], name+"="); found {
			return value
		}
	}
	return ""
}

func (e Slurm) environ() []string {
	if e.Environ != nil {
		return e.Environ
	}
	return os.Environ()
}

// Allocation returns the nodes of the job, with the number of tasks of each and the addresses that
// Slurm has for them.
func (e Slurm) Allocation(ctx context.Context) ([]Machine, error) {
	environ := e.environ()
	list := lookup(environ, "SLURM_JOB_NODELIST")
	if !InSlurm(environ) || list == "" {
		return nil, fmt.Errorf("this is not inside of an allocation of Slurm, as SLURM_JOB_ID and SLURM_JOB_NODELIST are not both in the environment. Get one by salloc or sbatch")
	}
	names, err := hostlist.Expand(list, maxMachines)
	if err != nil {
		return nil, fmt.Errorf("SLURM_JOB_NODELIST: %w", err)
	}
	var tasks []int
	if text := lookup(environ, "SLURM_TASKS_PER_NODE"); text != "" {
		if tasks, err = expandTasks(text); err != nil {
			return nil, fmt.Errorf("SLURM_TASKS_PER_NODE: %w", err)
		}
		if len(tasks) != len(names) {
			return nil, fmt.Errorf("SLURM_TASKS_PER_NODE=%s is for %d nodes, but SLURM_JOB_NODELIST=%s has %d. Something has changed one of them after salloc or sbatch", text, len(tasks), list, len(names))
		}
	}
	addresses, err := e.addresses(ctx, environ, list)
	if err != nil {
		return nil, err
	}
	machines := make([]Machine, len(names))
	for i, name := range names {
		machines[i] = Machine{Name: name, Address: addresses[name]}
		if tasks != nil {
			machines[i].Tasks = tasks[i]
		}
	}
	return machines, nil
}

// Named returns the nodes of the job with the given names. They have no addresses, for which Slurm
// would have to be asked. It returns nil if a name is not that of a node of the job.
func (e Slurm) Named(names []string) []Machine {
	nodes, err := hostlist.Expand(lookup(e.environ(), "SLURM_JOB_NODELIST"), maxMachines)
	if err != nil || !InSlurm(e.environ()) {
		return nil
	}
	machines := make([]Machine, len(names))
	for i, name := range names {
		if !slices.Contains(nodes, name) {
			return nil
		}
		machines[i].Name = name
	}
	return machines
}

func (e Slurm) addresses(ctx context.Context, environ []string, list string) (map[string]string, error) {
	path, err := lookPath("scontrol")
	if err != nil {
		return nil, err
	}
	var stderr tail
	cmd := exec.CommandContext(ctx, path, "--oneliner", "show", "node", list)
	cmd.Env, cmd.Stderr = environ, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("Slurm does not say where its nodes %s are reached: scontrol show node: %w: %s", list, err, strings.TrimSpace(string(stderr.b)))
	}
	return nodeAddresses(string(out)), nil
}

func nodeAddresses(text string) map[string]string {
	addresses := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if name := lookup(fields, "NodeName"); name != "" {
			addresses[name] = lookup(fields, "NodeAddr")
		}
	}
	return addresses
}

// Start implements Engine. The machines must be nodes of the allocation.
func (e Slurm) Start(ctx context.Context, machines []Machine, c Command) (*Started, error) {
	if !InSlurm(e.environ()) {
		return nil, fmt.Errorf("cannot start %s by Slurm: this is not inside of an allocation, as SLURM_JOB_ID is not in the environment. Get one by salloc or sbatch", strings.Join(c.Args, " "))
	}
	if len(machines) == 0 {
		return start(ctx, nil, c, nil, 1)
	}
	names := make([]string, len(machines))
	serves := make([]int, len(machines))
	for i, m := range machines {
		names[i], serves[i] = m.Name, i
	}
	mpi := cmp.Or(e.MPI, "none")
	n := strconv.Itoa(len(machines))
	args := []string{
		"srun", "--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--nodelist=" + strings.Join(names, ","),
		"--overlap", "--input=all", "--label", "--mpi=" + mpi, "--kill-on-bad-exit=0", "--no-kill", "--wait=0", "--cpu-bind=none",
	}
	args = append(append(args, e.Options...), shell...)
	return start(ctx, machines, c, []remoteCommand{{
		args: args, env: e.environ(), serves: serves, which: "SLURMD_NODENAME", labelled: true, explain: explainSlurm,
	}}, 1)
}

// slurmTroubles are phrases in srun's messages, and what to tell the user.
var slurmTroubles = []struct{ words, meaning string }{
	{"Unable to contact slurm controller", "Slurm's controller does not answer. Try scontrol ping"},
	{"Invalid job id", "the job of SLURM_JOB_ID is over. Get another one by salloc or sbatch"},
	{"Expired or invalid job", "the job of SLURM_JOB_ID is over. Get another one by salloc or sbatch"},
	{"Node failure", "Slurm has lost a node of the job"},
	{"NODE FAILURE", "Slurm has lost a node of the job"},
	{"CANCELLED", "Slurm has ended the step, as somebody has cancelled it or the job, or its time was over"},
	{"Invalid MPI type", "Slurm does not have this plugin for MPI. srun --mpi=list names those that it has"},
	{"Requested node configuration is not available", "the nodes do not have what the step asks for. Look at the options that were set for srun, and at SLURM_ variables that change what it asks for"},
	{"Requested nodes are busy", "other steps of the job have all that the nodes have. This srun may not know --overlap"},
	{"not in this job", "a machine is not one of those that the job has got. Leave out the list of machines, or get a job with them"},
}

func explainSlurm(messages string) string {
	for _, t := range slurmTroubles {
		if strings.Contains(messages, t.words) {
			return t.meaning + ". srun has printed: " + messages
		}
	}
	return ""
}

const maxMachines = 1 << 16

func tooMany() error { return fmt.Errorf("these are more than %d machines", maxMachines) }

// expandTasks returns the numbers of a list as Slurm writes it: 2(x3),1 is 2, 2, 2 and 1.
func expandTasks(list string) ([]int, error) {
	var tasks []int
	for word := range strings.SplitSeq(list, ",") {
		number, times := word, "1"
		if before, after, found := strings.Cut(word, "(x"); found && strings.HasSuffix(after, ")") {
			number, times = before, strings.TrimSuffix(after, ")")
		}
		n, e1 := strconv.ParseUint(number, 10, 31)
		k, e2 := strconv.ParseUint(times, 10, 31)
		if e1 != nil || e2 != nil {
			return nil, fmt.Errorf("%q is no number of tasks, and no n(xtimes)", word)
		}
		if k > uint64(maxMachines-len(tasks)) {
			return nil, tooMany()
		}
		for range k {
			tasks = append(tasks, int(n))
		}
	}
	return tasks, nil
}
