package mpiexec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The tools that procs can run under.
const (
	Valgrind = "valgrind"
	GDB      = "gdb"
)

// The files of this package's tools in the folder lib of an installation.
const (
	// Suppressions are reports of valgrind about Go's runtime in the library that are not errors.
	Suppressions = "impi-valgrind.supp"
	// Batch are the commands of a gdb without a terminal: run, and say where the program fell.
	Batch = "impi-batch.gdb"
)

// goSettings are for Go's runtime in the library: valgrind does not know all instructions of new
// processors, and both tools would stop at the signals by which goroutines are interrupted.
const goSettings = "cpu.rdtscp=off,asyncpreemptoff=1"

var tools = []option{
	{[]string{"-valgrind"}, nil, "run procs under valgrind; what it finds is in valgrind.RANK.log", put(func(p *parser) *string { return &p.run.Tool }, Valgrind)},
	{[]string{"-gdb"}, nil, "run procs under gdb: in windows if there is DISPLAY, or to print where they fall", put(func(p *parser) *string { return &p.run.Tool }, GDB)},
	{[]string{"-tool-ranks"}, []string{"RANKS"}, "these procs alone: 0,3-5", func(p *parser, v []string) (err error) {
		p.run.ToolRanks, err = ranks(v[0])
		return err
	}},
}

// maxToolRanks is the most ranks that can be named: they stand in a command line.
const maxToolRanks = 4096

func ranks(text string) (list []int, err error) {
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, e1 := strconv.Atoi(from)
		b, e2 := strconv.Atoi(to)
		if e1 != nil || e2 != nil || a < 0 || b < a {
			return nil, fmt.Errorf("%q is no rank and no range of them, as 3-5 is", part)
		}
		if b-a >= maxToolRanks-len(list) {
			return nil, fmt.Errorf("more than %d ranks: leave it out for all", maxToolRanks)
		}
		for ; a <= b; a++ {
			list = append(list, a)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// UnderTool changes the programs' commands so that they run under the tool that the run asks for,
// if any. The programs' names are looked up before.
func (r *Run) UnderTool(m Machine) error {
	if r.Tool == "" {
		if r.ToolRanks != nil {
			return errors.New("-tool-ranks says which procs run under -gdb or -valgrind: write one of them as well")
		}
		return nil
	}
	total := 0
	for _, p := range r.Programs {
		total += p.Procs
	}
	if k := len(r.ToolRanks); k > 0 && r.ToolRanks[k-1] >= total {
		return fmt.Errorf("-tool-ranks: there is no rank %d among %d procs", r.ToolRanks[k-1], total)
	}
	if r.Engine == "" && !m.Has(r.Tool) {
		return fmt.Errorf("-%s: there is no %[1]s on this machine: apt-get install %[1]s, or the like", r.Tool)
	}
	words, err := r.tool(m)
	if err != nil {
		return err
	}
	script := "exec " + words + ` "$@"`
	if len(r.ToolRanks) > 0 {
		var only []string
		for _, k := range r.ToolRanks {
			only = append(only, strconv.Itoa(k))
		}
		script = fmt.Sprintf(`case $IMPI_SITE_PROC in %s) %s;; esac; exec "$@"`, strings.Join(only, "|"), script)
	}
	settings := goSettings
	if own, _ := m.Getenv("GODEBUG"); own != "" {
		settings = own + "," + settings
	}
	for i := range r.Programs {
		p := &r.Programs[i]
		p.Command = append([]string{"/bin/sh", "-c", script, "impiexec"}, p.Command...)
		p.Slow = true
		if own := p.Env["GODEBUG"]; own != "" {
			p.setEnv("GODEBUG", own+","+goSettings)
		} else {
			p.setEnv("GODEBUG", settings)
		}
	}
	return nil
}

// tool is the tool's command for a shell, to which the program and its arguments are added. The
// variable IMPI_SITE_PROC has the rank, as the job has one site.
func (r *Run) tool(m Machine) (string, error) {
	file := map[string]string{Valgrind: Suppressions, GDB: Batch}[r.Tool]
	display, _ := m.Getenv("DISPLAY")
	windows := r.Tool == GDB && display != ""
	if windows {
		return `xterm -T "rank $IMPI_SITE_PROC" -e gdb -q -ex 'handle SIGURG nostop noprint pass' --args`, nil
	}
	path, err := m.Library(file)
	if err != nil {
		return "", fmt.Errorf("-%s: %w", r.Tool, err)
	}
	path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	if r.Tool == Valgrind {
		return "valgrind --suppressions=" + path + " --log-file=valgrind.%q{IMPI_SITE_PROC}.log", nil
	}
	return "gdb -q -batch -x " + path + " --args", nil
}
