package mpiexec

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/launch/engine"
)

type option struct {
	names []string // with one dash; two are the same
	args  []string // what follows it
	help  string   // empty: known, and not shown
	set   func(p *parser, values []string) error
}

func (o *option) usage(name string) string {
	return strings.Join(append([]string{name}, o.args...), " ")
}

// options is filled by init, because help is an option and prints all.
var options []option

func init() {
	options = slices.Concat(common, environment, places, binding, computing, output, records, tools, ignored, refused)
}

var common = []option{
	{[]string{"-n", "-np", "-c"}, []string{"PROCS"}, "how many procs; 1 without it", func(p *parser, v []string) (err error) {
		p.now.Procs, err = number(v[0])
		return err
	}},
	{[]string{"-wdir", "-wd", "-cwd"}, []string{"DIR"}, "run the program in this folder", take(func(p *parser) *string { return &p.now.Dir })},
	{[]string{"-gwdir"}, []string{"DIR"}, "the same for all programs", take(func(p *parser) *string { return &p.dir })},
	{[]string{"-h", "-help"}, nil, "print this", put(func(p *parser) *bool { return &p.run.Help }, true)},
	{[]string{"-V", "-version"}, nil, "print the version", put(func(p *parser) *bool { return &p.run.Version }, true)},
	{[]string{"-v", "-verbose"}, nil, "print the command of impi-node that is run", put(func(p *parser) *bool { return &p.run.Verbose }, true)},
	{[]string{"-log-level"}, []string{"LEVEL"}, "log of impi-node: trace, debug, info, warn or error", take(func(p *parser) *string { return &p.run.LogLevel })},
}

var environment = []option{
	{[]string{"-env"}, []string{"NAME", "VALUE"}, "set a variable", func(p *parser, v []string) error {
		p.now.setEnv(v[0], v[1])
		return variable(v[0])
	}},
	{[]string{"-genv"}, []string{"NAME", "VALUE"}, "the same for all programs", func(p *parser, v []string) error {
		p.global[v[0]] = v[1]
		return variable(v[0])
	}},
	{[]string{"-x"}, []string{"NAME[=VALUE]"}, "set a variable, or pass it on", func(p *parser, v []string) error {
		if name, value, set := strings.Cut(v[0], "="); set {
			p.now.setEnv(name, value)
			return variable(name)
		}
		return p.pass(v, p.now.setEnv)
	}},
	{[]string{"-envlist"}, []string{"NAMES"}, "pass on variables, with commas between", func(p *parser, v []string) error {
		return p.pass(strings.Split(v[0], ","), p.now.setEnv)
	}},
	{[]string{"-genvlist"}, []string{"NAMES"}, "the same for all programs", func(p *parser, v []string) error {
		return p.pass(strings.Split(v[0], ","), func(name, value string) { p.global[name] = value })
	}},
	{[]string{"-envall", "-genvall"}, nil, "", nothing}, // all variables are passed on
}

var places = []option{
	{[]string{"-hostfile", "-machinefile", "-f"}, []string{"FILE"}, "machines, one a line: node1 slots=4, or node1:4", func(p *parser, v []string) error {
		return p.hostFile(v[0])
	}},
	{[]string{"-host", "-hosts", "-H"}, []string{"HOSTS"}, "machines: node1:4,node2:4", func(p *parser, v []string) error {
		machines, err := engine.ParseHosts(v[0])
		if err != nil {
			return err
		}
		return p.on(machines)
	}},
	{[]string{"-ppn", "-perhost", "-N", "-npernode"}, []string{"PROCS"}, "procs on each machine", func(p *parser, v []string) (err error) {
		p.perHost, err = number(v[0])
		return err
	}},
	{[]string{"-launcher", "-bootstrap"}, []string{"WHAT"}, "ssh; fork: this machine alone; without it as the scheduler has it", func(p *parser, v []string) error {
		if !slices.Contains([]string{BySSH, BySlurm, ByPBS, ByFork}, v[0]) {
			return errors.New("programs are started by ssh, slurm, pbs or fork, which is this machine alone")
		}
		p.launcher = v[0]
		return nil
	}},
}

var output = []option{
	{[]string{"-l", "-prepend-rank", "-tag-output"}, nil, "lines of output begin with [rank]", put(func(p *parser) *bool { return &p.run.Prefix }, true)},
	{[]string{"-outfile-pattern", "-outfile"}, []string{"FILE"}, "standard output goes to files; %r is the rank", func(p *parser, v []string) (err error) {
		p.now.Out, err = pattern(v[0])
		return err
	}},
	{[]string{"-errfile-pattern", "-errfile"}, []string{"FILE"}, "the same for standard error", func(p *parser, v []string) (err error) {
		p.now.Err, err = pattern(v[0])
		return err
	}},
}

var binding = []option{
	{[]string{"-bind-to", "-binding"}, []string{"WHAT"}, "core: each proc has a core of its own; or none", func(p *parser, v []string) error {
		if v[0] != "core" && v[0] != "none" {
			return errors.New("procs can be bound to core or none; for anything else start the program through taskset or numactl")
		}
		p.run.Bind = v[0]
		return nil
	}},
	{[]string{"-bind-to-core"}, nil, "", put(func(p *parser) *string { return &p.run.Bind }, "core")},
	{[]string{"-bind-to-none"}, nil, "", put(func(p *parser) *string { return &p.run.Bind }, "none")},
}

