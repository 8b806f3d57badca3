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

// lookThere is what is said to be done about a lost machine. Of a site whose connection ends, the
// server says no more than that and its address.
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

// TestHeadLost: a machine with the head of a site that crashes or is cut off ends the job, with the
// job's server on it or without. All others say which it was, and nothing is left of them.
func TestHeadLost(t *testing.T) {
	t.Parallel()
	for name, how := range losses {
		for head, what := range map[int]string{0: "server", 3: "no server"} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
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

// buildServer makes an impi-server.
func buildServer(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "impi-server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "../impi-server").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// startServer runs an impi-server for the two sites of machineJob on a machine.
func startServer(t *testing.T, program string, m *netns.Machine, file string) *machineNode {
	t.Helper()
	server := &machineNode{cmd: m.Command(t.Context(), program, "-clients", "2", "-host", m.Address, "-port", "7800", "-timeout", "10m", "-auth", "key", "-key-file", filepath.Join(filepath.Dir(file), "job.key"))}
	server.cmd.Env = os.Environ()
	server.start(t, "the server")
	server.awaits(t, server.err, "waiting for clients")
	return server
}

// serverJob is machineJob with an impi-server on a machine of its own, the last one, that runs.
func serverJob(t *testing.T) (file string, machines []*netns.Machine, server *machineNode) {
	t.Helper()
	machines = netns.New(t, 7)
	file = machineJobAt(t, `server = "10.77.0.7:7800"`, "")
	return file, machines, startServer(t, buildServer(t), machines[6], file)
}

// runServerJob starts a job of serverJob, and waits until its procs run.
func runServerJob(t *testing.T) (machines []*netns.Machine, nodes []*machineNode) {
	t.Helper()
	file, machines, _ := serverJob(t)
	return machines, startBlock(t, file, machines[:6])
}

// startBlock starts procs of machineJob that wait for SIGUSR1, until all run.
func startBlock(t *testing.T, file string, machines []*netns.Machine) (nodes []*machineNode) {
	t.Helper()
	return startReady(t, file, "block", machines)
}

// startReady is startBlock with another program that waits for SIGUSR1.
func startReady(t *testing.T, file, mode string, machines []*netns.Machine) (nodes []*machineNode) {
	t.Helper()
	nodes = startOn(t, file, mode, machines)
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	return nodes
}

// endBlock ends the procs of startBlock, and wants all nodes to end well.
func endBlock(t *testing.T, machines []*netns.Machine, nodes []*machineNode) {
	t.Helper()
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
}

// awaitGoesOn waits until both heads have said that the server is lost.
func awaitGoesOn(t *testing.T, nodes []*machineNode) {
	t.Helper()
	for _, head := range []int{0, 3} {
		nodes[head].awaits(t, nodes[head].err, "the job's server is lost, and the job goes on without it")
		nodes[head].awaits(t, nodes[head].err, "10.77.0.7:7800")
	}
}

// TestServerLost: a job that runs goes on when a machine with an impi-server crashes or is cut off,
// and ends in order, or names the machine that is lost later. If the server is lost when one site
// has joined, all nodes of that site say where it was, and nothing is left of them.
func TestServerLost(t *testing.T) {
	t.Parallel()
	for name, how := range losses {
		t.Run(name+" in the job", func(t *testing.T) {
			t.Parallel()
			machines, nodes := runServerJob(t)
			how(machines[6])
			awaitGoesOn(t, nodes)
			endBlock(t, machines, nodes)
			machines[6].Crash()
		})
		t.Run(name+" before a head", func(t *testing.T) {
			t.Parallel()
			machines, nodes := runServerJob(t)
			machines[6].Crash()
			awaitGoesOn(t, nodes)
			how(machines[3])
			wantLoss(t, machines, nodes, machines[3])
		})
		t.Run(name+" in the start", func(t *testing.T) {
			t.Parallel()
			file, machines, server := serverJob(t)
			nodes := startOn(t, file, "block", machines[:3])
			server.awaits(t, server.err, "client joined: client=0")
			how(machines[6])
			wantLoss(t, machines, nodes, machines[6])
		})
	}
}

// TestServerKilledAndBack: a job goes on when impi-server is killed, and when another one comes up
// at the address, which has nothing to do with the job. impi-node status says at each host what has
// become of it.
func TestServerKilledAndBack(t *testing.T) {
	program := buildServer(t)
	for name, more := range map[string]string{"not resumed": "", "resumed": `route "*" { resume = true }`} {
		t.Run(name, func(t *testing.T) {
			machines := netns.New(t, 7)
			file := machineJobAt(t, `server = "10.77.0.7:7800"`, more)
			server := startServer(t, program, machines[6], file)
			nodes := startBlock(t, file, machines[:6])
			says := func(i int, site, want string) {
				t.Helper()
				status, out, errs := nodes[i].command(t, machines[i], "status")
				if status != 0 || !strings.Contains(out, "server 10.77.0.7:7800: ") || !strings.Contains(out, site+" "+want) {
					t.Errorf("status at machine %d: %d\n%s%s", i, status, out, errs)
				}
			}
			says(1, "alpha", "is connected")
			if err := server.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-server.over
			again := startServer(t, program, machines[6], file)
			awaitGoesOn(t, nodes)
			says(1, "alpha", "has lost it since ")
			says(3, "beta", "has lost it since ")
			endBlock(t, machines[:6], nodes)
			select {
			case <-again.over:
				t.Error("the server that came back has ended")
			default:
			}
			if log := again.err.String(); strings.Contains(log, "client joined") {
				t.Errorf("a site of the job has joined another one:\n%s", log)
			}
		})
	}
}

// TestFirstServerDown: of a list of servers the first one is on a machine that is not there, or
// nobody listens at its port. Procs of all hosts publish names at the other one, and find them.
func TestFirstServerDown(t *testing.T) {
	program := buildServer(t)
	for name, first := range map[string]string{"no machine": "10.77.0.99:7800", "no server": "10.77.0.7:7801"} {
		t.Run(name, func(t *testing.T) {
			machines := netns.New(t, 7)
			file := machineJobAt(t, fmt.Sprintf("servers = [%q, \"10.77.0.7:7800\"]", first), "")
			server := startServer(t, program, machines[6], file)
			nodes := startReady(t, file, "by name, and block", machines[:6])
			if status, out, errs := nodes[0].command(t, machines[0], "status"); status != 0 || !strings.Contains(out, "server 10.77.0.7:7800 (not needed: "+first+"): alpha is connected") {
				t.Errorf("status: %d\n%s%s", status, out, errs)
			}
			endBlock(t, machines[:6], nodes)
			if s := ends([]*machineNode{server})[0]; s != 0 {
				t.Errorf("the server: status %d", s)
			}
		})
	}
}

// TestLauncherWithServerLost: a launcher with the job's server takes its sites with it, and a site
// on another machine ends and says on which machine it has lost them.
func TestLauncherWithServerLost(t *testing.T) {
	machines := netns.New(t, 2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf(`job {
  embedded_server { listen = "10.77.0.1:7800" }
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  hosts  = "10.77.0.1"
  procs  = 1
}
site "beta" {
  client = 1
  hosts  = "10.77.0.1"
  procs  = 1
}
site "gamma" {
  client = 2
  hosts  = "10.77.0.2"
  procs  = 1
}
%sprogram { command = [%q] }
`, patient, self)
	file := filepath.Join(dir, "job.hcl")
	for name, b := range map[string]string{file: text, filepath.Join(dir, "job.key"): "4242\n"} {
		if err := os.WriteFile(name, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodes := startOn(t, file, "block", machines)
	nodes[0].awaitsTimes(t, nodes[0].out, "ready", 2)
	nodes[1].awaits(t, nodes[1].out, "ready")
	if status, out, errs := nodes[1].command(t, machines[1], "status"); status != 0 || !strings.Contains(out, "server 10.77.0.1:7800, in a node or launcher of the job: ") || !strings.Contains(out, "gamma is connected") {
		t.Errorf("status: %d\n%s%s", status, out, errs)
	}
	if err := nodes[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if s := ends(nodes)[1]; s == 0 {
		t.Error("the other site ended well")
	}
	wantLine(t, "the other site", nodes[1].err.String(), "impi-node: site ", "10.77.0.1") // the server, or a site: whichever it misses first
	for _, m := range machines {
		awaitEmpty(t, m)
	}
}
