package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
)

// TestMpirun has Open MPI's mpirun start a world on this machine.
func TestMpirun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words, env := pmixtest.Mpirun(t)
	mpirun := func(t *testing.T, more string, args ...string) (out string, status int) {
		t.Helper()
		for range 10 {
			cmd := exec.CommandContext(t.Context(), words[0], append(words[1:len(words):len(words)], args...)...)
			cmd.Env = asManaged(t, append(env, more)...)
			out, stuck, err := pmixtest.Output(cmd)
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			skipWithoutCgo(t, out)
			if !stuck {
				return out, cmd.ProcessState.ExitCode()
			}
			t.Logf("mpirun has not noticed that its processes ended: started again, after\n%s", out)
		}
		t.Fatal("mpirun is stuck each time")
		return "", 0
	}
	// Mpirun may end a job before it has read what its processes wrote last, so that it is asked
	// again.
	wantFailure := func(t *testing.T, says, more string, args ...string) {
		t.Helper()
		var out string
		var status int
		for range 5 {
			if out, status = mpirun(t, more, args...); status == 0 || strings.Contains(out, says) {
				break
			}
		}
		if status == 0 || !strings.Contains(out, says) {
			t.Errorf("status %d, want %q\n%s", status, says, out)
		}
	}
	for name, how := range map[string]string{"by itself": "IMPI_PMI=", "as wanted": "IMPI_PMI=x"} {
		t.Run(name, func(t *testing.T) {
			out, status := mpirun(t, how, "-n", "4", self)
			wantRanks(t, out, 4, noProgram)
			if status != 0 {
				t.Errorf("status %d\n%s", status, out)
			}
		})
	}
	t.Run("two programs", func(t *testing.T) {
		out, status := mpirun(t, "", "-n", "2", self, ":", "-n", "1", self)
		wantRanks(t, out, 3, func(rank int) int { return rank / 2 })
		if status != 0 {
			t.Errorf("status %d\n%s", status, out)
		}
	})
	t.Run("spawn", func(t *testing.T) {
		out, status := mpirun(t, managedEnd+"=0:spawn", "-n", "1", self)
		if status != 0 || !strings.Contains(out, "child 0 of 2\n") || !strings.Contains(out, "child 1 of 2\n") {
			t.Errorf("status %d\n%s", status, out)
		}
	})
	t.Run("PMI", func(t *testing.T) {
		wantFailure(t, "neither PMI_FD nor PMI_PORT and PMI_ID are in the environment", "IMPI_PMI=1", "-n", "2", self)
	})
	t.Run("no node", func(t *testing.T) {
		wantFailure(t, "IMPI_NODE=/nowhere: stat", "IMPI_NODE=/nowhere", "-n", "3", self)
	})
	t.Run("abort", func(t *testing.T) {
		out, status := mpirun(t, managedEnd+"=1:abort", "-n", "3", self)
		if status != 7 || !strings.Contains(out, "rank 1 on site local called MPI Abort with code 7: as the test wants") {
			t.Errorf("status %d\n%s", status, out)
		}
	})
	for _, rank := range []string{"0", "1"} {
		t.Run("goes on without "+rank, func(t *testing.T) {
			out, _ := mpirun(t, managedEnd+"="+rank+":lost", "-x", bootstrap.SurviveVariable+"=1", "--enable-recovery", "-n", "3", self)
			if strings.Count(out, "went on\n") != 2 || !strings.Contains(out, "impi-node: rank "+rank+" on site local ended without MPI Finalize; the job went on without it\n") {
				t.Errorf("%s", out)
			}
		})
	}
	for _, how := range []string{"kill", "exit"} {
		t.Run(how, func(t *testing.T) {
			if out, status := mpirun(t, managedEnd+"=1:"+how, "-n", "3", self); status == 0 {
				t.Errorf("status 0\n%s", out)
			}
		})
	}
}

// TestMpirunBySSH has Open MPI's mpirun start a world on three machines that share no files.
func TestMpirunBySSH(t *testing.T) {
	machines := machinesApart(t, 3)
	config := sshtest.StartOn(t, machines)
	words, env := pmixtest.MpirunBySSH(t, config)
	run := func(t *testing.T, end string, more ...string) (out string, status int) {
		t.Helper()
		args := append(words[1:len(words):len(words)], "-host", "10.77.0.1:2,10.77.0.2:2,10.77.0.3:2")
		for _, v := range []string{asNode + "=1", asProgram + "=managed", "IMPI_NODE=" + programApart, managedEnd + "=" + end} {
			args = append(args, "-x", v)
		}
		cmd := machines[0].Command(t.Context(), words[0], append(append(args, more...), programApart)...)
		cmd.Env = append(os.Environ(), env...)
		b, _ := cmd.CombinedOutput()
		skipWithoutCgo(t, string(b))
		for _, m := range machines {
			awaitEmpty(t, m)
		}
		return string(b), cmd.ProcessState.ExitCode()
	}
	testStarted(t, run, []string{"-n", "6", "--map-by", "slot"}, []string{"-n", "6", "--map-by", "node"})
}
