package mpiexec

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/engine"
)

// fake is a machine called here, with two variables and a file of hosts.
var fake = Machine{
	Getenv: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": "/h", "EMPTY": ""}[name]
		return v, ok
	},
	Read: func(file string) (string, error) {
		text, ok := map[string]string{
			"local":  "# ours\nhere slots=4 max_slots=8\nhere:2\n\nlocalhost\n[::1]\n",
			"remote": "here\n\nnode7:4\n",
			"wrong":  "here\nnode7:x\n",
			"empty":  "# none\n",
		}[file]
		if !ok {
			return "", os.ErrNotExist
		}
		return text, nil
	},
	Local: func(host string) bool { return host == "here" || host == "localhost" || host == "::1" },
}

// args splits words as a shell does, for quotes without spaces inside.
func args(line string) []string { return strings.Fields(strings.ReplaceAll(line, "'", "")) }

// TestArgs holds what each habit becomes.
func TestArgs(t *testing.T) {
	for line, want := range map[string]string{
		"-n 4 ./a":                          "-no-prefix -n 4 -- ./a",
		"-np 4 ./a -n 2":                    "-no-prefix -n 4 -- ./a -n 2",
		"--np 4 -- -prog":                   "-no-prefix -n 4 -- -prog",
		"-c 3 ./a":                          "-no-prefix -n 3 -- ./a",
		"-n=2 ./a":                          "-no-prefix -n 2 -- ./a",
		"./a":                               "-no-prefix -n 1 -- ./a",
		"-ppn 3 ./a":                        "-no-prefix -n 3 -- ./a",
		"-l -n 2 ./a":                       "-n 2 -- ./a",
		"--tag-output -n 2 ./a":             "-n 2 -- ./a",
		"-prepend-rank -n 2 ./a":            "-n 2 -- ./a",
		"-log-level debug -n 2 ./a":         "-no-prefix -log-level debug -n 2 -- ./a",
		"--oversubscribe -bind-to none ./a": "-no-prefix -bind none -n 1 -- ./a",
		"--bind-to core -n 2 ./a":           "-no-prefix -bind core -n 2 -- ./a",
		"-bind-to=core ./a : -n 2 ./b":      `-no-prefix -bind core -programs [{"procs":1,"command":["./a"]},{"procs":2,"command":["./b"]}]`,
		"-bind-to-core -n 2 ./a":            "-no-prefix -bind core -n 2 -- ./a",
		"-n 2 --progress 1ms ./a":           "-no-prefix -progress 1ms -n 2 -- ./a",
		"-metrics [::1]:1 --report r ./a":   "-no-prefix -metrics [::1]:1 -report r -n 1 -- ./a",
		"-trace-calls c-%r -n 2 ./a":        "-no-prefix -trace-calls c-%r -n 2 -- ./a",
		"-otlp http://c:1 --ports 1-9 ./a":  "-no-prefix -ports 1-9 -otlp http://c:1 -n 1 -- ./a",
		"-hostfile local -n 2 ./a":          "-no-prefix -n 2 -- ./a",
		"-host here:4,localhost -n 2 ./a":   "-no-prefix -n 2 -- ./a",
		"-H ::1 ./a":                        "-no-prefix -n 1 -- ./a",
		"-machinefile local ./a":            "-no-prefix -n 8 -- ./a",
		"-launcher fork -H here ./a":        "-no-prefix -n 1 -- ./a",

		"-hostfile remote ./a":      onSSH("here 1,node7 4") + "-n 5 -- ./a",
		"-f remote -n 3 ./a":        onSSH("here 1,node7 2") + "-n 3 -- ./a",
		"-f remote -n 11 ./a":       onSSH("here 3,node7 8") + "-n 11 -- ./a",
		"-f remote -n 1 ./a":        "-no-prefix -n 1 -- ./a",
		"-f remote -ppn 2 ./a":      onSSH("here 2,node7 2") + "-n 4 -- ./a",
		"-f remote -N 2 -n 3 ./a":   onSSH("here 2,node7 1") + "-n 3 -- ./a",
		"-host a,b:4 ./a":           onSSH("a 1,b 4") + "-n 5 -- ./a",
		"-host a:2,b,a -n 3 ./a":    onSSH("a 3") + "-n 3 -- ./a",
		"-launcher ssh -H here ./a": onSSH("here 1") + "-n 1 -- ./a",
		"-H a,b -n 2 ./a : -n 2 ./b": onSSH("a 2,b 2") +
			`-programs [{"procs":2,"command":["./a"]},{"procs":2,"command":["./b"]}]`,
		"-n 1 ./a : -H a,b ./b": onSSH("a 1,b 1") +
			`-programs [{"procs":1,"command":["./a"]},{"procs":1,"command":["./b"]}]`,
		"-n 1 -H a ./a : -H b:2,a ./b": onSSH("a 1,b 2,a 1") +
			`-programs [{"procs":1,"command":["./a"]},{"procs":3,"command":["./b"]}]`,
		"-x MISSING -genvall -n 2 ./a": "-no-prefix -n 2 -- ./a",

		"-n 2 -env A 1 ./a":         `-no-prefix -programs [{"procs":2,"command":["./a"],"env":{"A":"1"}}]`,
		"-x A=b=c ./a":              `-no-prefix -programs [{"procs":1,"command":["./a"],"env":{"A":"b=c"}}]`,
		"-x HOME ./a":               `-no-prefix -programs [{"procs":1,"command":["./a"],"env":{"HOME":"/h"}}]`,
		"-envlist HOME,EMPTY ./a":   `-no-prefix -programs [{"procs":1,"command":["./a"],"env":{"EMPTY":"","HOME":"/h"}}]`,
		"-wdir d ./a":               `-no-prefix -programs [{"procs":1,"command":["./a"],"dir":"d"}]`,
		"-outfile-pattern o.%r ./a": `-no-prefix -programs [{"procs":1,"command":["./a"],"out":"o.%r"}]`,
		"-n 1 ./a x : -n 2 ./b":     `-no-prefix -programs [{"procs":1,"command":["./a","x"]},{"procs":2,"command":["./b"]}]`,
		"-wd d ./a : -cwd e ./b":    `-no-prefix -programs [{"procs":1,"command":["./a"],"dir":"d"},{"procs":1,"command":["./b"],"dir":"e"}]`,
		"-env A 1 -genv A 2 ./a : ./b": `-no-prefix -programs [{"procs":1,"command":["./a"],"env":{"A":"1"}},` +
			`{"procs":1,"command":["./b"],"env":{"A":"2"}}]`,
		"-gwdir d ./a : -wdir e -genvlist HOME ./b": `-no-prefix -programs [{"procs":1,"command":["./a"],"env":{"HOME":"/h"},"dir":"d"},` +
			`{"procs":1,"command":["./b"],"env":{"HOME":"/h"},"dir":"e"}]`,
		"./a : -errfile e.%r ./b": `-no-prefix -programs [{"procs":1,"command":["./a"],"err":"e.%r"},{"procs":1,"command":["./b"],"err":"e.%r"}]`,
	} {
		run, err := Parse(args(line), fake)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		got, err := run.Args()
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", line, strings.Join(got, " "), err, want)
		}
	}
}

