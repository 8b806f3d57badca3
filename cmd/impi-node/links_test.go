package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/links"
)

// exchange sends a message to everybody else and receives theirs.
func exchange() error {
	w := mpi.World()
	var requests []mpi.Request
	for to := range w.Size() {
		if to == w.Rank() {
			continue
		}
		r, err := mpi.Isend(w, []byte("hello"), to, 0)
		if err != nil {
			return err
		}
		requests = append(requests, r)
	}
	for from := range w.Size() {
		if from != w.Rank() {
			if _, err := mpi.Recv(w, make([]byte, 5), from, 0); err != nil {
				return err
			}
		}
	}
	return mpi.Waitall(requests, nil)
}

// running is an impi-node whose procs have exchanged messages, and where its run
// directories are.
type running struct {
	cmd  *exec.Cmd
	base string
}

// startJob runs a job of that file; procs are how many lines "ready" to wait for.
func startJob(t *testing.T, procs int, args ...string) *running {
	t.Helper()
	return startProgram(t, "exchange", procs, args...)
}

// startProgram is startJob for any program that says ready.
func startProgram(t *testing.T, program string, procs int, args ...string) *running {
	t.Helper()
	return startProgramAt(t, runBase(t), program, procs, args...)
}

// runBase makes a folder for run directories, whose path is short enough for sockets.
func runBase(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "impi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return base
}

// startProgramAt is startProgram with run directories in base.
func startProgramAt(t *testing.T, base, program string, procs int, args ...string) *running {
	t.Helper()
	return startProgramAs(t, func(*exec.Cmd) {}, base, program, procs, args...)
}

// startProgramAs is startProgramAt by a command that is changed before.
func startProgramAs(t *testing.T, change func(*exec.Cmd), base, program string, procs int, args ...string) *running {
	t.Helper()
	cmd, _, errs := command(t, program, args...)
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+base)
	change(cmd)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the job's log:\n%s", errs)
		}
	})
	lines := bufio.NewScanner(out)
	for n := 0; n < procs; {
		if !lines.Scan() {
			t.Fatal("the job has ended")
		}
		if strings.HasSuffix(lines.Text(), "ready") {
			n++
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return &running{cmd, base}
}

// links runs impi-node links.
func (r *running) links(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	return impiNode(t, "", append([]string{"links", "-run-dir", r.base, "-deadline", "60s"}, args...)...)
}

// report is links as a program reads it.
func (r *running) report(t *testing.T, args ...string) (status int, job links.Job) {
	t.Helper()
	status, out, errs := r.links(t, append(args, "-json")...)
	var rep links.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil || rep.Schema != links.Schema || len(rep.Jobs) != 1 {
		t.Fatalf("status %d: %v\n%s\n%s", status, err, out, errs)
	}
	return status, rep.Jobs[0]
}

func TestLinksShowsAJob(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites))
	status, j := r.report(t, "-measure")
	if status != statusOK || len(j.Pairs) != 1 || len(j.Sites) != 2 || j.Name != "job" {
		t.Fatalf("status %d: %+v", status, j)
	}
	p := j.Pairs[0]
	if p.Transport != "shm" || p.Plane != "peer-shm" || p.State != links.StateLinked || *p.AToB.Messages != 1 || p.Why != "the first of the route's prefer" {
		t.Errorf("%+v", p)
	}
	if p.Speed == nil || p.Speed.How != links.HowProbe || p.Speed.Problem != "" {
		t.Errorf("%+v", p.Speed)
	}
	status, out, errs := r.links(t, "-explain")
	for _, want := range []string{
		`(?m)^job job  \([0-9a-f]{12}\)$`,
		`(?m)^  site alpha  rank 0  127.0.0.2  node \d+ running  wait auto: poll 200us, then sleep; now `,
		`(?m)^  RANKS    TRANSPORT  DATA PLANE `,
		`(?m)^  0 === 1  shm        peer-shm    [\d.]+ [um]s +[\d.e+]+ [kMG]?B/s +1 / 1 `,
		`(?m)^      tcp   possible  not needed: shm works$`,
		`(?m)^  plugin shm +pid \d+ +healthy, `,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no match for %s in", want)
		}
	}
	if t.Failed() {
		t.Logf("status %d\n%s\n%s", status, out, errs)
	}
}

// TestCollectivesByWhatWasMeasured: a job that is measured writes a file, and the next one decides
// by it; a file can decide otherwise.
func TestCollectivesByWhatWasMeasured(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept.json")
	says := func(r *running, want string) {
		t.Helper()
		if _, out, errs := r.links(t, "-explain"); !regexp.MustCompile(`(?m)^  collective operations between sites: ` + want + `$`).MatchString(out) {
			t.Errorf("no match for %s in\n%s%s", want, out, errs)
		}
	}
	first := startJob(t, 2, "-config", file(t, twoSites))
	says(first, `all at once up to 16 sites, Allreduce of 1.05 MB and more part by part; no round trip between sites was measured`)
	if status, _, errs := first.links(t, "-keep", kept); status != statusUsage || !strings.Contains(errs, "-measure") {
		t.Errorf("-keep alone: status %d, %s", status, errs)
	}
	status, _, errs := first.links(t, "-measure", "-keep", kept)
	if told := `kept in ` + regexp.QuoteMeta(kept) + `: between alpha and beta a round trip of [\d.]+ [um]s and \d+ Mb/s\n$`; status != statusOK || !regexp.MustCompile(told).MatchString(errs) {
		t.Fatalf("status %d: %q does not match %s", status, errs, told)
	}
	next := startJob(t, 2, "-config", file(t, twoSites+`protocol { measured = "`+kept+`" }`))
	says(next, `all at once up to \d+ sites, .*; the longest round trip that was measured is [\d.]+.*s`)
	pinned := startJob(t, 2, "-config", file(t, twoSites+`protocol {
  measured    = "`+kept+`"
  collectives = "tree"
}`))
	says(pinned, `up and down a tree; the file of site alpha \(client 0\) says so`)
}

