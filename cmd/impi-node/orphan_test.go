package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/cmdline/terminal"
	"github.com/openimpi/impi/internal/launch/launchtest"
)

// Kinds of the processes of a job, by a variable of their environment.
const (
	aPlugin = "IMPI_TRANSPORT_PLUGIN="
	aProc   = "IMPI_CONTROL_FD="
	aNode   = asNode + "="
)

// marked lists the processes whose environment has a variable, all plugins of a job
// among them, as they get TMPDIR of their node. kind chooses one kind of them.
func marked(mark, kind string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(text, []byte(mark)) {
			continue
		}
		switch found := bytes.Contains(text, []byte(kind)); {
		case !found, kind == aNode && (bytes.Contains(text, []byte(aPlugin)) || bytes.Contains(text, []byte(aProc))):
		default:
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// strikeAll sends a signal to processes.
func strikeAll(t *testing.T, pids []int, sig syscall.Signal) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("there is no such process")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// noneIsLeft waits for the end of every process of a job.
func noneIsLeft(t *testing.T, mark string) {
	t.Helper()
	const patience = 5 * time.Minute
	for _, pid := range marked(mark, "") {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
			if n == 0 && err == nil {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Errorf("process %d is left: %q", pid, line)
			}
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		unix.Close(fd)
	}
}

// However a running job ends, nothing of it is left, and above all no plugin.
func TestNoPluginOutlivesItsNode(t *testing.T) {
	self := func(r *running) []int { return []int{r.cmd.Process.Pid} }
	for name, end := range map[string]func(t *testing.T, r *running, mark string){
		"normal":            func(t *testing.T, _ *running, mark string) { strikeAll(t, marked(mark, aProc), syscall.SIGUSR1) },
		"operator":          func(t *testing.T, r *running, _ string) { strikeAll(t, self(r), syscall.SIGTERM) },
		"interrupt":         func(t *testing.T, r *running, _ string) { strikeAll(t, self(r), syscall.SIGINT) },
		"terminal is gone":  nil, // see below
		"proc is killed":    func(t *testing.T, _ *running, mark string) { strikeAll(t, marked(mark, aProc)[:1], syscall.SIGKILL) },
		"a node is killed":  func(t *testing.T, r *running, mark string) { strikeAll(t, nodesOnly(r, mark)[:1], syscall.SIGKILL) },
		"nodes are killed":  func(t *testing.T, r *running, mark string) { strikeAll(t, nodesOnly(r, mark), syscall.SIGKILL) },
		"all are killed":    func(t *testing.T, _ *running, mark string) { strikeAll(t, marked(mark, aNode), syscall.SIGKILL) },
		"nodes panic":       func(t *testing.T, r *running, mark string) { strikeAll(t, nodesOnly(r, mark), syscall.SIGABRT) },
		"killed and reload": reloadAndKill,
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			mark := "TMPDIR=" + temp + "\x00"
			var hangUp func()
			r := startProgramAs(t, func(cmd *exec.Cmd) { hangUp = terminal.Attach(t, cmd) }, launchtest.ShortDir(t), "exchange", 2, "-config", file(t, twoSites))
			if end == nil {
				end = func(*testing.T, *running, string) { hangUp() }
			}
			if n := len(marked(mark, aPlugin)); n != 2*started {
				t.Fatalf("%d plugins run, not %d: the test would prove nothing", n, 2*started)
			}
			end(t, r, mark)
			_ = r.cmd.Wait() // in whatever way
			noneIsLeft(t, mark)
		})
	}
}

// nodesOnly are the nodes without their launcher.
func nodesOnly(r *running, mark string) (pids []int) {
	for _, pid := range marked(mark, aNode) {
		if pid != r.cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reloadAndKill kills the nodes after they have started plugins anew.
func reloadAndKill(t *testing.T, r *running, mark string) {
	if status, out, errs := impiNode(t, "", "plugins", "reload", "-run-dir", r.base, "tcp"); status != statusOK {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	if n := len(marked(mark, aPlugin)); n != 2*started {
		t.Errorf("after a reload %d plugins run, not %d", n, 2*started)
	}
	strikeAll(t, nodesOnly(r, mark), syscall.SIGKILL)
}

// A job that does not start leaves no plugin either.
func TestNoPluginOutlivesAFailedStart(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "impi-transport-bad")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\necho the licence has expired >&2\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	slow := filepath.Join(dir, "impi-transport-slow") // says nothing and does not listen
	if err := os.WriteFile(slow, []byte("#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1000; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ change, want string }{
		"a plugin does not start": {"transport \"bad\" { plugin = \"" + bad + "\" }\nroute \"*\" { prefer = [\"tcp\", \"bad\"] }\n", "licence has expired"},
		"a plugin says nothing":   {"transport \"slow\" { plugin = \"" + slow + "\" }\nroute \"*\" { prefer = [\"tcp\", \"slow\"] }\nlimits { start = \"20s\" }\n", "no handshake within"},
		"a pin that cannot be":    {"route \"*\" {\n prefer = [\"tcp\"]\n data_plane = [\"peer-shm\"]\n}\n", "pins data_plane"},
		"settings":                {"transport \"tcp\" {\n config { ports = \"none\" }\n}\n", "ports"},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			status, _, errs := impiNode(t, "hello", "-config", file(t, twoSites+c.change))
			if status == 0 || !strings.Contains(errs, c.want) {
				t.Errorf("status %d, no %q in\n%s", status, c.want, errs)
			}
			noneIsLeft(t, "TMPDIR="+temp+"\x00")
		})
	}
}