// onSSH begins the arguments for machines, written as name and procs with commas between.
func onSSH(hosts string) string {
	var list []string
	for h := range strings.SplitSeq(hosts, ",") {
		name, procs, _ := strings.Cut(h, " ")
		list = append(list, `{"name":"`+name+`","procs":`+procs+`}`)
	}
	return `-no-prefix -on {"engine":"ssh","hosts":[` + strings.Join(list, ",") + "]} "
}

// TestAllocation: a scheduler's job says where programs run, unless the command line does.
func TestAllocation(t *testing.T) {
	inJob := fake
	inJob.Allocation = func() (string, []engine.Machine, error) {
		return BySlurm, []engine.Machine{{Name: "n1", Address: "10.0.0.1", Tasks: 2}, {Name: "n2", Tasks: 2}}, nil
	}
	both := `-no-prefix -on {"engine":"slurm","hosts":[{"name":"n1","address":"10.0.0.1","procs":2},{"name":"n2","procs":%]} `
	for line, want := range map[string]string{
		"./a":                         strings.Replace(both, "%", "2}", 1) + "-n 4 -- ./a",
		"-n 3 ./a":                    strings.Replace(both, "%", "1}", 1) + "-n 3 -- ./a",
		"-launcher slurm -n 4 ./a":    strings.Replace(both, "%", "2}", 1) + "-n 4 -- ./a",
		"-launcher fork -n 3 ./a":     "-no-prefix -n 3 -- ./a",
		"-host n2 ./a":                `-no-prefix -on {"engine":"slurm","hosts":[{"name":"n2","procs":1}]} -n 1 -- ./a`,
		"-H 10.0.0.1:2 ./a":           `-no-prefix -on {"engine":"slurm","hosts":[{"name":"n1","address":"10.0.0.1","procs":2}]} -n 2 -- ./a`,
		"-launcher ssh -host x:2 ./a": onSSH("x 2") + "-n 2 -- ./a",
		"-launcher ssh ./a":           strings.Replace(strings.Replace(both, "slurm", "ssh", 1), "%", "2}", 1) + "-n 4 -- ./a",
	} {
		run, err := Parse(args(line), inJob)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got, err := run.Args(); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", line, strings.Join(got, " "), err, want)
		}
	}
	if _, err := Parse(args("-host n1,n3 ./a"), inJob); err == nil || !strings.Contains(err.Error(), "n3 is not one of the machines that the scheduler gave to this job: n[1-2]") {
		t.Error(err)
	}
	inJob.Allocation = func() (string, []engine.Machine, error) { return "", nil, errors.New("no scontrol") }
	if _, err := Parse(args("./a"), inJob); err == nil || !strings.Contains(err.Error(), "no scontrol; -launcher fork") {
		t.Error(err)
	}
}

