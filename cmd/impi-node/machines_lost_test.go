package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/netns"
)

// losses are the ways in which a machine is lost.
var losses = map[string]func(m *netns.Machine){"crash": (*netns.Machine).Crash, "cable": (*netns.Machine).Cut}

// lookThere is what is said to be done about a lost machine. Of a site whose connection ends, the server says no
// more than that and its address.
var lookThere = regexp.MustCompile("killed, the machine was restarted or its network is down|its machine or the network between is down|at 10.77.0.4:[0-9]+: connection was lost before FINI")

// wantLoss waits for the nodes, and wants each but the lost one to end with a
// line that names the lost machine and what to do, and to leave nothing behind.
func wantLoss(t *testing.T, machines []*netns.Machine, nodes []*machineNode, lost *netns.Machine) {
	t.Helper()
	for i, n := range nodes {
		if machines[i] == lost {
			continue
		}
		s := ends([]*machineNode{n})[0]
		if s == 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
		lines := strings.Split(n.err.String(), "\n")
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, lost.Address) && lookThere.MatchString(line) }) {
			t.Errorf("machine %d does not name %s and say what to do", i, lost.Address)
		}
		awaitEmpty(t, machines[i])
		left, err := filepath.Glob(n.dir + "/*/*") // of the run directories
		left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == "lock" })
		if err != nil || len(left) > 0 {
			t.Errorf("machine %d has left %q, %v", i, left, err)
		}
	}
	lost.Crash()
}

// TestHeadLost: a machine with the head of a site that crashes or is cut off ends the job, with the job's
// server on it or without. All others say which it was, and nothing is left of them.
func TestHeadLost(t *testing.T) {
	for name, how := range losses {
		for head, what := range map[int]string{0: "server", 3: "no server"} {
			t.Run(name+" "+what, func(t *testing.T) {
				file, machines := machineJob(t, "")
				nodes := startOn(t, file, "block", machines)
				for rank := range 12 {
					nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
				}
				how(machines[head])
				wantLoss(t, machines, nodes, machines[head])
			})
		}
	}
}

// serverJob is machineJob with an impi-server on a machine of its own, the last one, that runs.
func serverJob(t *testing.T) (file string, machines []*netns.Machine, server *machineNode) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "impi-server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "../impi-server").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	machines = netns.New(t, 7)
	file = machineJobAt(t, `server = "10.77.0.7:7800"`, "")
	server = &machineNode{cmd: machines[6].Command(t.Context(), program, "-clients", "2", "-host", "10.77.0.7", "-port", "7800", "-timeout", "10m", "-auth", "key", "-key-file", filepath.Join(filepath.Dir(file), "job.key"))}
	server.cmd.Env = os.Environ()
	server.start(t, "the server")
	server.awaits(t, server.err, "waiting for clients")
	return file, machines, server
}

// runServerJob starts a job of serverJob, and waits until its procs run.
func runServerJob(t *testing.T) (machines []*netns.Machine, nodes []*machineNode) {
	t.Helper()
	file, machines, _ := serverJob(t)
	nodes = startOn(t, file, "block", machines[:6])
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	return machines, nodes
}

// awaitGoesOn waits until both heads have said that the server is lost.
func awaitGoesOn(t *testing.T, nodes []*machineNode) {
	t.Helper()
	for _, head := range []int{0, 3} {
		nodes[head].awaits(t, nodes[head].err, "the job's server is lost, and the job goes on without it")
		nodes[head].awaits(t, nodes[head].err, "10.77.0.7:7800")
	}
}

// TestServerLost: a job that runs goes on when a machine with an impi-server crashes or is cut off, and
// ends in order, or names the machine that is lost later. If the server is lost when one site has
// joined, all nodes of that site say where it was, and nothing is left of them.
func TestServerLost(t *testing.T) {
	for name, how := range losses {
		t.Run(name+" in the job", func(t *testing.T) {
			machines, nodes := runServerJob(t)
			how(machines[6])
			awaitGoesOn(t, nodes)
			for _, head := range []int{0, 3} { // which passes it on to the procs of its site
				if err := nodes[head].cmd.Process.Signal(syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
			}
			for i, s := range ends(nodes) {
				if s != 0 {
					t.Errorf("machine %d: status %d", i, s)
				}
				awaitEmpty(t, machines[i])
			}
			machines[6].Crash()
		})
		t.Run(name+" before a head", func(t *testing.T) {
			machines, nodes := runServerJob(t)
			machines[6].Crash()
			awaitGoesOn(t, nodes)
			how(machines[3])
			wantLoss(t, machines, nodes, machines[3])
		})
		t.Run(name+" in the start", func(t *testing.T) {
			file, machines, server := serverJob(t)
			nodes := startOn(t, file, "block", machines[:3])
			server.awaits(t, server.err, "client joined: client=0")
			how(machines[6])
			wantLoss(t, machines, nodes, machines[6])
		})
	}
}
