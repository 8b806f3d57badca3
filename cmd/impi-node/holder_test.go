package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/loopback"
)

// TestPortsOfTheRunningJob: while the job of a file runs, that its ports are taken is a warning
// that names its node, for validate and doctor, which goes on. If somebody else has a port, it is a
// fault.
func TestPortsOfTheRunningJob(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var taken [2]net.Listener
	var ports []any
	for i := range taken {
		// Connections of others come from ports that the system chooses at 127.0.0.1, and would take
		// one that is free for a moment.
		if taken[i], err = net.Listen("tcp", loopback.Unused(t)); err != nil {
			t.Fatal(err)
		}
		ports = append(ports, taken[i].Addr().(*net.TCPAddr).Port)
	}
	text := strings.ReplaceAll(fmt.Sprintf("job {\n  embedded_server { listen = \"ADDRESS:%d\" }\n  auth \"none\" {}\n}\n"+
		"site \"alpha\" {\n  client = 0\n  host {\n    address = \"ADDRESS\"\n    procs = 2\n    port = %d\n  }\n}\n", ports...), "ADDRESS", loopback.Address().String())
	path := file(t, text+fmt.Sprintf("program { command = [%q] }\n", self))
	for _, name := range []string{"validate", "doctor"} {
		status, out, errs := impiNode(t, "", name, path)
		if text := out + errs; status != statusUsage || strings.Count(text, fmt.Sprintf("address already in use by process %d (", os.Getpid())) != 2 {
			t.Errorf("%s, with ports of others: status %d\n%s", name, status, text)
		}
	}
	for _, l := range taken {
		l.Close()
	}
	r := startJob(t, 2, "-config", path)
	if elsewhere := os.Getenv("XDG_RUNTIME_DIR"); elsewhere == r.base {
		t.Fatal("the job's run directory is where the commands look, too")
	}
	const want = "for now: node " // once: a single site has no channels, so that nobody listens at its host's port
	for _, name := range []string{"validate", "doctor"} {
		status, out, errs := impiNode(t, "", name, path)
		text := out + errs
		if (name == "validate" && status != statusOK) || strings.Count(text, want) != 1 || strings.Contains(text, "already in use") || !strings.Contains(text, "of job job, which runs, listens there") {
			t.Errorf("%s, while the job runs: status %d\n%s", name, status, text)
		}
		if name == "doctor" && (status == statusUsage || !strings.Contains(text, "other hosts")) {
			t.Errorf("status %d: doctor does not go on:\n%s", status, text)
		}
	}
}

// TestPortOfAnotherJob: a job that has a port is named, also where a launcher has it for its nodes.
func TestPortOfAnotherJob(t *testing.T) {
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(twoSites, "embedded_server {}", fmt.Sprintf("embedded_server { listen = %q }", at), 1)
	path, other := file(t, text), filepath.Join(t.TempDir(), "other.hcl")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(other, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := startJob(t, 2, "-config", path)
	launcher := fmt.Sprintf("already in use by process %d, the launcher of job job", r.cmd.Process.Pid)
	if status, out, errs := impiNode(t, "", "validate", other); status != statusUsage || !strings.Contains(out+errs, launcher) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := impiNode(t, "", "validate", path); status != statusOK || !strings.Contains(out+errs, "of job job, which runs, listens there") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// TestStatusOfAStoppedNode: what is known from before is told of a node that does not answer: its
// procs with their process IDs, and its job's server.
func TestStatusOfAStoppedNode(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-n", "2", "--", self}, {"-config", file(t, twoSites)}} {
		r := startJob(t, 2, args...)
		_, job := r.report(t)
		site := job.Sites[0]
		if err := syscall.Kill(site.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		_, out, errs := impiNode(t, "", "status", "-run-dir", r.base)
		_ = syscall.Kill(site.PID, syscall.SIGCONT)
		for _, p := range site.Ranks {
			if want := fmt.Sprintf("rank %d  127.0.0.%d  pid %d  ", p.Rank, site.Client+len(job.Sites), p.PID); !strings.Contains(out, want) {
				t.Errorf("nothing says %q", want)
			}
		}
		if !strings.Contains(out, "whether "+site.Name+" is connected is not known, as its node does not answer") || !strings.Contains(out, "\n  server 127.0.0.1:") || t.Failed() {
			t.Errorf("%s%s", out, errs)
		}
		_, out, _ = impiNode(t, "", "status", "-pid", strconv.Itoa(site.Ranks[0].PID), "-run-dir", r.base)
		if !strings.Contains(out, site.Name+" is connected") {
			t.Errorf("it goes on:\n%s", out)
		}
	}
}

// TestWatchedEnd: status -watch says how a job has ended, and its exit status is another one after
// a failure.
func TestWatchedEnd(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := startJob(t, 2, "-n", "2", self)
	_, j := r.report(t)
	watch := &machineNode{dir: r.base}
	watch.cmd, _, _ = command(t, "", "status", "-watch", "-every", "100ms", "-run-dir", r.base)
	watch.start(t, "watch")
	watch.awaits(t, watch.out, "rank 1")
	if err := syscall.Kill(j.Sites[0].Ranks[1].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-watch.over
	out := watch.out.String()
	if s := watch.cmd.ProcessState.ExitCode(); s != 4 || !strings.Contains(out, "has failed: ") || !strings.Contains(out, "SIGKILL") || !strings.HasSuffix(out, "no job any more\n") || strings.Contains(out, "deadlock") {
		t.Errorf("status %d:\n%s", s, out)
	}
}