// TestFaults wants each refusal to say what to do.
func TestFaults(t *testing.T) {
	for line, want := range map[string]string{
		"":                          "no program: write it",
		"-n 4":                      "no program: write it",
		"-n 4 ./a :":                "after the last colon",
		": ./a":                     "no program: write it",
		"-n x ./a":                  "write a number of procs",
		"-n 0 ./a":                  "write a number of procs",
		"-n":                        "it is written -n PROCS",
		"-env A":                    "it is written -env NAME VALUE",
		"-env=A ./a":                "it is written -env NAME VALUE",
		"-env A=B C ./a":            "cannot be the name of a variable",
		"-x =1 ./a":                 "cannot be the name of a variable",
		"-genvlist A,,B ./a":        "cannot be the name of a variable",
		"-hostfile wrong -n 2 ./a":  "wrong:2: node7: \"x\" is no number of procs: write one from 1 to",
		"-hostfile empty ./a":       "empty: it names no machine: write one in each line",
		"-hostfile nowhere ./a":     "-hostfile nowhere: file does not exist",
		"-host here,,b ./a":         "\"\" is no name of a machine",
		"-H a -f remote ./a":        "named twice",
		"-launcher fork -H a ./a":   "there are others in the list of hosts",
		"-launcher slurm ./a":       "not inside of a job",
		"-launcher rsh ./a":         "ssh, slurm, pbs or fork",
		"--mca btl tcp ./a":         "setting of Open MPI",
		"--bind-to socket ./a":      "core or none",
		"-outfile-pattern o.%h ./a": "%h means nothing here",
		"-outfile-pattern 50% ./a":  "% means nothing here",
		"-timeout 5 ./a":            "timeout SECONDS impiexec",
		"--hostfiel local ./a":      "is it -hostfile?",
		"-genvl A ./a":              "is it -genv?",
		"-frobnicate ./a":           "impiexec -help has all",
		"-envnone ./a":              "env -i",
	} {
		_, err := Parse(args(line), fake)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestParseAsks(t *testing.T) {
	for line, want := range map[string]func(*Run) bool{
		"--help":                func(r *Run) bool { return r.Help },
		"-n 4 -h --no-such":     func(r *Run) bool { return r.Help },
		"--version":             func(r *Run) bool { return r.Version },
		"-v -n 2 ./a":           func(r *Run) bool { return r.Verbose },
		"-x MISSING ./a":        func(r *Run) bool { return len(r.Notes) == 1 && strings.Contains(r.Notes[0], "MISSING") },
		"-n 2 ./a : -n 3 ./b":   func(r *Run) bool { return r.Programs[1].Procs == 3 },
		"-n 2 ./a --version -h": func(r *Run) bool { return !r.Help && !r.Version },
	} {
		run, err := Parse(args(line), fake)
		if err != nil || !want(run) {
			t.Errorf("%s: %+v, %v", line, run, err)
		}
	}
}

// TestHelpHasAllOptions wants each option that does something to be shown, and
// no name to stand for two.
func TestHelpHasAllOptions(t *testing.T) {
	text, seen := Help(), map[string]bool{}
	for _, o := range options {
		if o.help != "" && !strings.Contains(text, strings.Join(o.names, ", ")) {
			t.Errorf("help lacks %v", o.names)
		}
		for _, n := range o.names {
			if seen[n] {
				t.Errorf("%s is there twice", n)
			}
			seen[n] = true
		}
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	for host, want := range map[string]bool{"localhost": true, "127.0.0.9": true, "::1": true, "192.0.2.1": false, "node7.invalid": false} {
		if got := m.Local(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	if name, err := os.Hostname(); err != nil || !m.Local(name) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestUnderTool holds what the commands of procs become under a tool.
func TestUnderTool(t *testing.T) {
	m := fake
	m.Has = func(program string) bool { return program == Valgrind || program == GDB }
	m.Library = func(file string) (string, error) { return "/i'm/lib/" + file, nil }
	for line, want := range map[string]string{
		"-n 2 -valgrind ./a b":              `exec valgrind --suppressions='/i'\''m/lib/impi-valgrind.supp' --log-file=valgrind.%q{IMPI_SITE_PROC}.log "$@"`,
		"-gdb ./a b":                        `exec gdb -q -batch -x '/i'\''m/lib/impi-batch.gdb' --args "$@"`,
		"-n 9 -gdb -tool-ranks 4-5,0 ./a b": `case $IMPI_SITE_PROC in 0|4|5) exec gdb -q -batch -x '/i'\''m/lib/impi-batch.gdb' --args "$@";; esac; exec "$@"`,
	} {
		run, err := Parse(args(line), m)
		if err == nil {
			err = run.UnderTool(m)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		p := run.Programs[0]
		if got, want := p.Command, []string{"/bin/sh", "-c", want, "impiexec", "./a", "b"}; !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", line, got, want)
		}
		if !p.Slow || p.Env["GODEBUG"] != goSettings || p.plain() {
			t.Errorf("%s: %+v", line, p)
		}
	}
	m.Getenv = func(name string) (string, bool) { return "x=1", name == "GODEBUG" || name == "DISPLAY" }
	run, err := Parse(args("-gdb ./a : -env GODEBUG y=1 ./b"), m)
	if err == nil {
		err = run.UnderTool(m)
	}
	if err != nil || !strings.Contains(run.Programs[0].Command[2], "xterm") ||
		run.Programs[0].Env["GODEBUG"] != "x=1,"+goSettings || run.Programs[1].Env["GODEBUG"] != "y=1,"+goSettings {
		t.Errorf("%+v, %v", run, err)
	}
	m = fake
	m.Has = func(string) bool { return false }
	for line, want := range map[string]string{
		"-tool-ranks 1 -n 2 ./a":                 "write one of them as well",
		"-gdb -tool-ranks 2 -n 2 ./a":            "no rank 2 among 2 procs",
		"-valgrind -n 2 ./a":                     "apt-get install valgrind",
		"-gdb -tool-ranks 1,x -n 2 ./a":          "\"x\" is no rank",
		"-gdb -tool-ranks 5-3 -n 2 ./a":          "\"5-3\" is no rank",
		"-gdb -tool-ranks 0-9999999999 -n 2 ./a": "more than 4096 ranks",
		"-gdb -tool-ranks 0-99,9-9999 -n 2 ./a":  "more than 4096 ranks",
		"-valgrind -tool-ranks , -n 2 ./a":       "\"\" is no rank",
	} {
		run, err := Parse(args(line), m)
		if err == nil {
			err = run.UnderTool(m)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
