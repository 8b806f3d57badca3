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

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
)

// sshJob writes a job of one site on some machines, two procs on each, whose head starts the nodes
// of the others by ssh. launch has more attributes of that block.
func sshJob(t *testing.T, count int, hosts, launch string) (file string, machines []*netns.Machine) {
	t.Helper()
	machines = netns.New(t, count)
	config := sshtest.StartOn(t, machines)
	dir, self, program := scriptOfNode(t)
	if launch == "" {
		launch = fmt.Sprintf("program = %q", program)
	}
	file = filepath.Join(dir, "job.hcl")
	text := fmt.Sprintf(`job { embedded_server {} }
site "alpha" {
  client = 0
  hosts  = %q
  procs  = 2
  launch "ssh" {
    options = ["-F", %q, "-o", "ConnectTimeout=100"]
    %s
  }
}
%s
program { command = [%q] }
`, hosts, config, launch, patient, self)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, machines
}

// scriptOfNode makes a program that is impi-node, in a folder.
func scriptOfNode(t *testing.T) (dir, self, program string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	program = filepath.Join(dir, "impi-node")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+asNode+"=1 exec "+self+` "$@"`+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, self, program
}

// leftOn returns the processes on a machine, but for its sshd.
func leftOn(t *testing.T, m *netns.Machine) (left []int) {
	t.Helper()
	out, _ := exec.Command("ip", "netns", "pids", m.Name).Output()
	for _, text := range strings.Fields(string(out)) {
		b, _ := os.ReadFile("/proc/" + text + "/cmdline")
		if pid, err := strconv.Atoi(text); err == nil && len(b) > 0 && !strings.Contains(string(b), "sshd") {
			left = append(left, pid)
		}
	}
	return left
}

// awaitEmpty waits until nothing but sshd is left on a machine.
func awaitEmpty(t *testing.T, m *netns.Machine) {
	t.Helper()
	for left := leftOn(t, m); len(left) > 0; left = leftOn(t, m) {
		fd, err := unix.PidfdOpen(left[0], 0)
		if err != nil {
			continue // it has gone meanwhile
		}
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

// TestLaunchBySSH: one command at the head runs the job on three machines; the key, the job file
// and the environment get to the others without being copied, and not by any command line.
func TestLaunchBySSH(t *testing.T) {
	file, machines := sshJob(t, 3, "10.77.0.[1-3]", "")
	nodes := startOn(t, file, "meet", machines[:1])
	if s := ends(nodes); s[0] != 0 {
		t.Errorf("status %d", s[0])
	}
	for rank := range 6 {
		if !strings.Contains(nodes[0].out.String(), fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("there is nothing of rank %d", rank)
		}
	}
	for _, m := range machines[1:] {
		awaitEmpty(t, m)
	}
}

// TestLaunchByPBS: hosts and procs are those of the file that PBS names, and reached by ssh.
func TestLaunchByPBS(t *testing.T) {
	file, machines := sshJob(t, 2, "10.77.0.[1-2]", "")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`launch "ssh"`, `launch "pbs"`, `hosts  = "10.77.0.[1-2]"`, "", "procs  = 2", "").Replace(string(b))
	nodes := filepath.Join(filepath.Dir(file), "nodes")
	for name, text := range map[string]string{file: text, nodes: "10.77.0.1\n10.77.0.2\n10.77.0.2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PBS_NODEFILE", nodes)
	head := startOn(t, file, "meet", machines[:1])
	if s := ends(head); s[0] != 0 || strings.Count(head[0].out.String(), "met\n") != 3 {
		t.Errorf("status %d, %q; want three procs", s[0], head[0].out)
	}
}

// TestLaunchBySSHFails: what ssh, a shell or impi-node says there is in the message.
func TestLaunchBySSHFails(t *testing.T) {
	for name, c := range map[string]struct{ hosts, launch, says string }{
		"program": {"10.77.0.[1-2]", `program = "/nowhere/impi-node"`, "10.77.0.2: there is no program /nowhere/impi-node"},
		"host":    {"10.77.0.[1-3]", "", "10.77.0.3: "},
		"other":   {"10.77.0.[1-2]", `program = "/bin/false"`, "host 10.77.0.2 is lost: its impi-node has ended with status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := sshJob(t, 2, c.hosts, c.launch)
			nodes := startOn(t, file, "meet", machines[:1])
			if s := ends(nodes); s[0] == 0 || !strings.Contains(nodes[0].err.String(), c.says) {
				t.Errorf("status %d, and it does not say %q", s[0], c.says)
			}
		})
	}
}

// TestLauncherBySSHKilled: when the head is killed, or ended, nothing stays on the other machines.
func TestLauncherBySSHKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			file, machines := sshJob(t, 2, "10.77.0.[1-2]", "")
			nodes := startOn(t, file, "block", machines[:1])
			for rank := range 4 {
				nodes[0].awaits(t, nodes[0].out, fmt.Sprintf("[%d] ready", rank))
			}
			if len(leftOn(t, machines[1])) == 0 {
				t.Error("nothing runs on the other machine")
			}
			_ = nodes[0].cmd.Process.Signal(sig) // ip netns exec is impi-node itself
			ends(nodes)
			awaitEmpty(t, machines[1])
		})
	}
}

// TestHostThatDoesNotReachItsHead: a host that an engine has started knows that its head listens.
// It gives up, and the head ends with both addresses, long before the limit of the start.
func TestHostThatDoesNotReachItsHead(t *testing.T) {
	file, machines := sshJob(t, 3, "10.77.0.[1-3]", "")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte("  procs  = 2\n"), []byte("  procs  = 2\n  head   = \"10.77.0.1:7802\"\n"), 1)
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := machines[2].Command(t.Context(), "ip", "rule", "add", "to", "10.77.0.1", "ipproto", "tcp", "dport", "7802", "prohibit").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	nodes := startOn(t, file, "meet", machines[:1])
	s := ends(nodes)
	log := nodes[0].err.String()
	for _, want := range []string{"host 10.77.0.1 at 10.77.0.1:", " was not reached from 10.77.0.3: ", `write head = "ADDRESS:PORT"`} {
		if s[0] == 0 || !strings.Contains(log, want) {
			t.Errorf("status %d, and the head does not say %q:\n%s", s[0], want, log)
		}
	}
	if strings.Contains(log, "passed") {
		t.Errorf("the head has waited for the limit of the start:\n%s", log)
	}
}
