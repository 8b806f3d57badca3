package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaultParts(t *testing.T) {
	prog := Program{Command: []string{"testdata/bin/prog", "-x"}}
	elsewhere := Program{Command: []string{"bin/prog"}, Dir: "testdata", Env: map[string]string{"A": "1"}, OutFile: "out.%r"}
	job, err := DefaultParts([]Part{{Procs: 2, Program: prog}, {Procs: 3, Program: elsewhere}}, two[1:2])
	if err != nil {
		t.Fatal(err)
	}
	s := job.Sites[0]
	if s.Procs() != 5 || len(s.Parts) != 2 || s.Transports[0].Name != "tcp" {
		t.Errorf("%+v", s)
	}
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for proc, part := range []int{0, 0, 1, 1, 1} {
		p, n := s.ProgramOf(proc)
		if n != part || p.Path != filepath.Join(dir, "bin/prog") || !p.PrefixOutput {
			t.Errorf("proc %d: part %d, %+v", proc, n, p)
		}
	}
	if p, _ := s.ProgramOf(4); p.Dir != dir || p.Env["A"] != "1" || p.OutFile != "out.%r" || p.Command[0] != "bin/prog" {
		t.Errorf("%+v", p)
	}
	if p, part := (Site{Program: prog}).ProgramOf(7); part != 0 || p.Command[1] != "-x" {
		t.Errorf("a site without parts: part %d, %+v", part, p)
	}
}

func TestDefaultPartsFaults(t *testing.T) {
	prog := Program{Command: []string{"testdata/bin/prog"}}
	for want, parts := range map[string][]Part{
		"no program":             nil,
		"0 procs":                {{Program: prog}},
		"program 2 of 2: -1":     {{Procs: 1, Program: prog}, {Procs: -1, Program: prog}},
		`no folder`:              {{Procs: 1, Program: Program{Command: prog.Command, Dir: "nowhere"}}},
		`no program "./missing"`: {{Procs: 1, Program: prog}, {Procs: 1, Program: Program{Command: []string{"./missing"}}}},
	} {
		if _, err := DefaultParts(parts, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestName: a job without a file is called after what it runs.
func TestName(t *testing.T) {
	for want, commands := range map[string][][]string{
		"ring":         {{"/opt/bin/ring", "-n", "4"}},
		"train.py":     {{"python3.12", "-u", "src/train.py", "-x"}},
		"python3":      {{"/usr/bin/python3"}},
		"ocean+ice":    {{"./ocean"}, {"./ice"}, {"bin/ocean", "2"}},
		"a+b+c+more":   {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}},
		"bash-builtin": {{"./bash-builtin", "x"}},
		"heat":         {{"bash", "jobs/heat.sh", "4"}, {"sh", "-c", "exec ./bin/heat 3 >out.txt"}, {"/bin/bash", "-lc", "cd /tmp && OMP_NUM_THREADS=2 ./heat"}},
		"slow":         {{"bash", "-o", "pipefail", "-e", "slow.sh"}, {"dash", "-c", "if true; then sleep 1; fi; python3 slow"}, {"sh", "-c", "for i in 1 2; do ./slow $i; done"}, {"sh", "-c", "sh slow.sh | tee log"}},
		"sh":           {{"sh", "-c", "$PROG 3"}, {"sh"}, {"sh", "-c", ""}, {"sh", "-c", "\"$1\"", "x"}},
		"python":       {{"python", "-c", "import mpi, sys"}},
	} {
		job := Default(len(commands), commands[0], nil)
		if len(commands) > 1 {
			for _, c := range commands {
				job.Sites[0].Parts = append(job.Sites[0].Parts, Part{Procs: 1, Program: Program{Command: c}})
			}
		}
		if got := job.Name(); got != want {
			t.Errorf("%q is called %q, want %q", commands, got, want)
		}
	}
	if got := (&Job{File: "jobs/heat2d.hcl", Sites: []Site{{Program: Program{Command: []string{"ring"}}}}}).Name(); got != "heat2d" {
		t.Error(got)
	}
	if got := (&Job{}).Name(); got != "job" {
		t.Error(got)
	}
}