// TestLinksOfEachRoute: what a route does to a pair is what links says of it.
func TestLinksOfEachRoute(t *testing.T) {
	for _, c := range []struct {
		route, transport, plane, advice string
		state                           links.State
	}{
		{`prefer = ["unix", "tcp"]`, "unix", "fd", `shared memory needs no system call: "shm" in prefer of route "*" of site alpha`, links.StateLinked},
		{`prefer = ["tcp"]`, "tcp", "fd", `both are on one machine: "unix" in prefer of route "*" of site alpha`, links.StateLinked},
		{`direct = false`, "", "", `direct = true in route "*" of site alpha: packets go through the agents now`, links.StateAgents},
	} {
		t.Run(c.route, func(t *testing.T) {
			r := startJob(t, 2, "-config", file(t, twoSites+`route "*" { `+c.route+` }`))
			_, j := r.report(t)
			p := j.Pairs[0]
			if p.Transport != c.transport || p.Plane != c.plane || p.State != c.state {
				t.Errorf("%+v", p)
			}
			advice := strings.Join(p.Faster, "\n")
			if c.transport == "tcp" { // which of the two comes first is the site's order
				advice = strings.ReplaceAll(advice, `"shm"`, `"unix"`)
			}
			if !strings.HasPrefix(advice, c.advice) {
				t.Errorf("%q, want %q", p.Faster, c.advice)
			}
		})
	}
}

// TestLinksWithAStoppedNode: the deadline holds, what the other site's node says
// is shown, and the stopped one is named.
func TestLinksWithAStoppedNode(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites+`route "*" { prefer = ["tcp"] }`))
	_, j := r.report(t)
	pid := j.Sites[1].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	var status int
	for deadline := 3; ; deadline *= 4 { // the one that runs may need longer on a busy machine
		if status, j = r.report(t, "-measure", "-deadline", fmt.Sprint(deadline, "s")); j.Sites[0].Problem == "" || deadline > 60 {
			break
		}
	}
	if status != statusPartial || len(j.Sites) != 2 || !strings.Contains(j.Sites[1].Problem, "is stopped") || j.Sites[1].Name != "beta" || j.Sites[0].Problem != "" {
		t.Fatalf("status %d: %+v", status, j.Sites)
	}
	p := j.Pairs[0]
	if p.State != links.StateLinked || p.Transport != "tcp" || len(p.Views) != 1 {
		t.Errorf("%+v", p)
	}
	if p.Speed == nil || !strings.HasPrefix(p.Speed.Problem, "not measured: ") || p.Speed.How != links.HowKernel || p.Speed.Rate != 0 {
		t.Errorf("a stopped node was measured: %+v", p.Speed)
	}
}

// TestLinksAfterAKill: a job that was killed is gone, and its sockets with it.
func TestLinksAfterAKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := startJob(t, 1, "-n", "1", self)
	_, j := r.report(t)
	if err := syscall.Kill(j.Sites[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait() // its procs hold nothing of the directory
	status, out, errs := r.links(t)
	if status != statusNoJob || out != "" || !strings.Contains(errs, "no job of this user runs with its run directories in") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(r.base, "impi-*", "*", links.SocketName)); left != nil {
		t.Errorf("%q is left", left)
	}
}

func TestLinksChoosesJobs(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites))
	_, j := r.report(t)
	for want, args := range map[string][]string{
		"":                           {"-job", "job"},
		" ":                          {"-job", j.ID[:6]},
		"  ":                         {"-pid", strconv.Itoa(r.cmd.Process.Pid)},
		"   ":                        {"-pid", strconv.Itoa(j.Sites[1].Ranks[0].PID)},
		`no job "heat2d" runs here`:  {"-job", "heat2d"},
		"is not a node, launcher or": {"-pid", "1"},
	} {
		status, out, errs := r.links(t, args...)
		if strings.TrimSpace(want) == "" && (status != statusOK || !strings.HasPrefix(out, "job job")) {
			t.Errorf("%q: status %d: %s%s", args, status, out, errs)
		}
		if strings.TrimSpace(want) != "" && (status != statusNoJob || !strings.Contains(errs, want)) {
			t.Errorf("%q: status %d: %s%s", args, status, out, errs)
		}
	}
}

func TestLinksCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"flag provided but not defined": {"links", "-colour"},
		"takes only flags":              {"links", "heat2d"},
		"must be positive":              {"links", "-deadline", "0s"},
	} {
		status, out, errs := impiNode(t, "", args...)
		if status != statusUsage || out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, "impi-node help links") {
			t.Errorf("%q: status %d: %s%s", args, status, out, errs)
		}
	}
	for _, args := range [][]string{{"links", "-help"}, {"help", "links"}} {
		if status, out, _ := impiNode(t, "", args...); status != statusOK || out != linksHelp {
			t.Errorf("%q: status %d: %s", args, status, out)
		}
	}
	if status, _, errs := impiNode(t, "", "links", "-run-dir", t.TempDir()); status != statusNoJob || !strings.Contains(errs, "no job of this user runs") {
		t.Errorf("status %d: %s", status, errs)
	}
}
