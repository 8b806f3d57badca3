package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// where is what a proc prints when it is to say where it runs.
func where() string {
	at := os.Getenv("SLURMD_NODENAME")
	if ssh := strings.Fields(os.Getenv("SSH_CONNECTION")); len(ssh) == 4 {
		at = ssh[2] // the sshd's address
	}
	line, _ := io.ReadAll(os.Stdin)
	return fmt.Sprintf("%d of %d on %s read %q", mpi.World().Rank(), mpi.World().Size(), at, line)
}

// placed are the lines of procs that run on some machines, in the order of their ranks. read is
// what rank 0 reads.
func placed(read string, machines ...string) (lines []string) {
	for i, m := range machines {
		lines = append(lines, fmt.Sprintf("%d of %d on %s read %q", i, len(machines), m, read))
		read = ""
	}
	return lines
}

// open is a folder that all users can read, with impiexec, impi-node and the test's program.
func open(t *testing.T) (dir string) {
	t.Helper()
	skips.Short(t)
	dir, err := os.MkdirTemp("", "impiexec")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user runs what is there
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "../impi-node", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/prog", string(b), 0o755)
	return dir
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestUnderSlurm: in an allocation nodes and procs are those of Slurm, unless the command line says
// which of them. The command gets to the first of its nodes by itself.
func TestUnderSlurm(t *testing.T) {
	dir := open(t)
	c := slurmtest.Start(t, 3)
	impiexec := []string{dir + "/impiexec"}
	program := []string{dir + "/prog", "where"}
	for name, run := range map[string]struct {
		options string
		want    []string
	}{
		"tasks": {"", []string{"n1", "n1", "n2", "n2", "n3", "n3"}},
		"n":     {"-n 3", []string{"n1", "n1", "n2"}},
		"more":  {"-n 8", []string{"n1", "n1", "n1", "n1", "n2", "n2", "n3", "n3"}},
		"ppn":   {"-ppn 1", []string{"n1", "n2", "n3"}},
		"hosts": {"-host n3:2,n1", []string{"n3", "n3", "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := slices.Concat([]string{"--quiet", "-N3", "--ntasks-per-node=2"}, impiexec, strings.Fields(run.options), program)
			cmd := exec.CommandContext(t.Context(), "salloc", args...)
			cmd.Env = append(append(os.Environ(), asProgram+"=1"), c.Env()...)
			cmd.Stdin = strings.NewReader("a line")
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, errs.String())
			}
			wants(t, string(out), placed("a line", run.want...)...)
		})
	}
	t.Run("sbatch", func(t *testing.T) {
		file := t.TempDir() + "/out"
		write(t, dir+"/script", fmt.Sprintf("#!/bin/sh\n%s=1 %s/impiexec %s\n", asProgram, dir, strings.Join(program, " ")), 0o755)
		c.Run("sbatch", "--quiet", "--wait", "-N2", "--ntasks-per-node=2", "-o", file, dir+"/script")
		out, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wants(t, string(out), placed("", "n1", "n1", "n2", "n2")...)
	})
	t.Run("elsewhere", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), "salloc", "--quiet", "-N1", "-w", "n1", dir+"/impiexec", "-host", "n2", dir+"/prog")
		cmd.Env = append(os.Environ(), c.Env()...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "n2 is not one of the machines that the scheduler gave to this job: n1") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestByHostFile: procs are started by ssh on the machines of a list, by a user that is not root.
