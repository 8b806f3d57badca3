package mpiexec

import (
	"errors"
	"os"
	"strings"
	"testing"
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
		"-hostfile local -n 2 ./a":          "-no-prefix -n 2 -- ./a",
		"-host here:4,localhost -n 2 ./a":   "-no-prefix -n 2 -- ./a",
		"-H ::1 -machinefile local ./a":     "-no-prefix -n 1 -- ./a",
		"-x MISSING -genvall -n 2 ./a":      "-no-prefix -n 2 -- ./a",

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

// TestFaults wants each refusal to say what to do.
func TestFaults(t *testing.T) {
	for line, want := range map[string]string{
		"":                          "no program is given",
		"-n 4":                      "no program is given",
		"-n 4 ./a :":                "behind the last colon",
		": ./a":                     "no program is given",
		"-n x ./a":                  "a number of procs is needed",
		"-n 0 ./a":                  "a number of procs is needed",
		"-n":                        "it is written -n PROCS",
		"-env A":                    "it is written -env NAME VALUE",
		"-env=A ./a":                "it is written -env NAME VALUE",
		"-env A=B C ./a":            "cannot be the name of a variable",
		"-x =1 ./a":                 "cannot be the name of a variable",
		"-genvlist A,,B ./a":        "cannot be the name of a variable",
		"-hostfile remote -n 2 ./a": "line 3: node7 is not this machine",
		"-hostfile nowhere ./a":     "-hostfile nowhere: file does not exist",
		"-host here,node7 ./a":      "node7 is not this machine",
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