var computing = []option{
	{[]string{"-progress"}, []string{"TIME"}, "look after messages so often, as 1ms, while procs compute", take(func(p *parser) *string { return &p.run.Progress })},
}

var records = []option{
	{[]string{"-ports"}, []string{"LOW-HIGH"}, "all that the job listens at has a port of these, as 7800-7899", record(func(p *parser) *string { return &p.run.Ports })},
	{[]string{"-metrics"}, []string{"ADDRESS"}, "each machine serves metrics for Prometheus there, as 127.0.0.1:9464", record(func(p *parser) *string { return &p.run.Metrics })},
	{[]string{"-report"}, []string{"FILE"}, "a report about the job is written at its end, as job.html", record(func(p *parser) *string { return &p.run.Report })},
	{[]string{"-trace-calls"}, []string{"FILE"}, "calls of MPI over time, as calls-%r.json; %r is the rank, %p the node's process ID", record(func(p *parser) *string { return &p.run.Calls })},
	{[]string{"-otlp"}, []string{"URL"}, "the job's steps go to this OpenTelemetry collector, as http://127.0.0.1:4318", record(func(p *parser) *string { return &p.run.OTLP })},
}

func nothing(*parser, []string) error { return nil }

// take keeps the word that follows an option; put keeps a value that the option stands for.
// record is take for what is to be kept of a job, which an empty value would leave out without a
// word.
func record(to func(*parser) *string) func(*parser, []string) error {
	return func(p *parser, v []string) error {
		if v[0] == "" {
			return errors.New("it is empty, as by a variable that is not set: give it a value, or leave it out")
		}
		return take(to)(p, v)
	}
}

func take(to func(*parser) *string) func(*parser, []string) error {
	return func(p *parser, v []string) error { *to(p) = v[0]; return nil }
}

func put[T any](to func(*parser) *T, value T) func(*parser, []string) error {
	return func(p *parser, _ []string) error { *to(p) = value; return nil }
}

// ignored are options that ask for what is done anyway.
var ignored = []option{
	{[]string{"-oversubscribe", "-allow-run-as-root", "-q", "-quiet", "-report-bindings", "-use-hwthread-cpus"}, nil, "", nothing},
}

// refused are options that cannot be done, and what to do instead.
var refused = []option{
	refuse(2, "this is a setting of Open MPI; transports are chosen by the routes of a job file, see docs/config.md", "-mca", "-gmca"),
	refuse(1, "ranks follow the order of the programs; leave it out", "-map-by", "-rank-by", "-rmk", "-iface"),
	refuse(1, "write timeout SECONDS impiexec ...", "-timeout"),
	refuse(1, "write the programs on the command line, with a colon between two of them", "-configfile", "-app"),
	refuse(1, "write impi-node -config FILE", "-config"),
	refuse(1, "write -outfile-pattern NAME.%r, and -errfile-pattern for standard error", "-output-filename"),
	refuse(1, "rank 0 reads standard input; a job file can name another one (program block: stdin)", "-stdin", "-s"),
	refuse(1, "give the program with its folder", "-path", "-gpath"),
	refuse(1, "the number of procs is fixed: -n PROCS", "-soft"),
	refuse(0, "start impiexec through env -i, with the variables that are wanted", "-envnone", "-genvnone"),
}

func refuse(args int, hint string, names ...string) option {
	return option{names, make([]string, args), "", func(*parser, []string) error { return errors.New(hint) }}
}

func pattern(name string) (string, error) {
	for _, after := range strings.Split(name, "%")[1:] {
		if !strings.HasPrefix(after, "r") {
			return "", fmt.Errorf("%%%.1s means nothing here; %%r is the rank", after)
		}
	}
	if name == "" {
		return "", errors.New("the file has no name")
	}
	return name, nil
}

func find(name string) (*option, bool) {
	for i := range options {
		if slices.Contains(options[i].names, name) {
			return &options[i], true
		}
	}
	return nil, false
}

// Command returns the command from which completions and man page of impiexec are made. Its options
// are not parsed by package flag: they take several values, and repeat for each program between
// colons.
func Command() *cmdline.Command {
	c := &cmdline.Command{Name: "impiexec", Help: Help(), Flags: cmdline.NewFlags(), Program: true}
	for _, o := range options {
		for _, name := range o.names {
			switch name = name[1:]; {
			case o.help == "":
			case len(o.args) == 0:
				c.Flags.Bool(name, false, "")
			default:
				c.Flags.String(name, "", map[string]string{"FILE": cmdline.File, "DIR": cmdline.Dir, "HOSTS": cmdline.Host}[o.args[0]])
			}
		}
	}
	return c
}

func unknown(word string) error {
	var known []string
	Command().Flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if best := cmdline.Nearest(strings.TrimLeft(word, "-"), known); best != "" {
		return fmt.Errorf("there is no option %s; is it -%s?", word, best)
	}
	return fmt.Errorf("there is no option %s; impiexec -help has all. the program's own options follow its name", word)
}