func TestByHostFile(t *testing.T) {
	dir := open(t)
	hosts := sshtest.Start(t, 3)
	key, err := os.ReadFile(filepath.Dir(hosts.Config) + "/user")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/key", string(key), 0o600)
	if err := os.Chown(dir+"/key", sshtest.UID, sshtest.UID); err != nil {
		t.Fatal(err)
	}
	ssh := skips.ProgramOf(t, "ssh", "openssh-client")
	write(t, dir+"/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s -i %s/key \"$@\"\n", ssh, hosts.Config, dir), 0o755)
	write(t, dir+"/nodes", "# ours\n127.0.0.21 slots=2\n127.0.0.22:2 # as MPICH has it\n127.0.0.23 slots=1 max_slots=4\n", 0o644)
	write(t, dir+"/wrong", "127.0.0.21\n127.0.0.22 slots=many\n", 0o644)
	run := func(args string) (out, errs string, status int) {
		cmd := exec.CommandContext(t.Context(), ssh, "-F", hosts.Config, "s1",
			fmt.Sprintf("cd %s && PATH=%[1]s:$PATH %s=1 exec impiexec %s", dir, asProgram, args))
		cmd.Stdin = strings.NewReader("a line")
		var e strings.Builder
		cmd.Stderr = &e
		b, _ := cmd.Output()
		return string(b), e.String(), cmd.ProcessState.ExitCode()
	}
	const one, two, three = "127.0.0.21", "127.0.0.22", "127.0.0.23"
	for args, want := range map[string][]string{
		"-launcher ssh -hostfile nodes prog where":                                    {one, one, two, two, three},
		"-launcher ssh -f nodes -n 7 ./prog where":                                    {one, one, one, one, two, two, three},
		"-launcher ssh -npernode 1 -f nodes ./prog where":                             {one, two, three},
		"-launcher ssh -host " + one + "," + two + ":2 ./prog where":                  {one, two, two},
		"-launcher ssh -n 1 -f nodes ./prog where : -n 2 -H " + three + " prog where": {one, three, three},
	} {
		out, errs, status := run(args)
		if status != 0 {
			t.Errorf("%s: status %d\n%s%s", args, status, out, errs)
			continue
		}
		wants(t, out, placed("a line", want...)...)
	}
	for args, want := range map[string]string{
		"-f wrong prog": `wrong:2: 127.0.0.22: "many" is no number of procs: write one from 1 to`,
		"-launcher ssh -f nodes -wdir /nowhere prog": "there is no folder",
		"-launcher ssh -f nodes none":                `no program "none" is in PATH`,
		"-H 127.0.0.21,192.0.2.1 prog":               "the other machines cannot reach 127.0.0.21",
		"-H 192.0.2.1 prog":                          "the first machine of the list, 192.0.2.1, is not this one",
	} {
		if _, errs, status := run(args); status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s, want %s", args, status, errs, want)
		}
	}
	if out, errs, status := run("-launcher ssh -f nodes -n 5 ./prog fail"); status != 5 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// TestByHostFileOnMachines: the machines have nothing in common but their network and their files.
func TestByHostFileOnMachines(t *testing.T) {
	dir := open(t)
	machines := netns.New(t, 3)
	config := sshtest.StartOn(t, machines)
	write(t, dir+"/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", skips.ProgramOf(t, "ssh", "openssh-client"), config), 0o755)
	write(t, dir+"/pbs", "10.77.0.1\n10.77.0.1\n10.77.0.2\n10.77.0.3\n", 0o644)
	for name, run := range map[string]struct{ env, hosts, on string }{
		"list": {"A=", "10.77.0.1,10.77.0.2:2,root@10.77.0.3", "10.77.0.1 10.77.0.2 10.77.0.2 10.77.0.3"},
		"PBS":  {"PBS_NODEFILE=" + dir + "/pbs", "", "10.77.0.1 10.77.0.1 10.77.0.2 10.77.0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{dir + "/prog", "where"}
			if run.hosts != "" {
				args = append([]string{"-host", run.hosts}, args...)
			}
			cmd := machines[0].Command(t.Context(), dir+"/impiexec", args...)
			cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "SSH_CONNECTION=0 0 10.77.0.1 0", run.env)
			cmd.Stdin = strings.NewReader("a line")
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, errs.String())
			}
			wants(t, string(out), placed("a line", strings.Fields(run.on)...)...)
		})
	}
	run := func(args ...string) (string, error) {
		cmd := machines[0].Command(t.Context(), dir+"/impiexec", args...)
		cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("no program of MPI", func(t *testing.T) {
		out, err := run("-host", "10.77.0.1,10.77.0.2:2,10.77.0.3", "echo", "hello")
		if err != nil || strings.Count(out, "hello\n") != 4 {
			t.Errorf("%v\n%s", err, out)
		}
		out, err = run("-host", "10.77.0.1", "-n", "1", dir+"/prog", "where", ":", "-host", "10.77.0.2", "-n", "2", "true")
		if err == nil || !strings.Contains(out, "the procs of 10.77.0.2 exited with status 0 before they called MPI Init") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
