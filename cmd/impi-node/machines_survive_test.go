package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
)

// losesMachine has the procs that are left after the loss of others shrink the world and add up in
// it.
func losesMachine(ranks string) {
	w := mpi.World()
	var first, last int
	if _, err := fmt.Sscanf(ranks, "%d-%d", &first, &last); err != nil {
		panic(err)
	}
	if err := mpi.Barrier(w); err != nil {
		panic(err)
	}
	isLost := first <= w.Rank() && w.Rank() <= last
	if !isLost {
		if err := mpi.Send(w, []int64{1}, first, 1); err != nil { // it is out of the barrier
			panic(err)
		}
	}
	os.Stdout.WriteString("ready\n")
	for isLost { // mpiexec.hydra signals a loss by SIGUSR1
		hang()
	}
	if _, err := mpi.Recv(w, make([]int64, 1), first, 0); !errors.Is(err, mpi.ErrProcFailed) {
		panic(fmt.Sprint("not the loss of a proc: ", err))
	}
	left, err := w.Shrink()
	if err != nil {
		panic(err)
	}
	sum := make([]int64, 1)
	if err := mpi.Allreduce(left, []int64{1}, sum, mpi.Sum); err != nil || int(sum[0]) != w.Size()-(last-first+1) {
		panic(fmt.Sprint(sum, err))
	}
	os.Stdout.WriteString("went on\n")
}

// machineLoss is the loss of one of six machines, of which each site has three with two procs each.
type machineLoss struct {
	machine int
	ranks   string
	gone    []int // machines that are lost with it
	left    int   // procs
}

var machineLosses = map[string]machineLoss{
	"a host": {1, "2-3", []int{1}, 10}, "the head with the server": {0, "0-5", []int{0, 1, 2}, 6}, "a head": {3, "6-11", []int{3, 4, 5}, 6},
}

// surviveHere is what the file of a job says that goes on without machines, and limits for it.
const (
	surviveHere  = "survive = true\n  embedded_server { listen = \"10.77.0.1:7800\" }"
	surviveLimit = "limits {\n  start   = \"5m\"\n  silence = \"6s\"\n}"
)

// strike has a machine be lost when all procs are ready, and wants those that are left to go on,
// and no process to stay on any machine. nodes are those that the test has started, by their
// machines.
func (c machineLoss) strike(t *testing.T, machines []*netns.Machine, nodes map[int]*machineNode, how func(*netns.Machine)) {
	t.Helper()
	for rank := range 12 {
		head := nodes[rank/6*3]
		head.awaits(t, head.out, fmt.Sprintf("[%d] ready", rank))
	}
	how(machines[c.machine])
	gone := make(map[int]bool)
	for _, i := range c.gone {
		gone[i] = true
	}
	went := 0
	for i, m := range machines {
		if i == c.machine {
			continue
		}
		if n := nodes[i]; n != nil {
			s := ends([]*machineNode{n})[0]
			went += strings.Count(n.out.String(), "went on")
			said := n.err.String()
			if gone[i] && s == 0 || !gone[i] && s != ending.StatusRemote {
				t.Errorf("machine %d: status %d", i, s)
			}
			if head := i%3 == 0; head && !gone[i] && (!strings.Contains(said, "; the job went on without ") || !strings.Contains(said, machines[c.machine].Address)) {
				t.Errorf("machine %d says %s", i, said)
			}
		}
		awaitEmpty(t, m)
	}
	if went != c.left {
		t.Errorf("%d procs have gone on, want %d", went, c.left)
	}
	machines[c.machine].Crash()
}

// TestMachineLostAndTheJobGoesOn: of two sites of three machines one machine crashes or is cut off.
// The others go on without its procs, also those of its site, unless it was that site's head: then
// the whole site is lost.
func TestMachineLostAndTheJobGoesOn(t *testing.T) {
	for name, how := range losses {
		for what, c := range machineLosses {
			t.Run(name+" of "+what, func(t *testing.T) {
				machines := netns.New(t, 6)
				file := machineJobAt(t, surviveHere, surviveLimit)
				nodes := make(map[int]*machineNode)
				for i, n := range startOn(t, file, "loses machine "+c.ranks, machines) {
					nodes[i] = n
				}
				c.strike(t, machines, nodes, how)
			})
		}
	}
}

// TestMachineOfSSHLostAndTheJobGoesOn: so it is if the heads start the nodes of the others by ssh.
// With a machine that crashes the one is lost whose node it has started, whose sshd does not notice
// if it is only cut off.
func TestMachineOfSSHLostAndTheJobGoesOn(t *testing.T) {
	starters := map[string]machineLoss{"crash": {1, "2-5", []int{1, 2}, 8}, "cable": machineLosses["a host"]}
	for name, how := range losses {
		for what, c := range machineLosses {
			t.Run(name+" of "+what, func(t *testing.T) { c.strikeSSH(t, "", how) })
		}
		t.Run(name+" of a host that has started another one", func(t *testing.T) { starters[name].strikeSSH(t, "fanout = 1", how) })
	}
}

// strikeSSH is strike for a job whose heads start the nodes of the others by ssh. launch has more
// attributes of that block.
func (c machineLoss) strikeSSH(t *testing.T, launch string, how func(*netns.Machine)) {
	t.Helper()
	machines := netns.New(t, 6)
	config := sshtest.StartOn(t, machines)
	file := machineJobAt(t, surviveHere, surviveLimit)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, _, program := scriptOfNode(t)
	block := fmt.Sprintf("  procs  = 2\n  launch \"ssh\" {\n    options = [\"-F\", %q, \"-o\", \"ConnectTimeout=100\"]\n    program = %q\n    %s\n  }\n", config, program, launch)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), "  procs  = 2\n", block)), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := make(map[int]*machineNode)
	for _, head := range []int{3, 0} {
		nodes[head] = startNode(t, machines[head], "loses machine "+c.ranks, "", "-config", file)
	}
	c.strike(t, machines, nodes, how)
}
