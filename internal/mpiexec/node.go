package mpiexec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/cmdline"
)

// Machines are where programs run: the value of impi-node's flag -on.
type Machines struct {
	Engine string `json:"engine"` // BySSH, BySlurm or ByPBS
	Hosts  []Host `json:"hosts"`
}

// Args returns the arguments of impi-node that do what the run asks for.
func (r *Run) Args() ([]string, error) {
	var args []string
	if !r.Prefix {
		args = append(args, "-no-prefix")
	}
	if r.LogLevel != "" {
		args = append(args, "-log-level", r.LogLevel)
	}
	if r.Bind != "" {
		args = append(args, "-bind", r.Bind)
	}
	if r.Progress != "" {
		args = append(args, "-progress", r.Progress)
	}
	for _, x := range [][2]string{{"-ports", r.Ports}, {"-metrics", r.Metrics}, {"-report", r.Report}, {"-trace-calls", r.Calls}, {"-otlp", r.OTLP}} {
		if x[1] != "" {
			args = append(args, x[0], x[1])
		}
	}
	if r.Engine != "" {
		text, err := json.Marshal(Machines{r.Engine, r.Hosts})
		if err != nil {
			return nil, fmt.Errorf("the machines cannot be written as JSON: %w", err)
		}
		args = append(args, "-on", string(text))
	}
	if p := r.Programs[0]; len(r.Programs) == 1 && p.plain() {
		return append(append(args, "-n", strconv.Itoa(p.Procs), "--"), p.Command...), nil
	}
	text, err := json.Marshal(r.Programs)
	if err != nil {
		return nil, fmt.Errorf("the programs cannot be written as JSON: %w", err)
	}
	return append(args, "-programs", string(text)), nil
}

func (p Program) plain() bool {
	return len(p.Env) == 0 && p.Dir == "" && p.Out == "" && p.Err == "" && !p.Slow
}

// Help returns the text that impiexec -help prints.
func Help() string {
	var b strings.Builder
	b.WriteString(`impiexec runs MPI programs with the options of mpiexec: on this machine, on those of a
list, or on those that the job of Slurm or PBS has that it is part of.

Usage: impiexec [options] PROGRAM [ARGS...] [: [options] PROGRAM [ARGS...]]...

Examples:
  impiexec -n 4 ./prog input.txt
  impiexec -n 2 -env OMP_NUM_THREADS 2 ./prog
  impiexec -n 4 -l ./prog                    each line of output begins with its rank
  impiexec -n 1 ./master : -n 3 ./worker     MPI_APPNUM is 0 and 1
  impiexec -n 4 -outfile-pattern out.%r ./prog
  impiexec -n 4 -valgrind ./prog             what it finds is in valgrind.0.log, ...
  impiexec -n 4 -gdb ./prog                  where in the program a proc falls
  impiexec -n 64 -hostfile nodes ./prog      by ssh; the first line is this machine
  salloc -N 4 --ntasks-per-node=16 impiexec ./prog

Options, with one dash or two:
`)
	for _, o := range options {
		if o.help != "" {
			fmt.Fprintf(&b, "  %-38s  %s\n", o.usage(strings.Join(o.names, ", ")), o.help)
		}
	}
	b.WriteString(`
A name without a slash is looked for in PATH, then in this folder.
All variables of the environment are passed on. Rank 0 reads standard input. The
exit status is that of the first proc that failed; see: impi-node help exit

Each machine gets its slots in procs, with ranks in a row; when all are full each
gets so many again. Without -n a single program uses all slots. The program, the
folder and impi-node must be at the same place on all machines.

Several sites, other networks, LAM/MPI at another site: that is a job file, which
impi-node -config runs.
`)
	return cmdline.Wrap(b.String(), 96)
}
