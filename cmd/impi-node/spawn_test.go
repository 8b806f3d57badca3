package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/mpi"
)

// family is a program whose procs spawn two more at each site, unless they have
// parents. All stay connected.
func family() error {
	if mpi.Parent() != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var commands []mpi.Command
	for _, site := range []string{"alpha", "beta"} {
		info := mpi.NewInfo()
		if err := info.Set("host", site); err != nil {
			return err
		}
		commands = append(commands, mpi.Command{Path: self, Procs: 2, Info: info})
	}
	children, _, err := mpi.World().SpawnMultiple(commands, 0)
	if err == nil && children.Size() != 2 {
		err = errors.New("the parents are not two")
	}
	return err
}

// However a job that has spawned ends, nothing of it is left: no proc and no plugin,
// at either site.
func TestNothingSpawnedOutlivesItsNode(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, r *running, mark string){
		"operator":         func(t *testing.T, r *running, _ string) { strikeAll(t, []int{r.cmd.Process.Pid}, syscall.SIGTERM) },
		"launcher killed":  func(t *testing.T, r *running, _ string) { strikeAll(t, []int{r.cmd.Process.Pid}, syscall.SIGKILL) },
		"proc is killed":   func(t *testing.T, _ *running, mark string) { strikeAll(t, marked(mark, aProc)[:1], syscall.SIGKILL) },
		"a node is killed": func(t *testing.T, r *running, mark string) { strikeAll(t, nodesOnly(r, mark)[:1], syscall.SIGKILL) },
		"the other node":   func(t *testing.T, r *running, mark string) { strikeAll(t, nodesOnly(r, mark)[1:], syscall.SIGKILL) },
		"all are killed":   func(t *testing.T, _ *running, mark string) { strikeAll(t, marked(mark, aNode), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			mark := "TMPDIR=" + temp + "\x00"
			r := startProgram(t, "family", 6, "-config", file(t, twoSites+"spawn { allow = [\"PROGRAM\"] }\n"))
			if n := len(marked(mark, aProc)); n != 6 {
				t.Fatalf("%d procs run, not 6: the test would prove nothing", n)
			}
			if n := len(marked(mark, aPlugin)); n != 2*started {
				t.Errorf("%d plugins run: spawned worlds have those of their sites", n)
			}
			end(t, r, mark)
			_ = r.cmd.Wait() // in whatever way
			noneIsLeft(t, mark)
		})
	}
}

// TestLinksOfSpawned has impi-node links show a spawned world as a job of its own.
func TestLinksOfSpawned(t *testing.T) {
	r := startProgram(t, "family", 6, "-config", file(t, twoSites+"spawn { allow = [\"PROGRAM\"] }\n"))
	status, out, errs := r.links(t)
	if status != statusOK || !strings.Contains(out, "job/alpha.spawn1") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}
