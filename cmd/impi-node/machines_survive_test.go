package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/netns"
)

// losesMachine has the procs that are left after the loss of others shrink the world and add up in it.
func losesMachine(ranks string) {
	w := mpi.World()
	var first, last int
	if _, err := fmt.Sscanf(ranks, "%d-%d", &first, &last); err != nil {
		panic(err)
	}
	if err := mpi.Barrier(w); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("ready\n")
	if first <= w.Rank() && w.Rank() <= last {
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

// TestMachineLostAndTheJobGoesOn: of two sites of three machines one machine crashes or is cut off. The others go
// on without its procs, also those of its site, unless it was that site's head: then the whole site is lost.
func TestMachineLostAndTheJobGoesOn(t *testing.T) {
	for name, how := range losses {
		for what, c := range map[string]struct {
			machine int
			ranks   string
			gone    []int // machines
			left    int   // procs
		}{
			"a host": {1, "2-3", []int{1}, 10}, "the head with the server": {0, "0-5", []int{0, 1, 2}, 6}, "a head": {3, "6-11", []int{3, 4, 5}, 6},
		} {
			t.Run(name+" of "+what, func(t *testing.T) {
				machines := netns.New(t, 6)
				file := machineJobAt(t, "survive = true\n  embedded_server { listen = \"10.77.0.1:7800\" }", "limits {\n  start   = \"5m\"\n  silence = \"6s\"\n}")
				nodes := startOn(t, file, "loses machine "+c.ranks, machines)
				for rank := range 12 {
					nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
				}
				how(machines[c.machine])
				gone := make(map[int]bool)
				for _, i := range c.gone {
					gone[i] = true
				}
				went := 0
				for i, n := range nodes {
					if i == c.machine {
						continue
					}
					s := ends([]*machineNode{n})[0]
					went += strings.Count(n.out.String(), "went on")
					said := n.err.String()
					if gone[i] && s == 0 || !gone[i] && s != ending.StatusRemote {
						t.Errorf("machine %d: status %d", i, s)
					}
					if head := i%3 == 0; head && !gone[i] && (!strings.Contains(said, "; the job went on without ") || !strings.Contains(said, machines[c.machine].Address)) {
						t.Errorf("machine %d says %s", i, said)
					}
					awaitEmpty(t, machines[i])
				}
				if went != c.left {
					t.Errorf("%d procs have gone on, want %d", went, c.left)
				}
				machines[c.machine].Crash()
			})
		}
	}
}
