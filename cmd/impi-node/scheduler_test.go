package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/slurmtest"
)

// TestLaunchBySlurm: inside of an allocation the file has no hosts. The command moves to the first
// node from outside, and stays there in a batch job; scancel leaves nothing.
func TestLaunchBySlurm(t *testing.T) {
	c := slurmtest.Start(t, 2)
	dir, self, program := scriptOfNode(t)
	file := filepath.Join(dir, "job.hcl")
	text := fmt.Sprintf(`job { embedded_server {} }
site "alpha" {
  client = 0
  launch "slurm" { program = %q }
}
%s
program { command = [%q] }
`, program, patient, self)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	start := func(mode, name string, args ...string) *machineNode {
		n := &machineNode{cmd: exec.CommandContext(t.Context(), name, args...)}
		n.cmd.Env = append(append(os.Environ(), asProgram+"="+mode), c.Env()...)
		n.start(t, name)
		return n
	}
	left := func() string { // waits until no proc is left on the nodes
		return c.Run("srun", "--quiet", "-N2", "sh", "-c", `for p in $(grep -las `+asProgram+`= /proc/[0-9]*/environ | cut -d/ -f3); do tail --pid=$p -f /dev/null; done; grep -las `+asProgram+`= /proc/[0-9]*/environ; true`)
	}

	for name, command := range map[string][]string{
		"salloc": {"salloc", "--quiet", "-N2", "--ntasks-per-node=2"},
		"srun":   {"salloc", "--quiet", "-N2", "--ntasks-per-node=2", "srun", "-N1", "-n1", "-w", "n1", "--overlap", "env", "SLURM_TASKS_PER_NODE=2(x2)"},
	} {
		t.Run(name, func(t *testing.T) {
			n := start("meet", command[0], append(command[1:], program, "-config", file)...)
			if s := ends([]*machineNode{n}); s[0] != 0 {
				t.Errorf("status %d", s[0])
			}
			for rank := range 4 {
				if !strings.Contains(n.out.String(), fmt.Sprintf("[%d] met\n", rank)) {
					t.Errorf("there is nothing of rank %d:\n%s%s", rank, n.out, n.err)
				}
			}
			if left := left(); left != "" {
				t.Errorf("there is still %s", left)
			}
		})
	}

	t.Run("sbatch", func(t *testing.T) {
		script, out := filepath.Join(dir, "batch"), filepath.Join(dir, "batch.out")
		batch := func(mode string, more ...string) {
			text := fmt.Sprintf("#!/bin/sh\n%s=%s %s -config %s\necho status $?\n", asProgram, mode, program, file)
			if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			c.Run("sbatch", append(more, "--quiet", "-N2", "--ntasks-per-node=2", "-o", out, script)...)
		}
		batch("meet", "--wait")
		if b, err := os.ReadFile(out); err != nil || strings.Count(string(b), "] met\n") != 4 || !strings.HasSuffix(string(b), "status 0\n") {
			t.Errorf("the batch job has written %q: %v", b, err)
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
		batch("block", "--job-name=cancelled")
		reader := start("", "tail", "-n", "+1", "-F", out)
		for rank := range 4 {
			reader.awaits(t, reader.out, fmt.Sprintf("[%d] ready", rank))
		}
		_ = reader.cmd.Process.Kill()
		<-reader.over
		c.Run("scancel", "--name=cancelled")
		if left := left(); left != "" {
			t.Errorf("scancel has left %s", left)
		}
	})

	t.Run("auto", func(t *testing.T) { // hosts of the file, with the tasks that Slurm has given them
		auto := filepath.Join(dir, "auto.hcl")
		text := strings.Replace(text, "  launch", "  hosts  = \"127.0.0.[11-12]\"\n  procs  = \"auto\"\n  launch", 1)
		if err := os.WriteFile(auto, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		n := start("meet", "salloc", "--quiet", "-N2", "--ntasks-per-node=2", program, "-config", auto)
		if s := ends([]*machineNode{n}); s[0] != 0 || strings.Count(n.out.String(), "met\n") != 4 {
			t.Errorf("status %d:\n%s%s", s[0], n.out, n.err)
		}
	})

	t.Run("scancel", func(t *testing.T) {
		n := start("block", "salloc", "--quiet", "-N2", "--ntasks-per-node=2", "--job-name=blocked", program, "-config", file)
		for rank := range 4 {
			n.awaits(t, n.out, fmt.Sprintf("[%d] ready", rank))
		}
		c.Run("scancel", "--name=blocked")
		if s := ends([]*machineNode{n}); s[0] == 0 {
			t.Error("a cancelled job has status 0")
		}
		if left := left(); left != "" {
			t.Errorf("there is still %s", left)
		}
	})

	// Slurm ends a job whose node is set down, and says which it was. If it is told not to, we do.
	// Slurm's word to salloc and the signals to the job go different ways: where the job has ended
	// first, it may have lost n2, and salloc may say no more than that its allocation is gone.
	for name, down := range map[string]struct {
		option string
		says   []string
	}{
		"node down":               {"--quiet", []string{"Node failure on n2", "host n2 is lost", "has been revoked"}},
		"node down, the job kept": {"--no-kill", []string{"site alpha: host n2 is lost: "}},
	} {
		t.Run(name, func(t *testing.T) {
			n := start("block", "salloc", down.option, "-N2", "--ntasks-per-node=2", program, "-config", file)
			for rank := range 4 {
				n.awaits(t, n.out, fmt.Sprintf("[%d] ready", rank))
			}
			c.Run("scontrol", "update", "nodename=n2", "state=down", "reason=test")
			s := ends([]*machineNode{n})
			// It may have come back by itself.
			c.Run("sh", "-c", "until scontrol update nodename=n2 state=resume || scontrol show node n2 | grep -Eq 'State=(IDLE|MIXED|ALLOC)'; do sleep .1; done")
			if s[0] == 0 || !slices.ContainsFunc(down.says, func(words string) bool { return strings.Contains(n.err.String(), words) }) {
				t.Errorf("status %d, or it does not say %q: %s", s[0], down.says, n.err)
			}
			if left := left(); left != "" {
				t.Errorf("there is still %s", left)
			}
		})
	}

	t.Run("outside", func(t *testing.T) {
		n := start("meet", program, "-config", file)
		if s := ends([]*machineNode{n}); s[0] == 0 || !strings.Contains(n.err.String(), "Get one by salloc or sbatch") {
			t.Errorf("status %d: %s", s[0], n.err)
		}
	})
}

// TestSlurmNodeLostAndTheJobGoesOn: a job of srun's that may go on without machines does so when
// impi-node is killed on one, when Slurm takes one for lost but was told to keep the job, and when
// one is lost of which Slurm does not know.
func TestSlurmNodeLostAndTheJobGoesOn(t *testing.T) {
	c := slurmtest.Start(t, 3)
	dir, self, program := scriptOfNode(t)
	file := filepath.Join(dir, "job.hcl")
	text := fmt.Sprintf(`job {
  survive = true
  embedded_server {}
}
site "alpha" {
  client = 0
  launch "slurm" { program = %q }
}
%s
program { command = [%q] }
`, program, patient, self)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		strike func()
	}{
		{"impi-node killed", func() { killStarted(t, append(c.Env(), "SLURMD_NODENAME=n2")) }},
		{"node down", func() { c.Run("scontrol", "update", "nodename=n2", "state=down", "reason=test") }},
		{"machine lost", func() { c.Lose("n2") }},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := &machineNode{cmd: exec.CommandContext(t.Context(), "salloc", "--quiet", "--no-kill", "-N3", "--ntasks-per-node=2", program, "-config", file)}
			n.cmd.Env = append(append(os.Environ(), asProgram+"=loses machine 2-3"), c.Env()...)
			n.start(t, x.name)
			for rank := range 6 {
				n.awaits(t, n.out, fmt.Sprintf("[%d] ready", rank))
			}
			x.strike()
			s := ends([]*machineNode{n})[0]
			if s != ending.StatusRemote || strings.Count(n.out.String(), "went on") != 4 || !strings.Contains(n.err.String(), "; the job went on without it") {
				t.Errorf("status %d", s)
			}
			if x.name == "node down" { // it may have come back by itself
				c.Run("sh", "-c", "until scontrol update nodename=n2 state=resume || scontrol show node n2 | grep -Eq 'State=(IDLE|MIXED|ALLOC)'; do sleep .1; done")
			}
		})
	}
}

// killStarted kills the impi-node that was started for a host and has some variables.
func killStarted(t *testing.T, environ []string) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, _ := os.ReadFile(name)
		vars, _ := os.ReadFile(filepath.Dir(name) + "/environ")
		has := strings.Split(string(vars), "\x00")
		if !strings.HasSuffix(string(line), "\x00"+hostVerb+"\x00") || slices.ContainsFunc(environ, func(v string) bool { return !slices.Contains(has, v) }) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return
	}
	t.Fatalf("there is no impi-node with %q", environ)
}
