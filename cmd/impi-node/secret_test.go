package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// secrets finds the key of a test's job, if that is known, and what looks like the secret that a
// head draws for the nodes that it starts, also as JSON has bytes. Names of sockets look like it,
// but for what they begin with.
func secrets(text, key string) (found []string) {
	text = regexp.MustCompile(`impi-[A-Z2-7]{26}`).ReplaceAllString(text, "")
	if key != "" && strings.Contains(text, key) {
		found = append(found, key)
	}
	drawn := regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	found = append(found, drawn.FindAllString(text, -1)...)
	for _, word := range regexp.MustCompile(`[A-Za-z0-9+/]{35}=`).FindAllString(text, -1) {
		if b, err := base64.StdEncoding.DecodeString(word); err == nil && drawn.Match(b) {
			found = append(found, word)
		}
	}
	return found
}

// TestSecretsAreNotShown: what hosts prove to each other is in no command line, environment or log,
// on the machine of the head or on one whose node was started from there.
func TestSecretsAreNotShown(t *testing.T) {
	const key = "31415926535897932"
	if got := secrets("A="+key+" ABCDEFGHIJKLMNOPQRSTUVWXYZ "+base64.StdEncoding.EncodeToString([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ")), key); len(got) != 3 {
		t.Fatalf("%q is found, of three", got)
	}
	machines := machinesApart(t, 2)
	config := sshtest.StartOn(t, machines)
	machines[0].Put("/tmp/job.key", []byte(key+"\n"), 0o600)
	machines[0].Put("/tmp/job.hcl", fmt.Appendf(nil, `job {
  embedded_server {}
  auth "key" { file = "job.key" }
}
%s%s
log { level = "trace" }
program { command = [%q] }
`, siteBySSH(config), patient, programApart), 0o600)
	n := startApart(t, machines[0], "block", "-config", "/tmp/job.hcl")
	for rank := range 4 {
		n.awaits(t, n.out, fmt.Sprintf("[%d] ready", rank))
	}
	for _, m := range machines {
		wantUnseen(t, pidsOn(m), key)
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	ends([]*machineNode{n})
	if log := n.err.String(); !strings.Contains(log, "[DEBUG]") || len(secrets(log, key)) > 0 {
		t.Errorf("%q is in the log, or nothing is", secrets(log, key))
	}
	awaitEmpty(t, machines[1])
}

// wantUnseen wants no secret in the command line or the environment of any of some processes.
func wantUnseen(t *testing.T, pids []string, key string) {
	t.Helper()
	seen := 0
	for _, pid := range pids {
		for _, file := range []string{"cmdline", "environ"} {
			b, _ := os.ReadFile("/proc/" + pid + "/" + file) // it may have ended
			seen += len(b)
			if found := secrets(string(b), key); len(found) > 0 {
				t.Errorf("%s of process %s has %q", file, pid, found)
			}
		}
	}
	if seen == 0 {
		t.Error("nothing runs")
	}
}

// startManaged starts a command of a process manager whose program is managedProgram, and returns
// when all ranks have come so far that all that is secret has been passed on.
func startManaged(t *testing.T, cmd *exec.Cmd, ranks int, env ...string) *machineNode {
	t.Helper()
	cmd.Env = asManaged(t, append(env, managedEnd+"=none:hang", "IMPI_LOG_LEVEL=trace")...)
	n := &machineNode{cmd: cmd}
	n.start(t, cmd.Path)
	for rank := range ranks {
		n.awaits(t, n.out, fmt.Sprintf("rank %d of %d,", rank, ranks))
	}
	return n
}

// endManaged ends it, and wants none of its secrets in what anybody has printed.
func (n *machineNode) endManaged(t *testing.T, more string) {
	t.Helper()
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	ends([]*machineNode{n})
	log := n.out.String() + n.err.String()
	if found := secrets(log+more, ""); !strings.Contains(log, "[DEBUG]") || len(found) > 0 {
		t.Errorf("%q is in the log, or nothing is", found)
	}
}

// TestSecretsUnderHydra is TestSecretsAreNotShown for a world of mpiexec.hydra, whose nodes draw
// the secret and pass it on by PMI.
func TestSecretsUnderHydra(t *testing.T) {
	path := skips.ProgramOf(t, "mpiexec.hydra", "mpich")
	machines := netns.New(t, 2)
	config := sshtest.StartOn(t, machines)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := machines[0].Command(t.Context(), path, "-localhost", "10.77.0.1", "-hosts", "10.77.0.1,10.77.0.2", "-n", "4", "-ppn", "2", self)
	n := startManaged(t, cmd, 4, "HYDRA_LAUNCHER_EXTRA_ARGS=-F "+config)
	for _, m := range machines {
		wantUnseen(t, pidsOn(m), "")
	}
	n.endManaged(t, "")
	for _, m := range machines {
		awaitEmpty(t, m)
	}
}

// TestSecretsUnderSrun is the same for srun --mpi=pmi2, on two nodes of a real Slurm, with its
// daemons.
func TestSecretsUnderSrun(t *testing.T) {
	c := slurmtest.Start(t, 2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const mark = "IMPI_TEST_SECRETS_OF"
	for _, version := range []string{"1", "2"} {
		t.Run("PMI-"+version, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "srun", "--quiet", "--mpi=pmi2", "-N2", "-n4", self)
			own := fmt.Sprintf("%s=%d-%s", mark, os.Getpid(), version)
			n := startManaged(t, cmd, 4, append(c.Env(), "IMPI_PMI="+version, own)...)
			pids, procs := withNamespace(t, own)
			if procs < 4+2 { // with the nodes
				t.Errorf("%d processes of the job", procs)
			}
			wantUnseen(t, pids, "")
			n.endManaged(t, c.Log())
		})
	}
}

// TestSecretsInLogsUnderPMI knows the secret, as it is the process manager, and so the key that the
// job has from it.
func TestSecretsInLogsUnderPMI(t *testing.T) {
	m := &manager{t: t, size: 4, mapping: "(vector,(0,2,2))"}
	log, statuses := m.run("IMPI_LOG_LEVEL=trace")
	var head bootstrap.NodeAddress
	if err := json.Unmarshal([]byte(m.values["impi-node-0"]), &head); err != nil || head.Secret == "" {
		t.Fatalf("%v: there is no secret in %q, statuses %v", err, m.values, statuses)
	}
	key := managedKey(head.Secret)
	for _, secret := range []string{head.Secret, fmt.Sprint(key), fmt.Sprintf("%x", key)} {
		if strings.Contains(log, secret) || !strings.Contains(log, "[DEBUG]") {
			t.Errorf("%s is in the log, or nothing is:\n%s", secret, log)
		}
	}
}

// withNamespace are the processes that have a variable in their environment, of which there are
// some, and all others of their namespaces of processes, but those of this test's.
func withNamespace(t *testing.T, variable string) (pids []string, some int) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	ours, _ := os.Readlink("/proc/self/ns/pid")
	all, wanted := map[string][]string{}, map[string]bool{}
	for _, p := range processes {
		space, _ := os.Readlink(p + "/ns/pid") // it may have ended
		all[space] = append(all[space], filepath.Base(p))
		env, _ := os.ReadFile(p + "/environ")
		if !slices.Contains(strings.Split(string(env), "\x00"), variable) {
			continue
		}
		some++
		if wanted[space] = true; space == ours { // such as srun
			pids = append(pids, filepath.Base(p))
		}
	}
	for space := range wanted {
		if space != ours {
			pids = append(pids, all[space]...)
		}
	}
	return pids, some
}

// pidsOn are the processes of a machine.
func pidsOn(m *netns.Machine) []string {
	out, _ := exec.Command("ip", "netns", "pids", m.Name).Output()
	return strings.Fields(string(out))
}
