package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/skips"
)

func TestJudge(t *testing.T) {
	fine := &siteProcess{reported: true}
	own := func(text string, order int32) *siteProcess {
		return &siteProcess{reported: true, order: order, outcome: outcome{Text: text, Status: 3}}
	}
	told := &siteProcess{reported: true, outcome: outcome{Text: "told", Status: ending.StatusRemote, Remote: true}}
	lost := &siteProcess{reported: true, outcome: outcome{Text: "channel closed", Status: ending.StatusRemote}}
	dead := &siteProcess{order: 9, outcome: outcome{Text: "killed", Status: 137}}
	for _, c := range []struct {
		running []*siteProcess
		want    string
	}{
		{[]*siteProcess{fine, fine}, ""},
		{[]*siteProcess{told, own("own", 2)}, "own"},
		{[]*siteProcess{own("second", 2), own("first", 1)}, "first"},
		{[]*siteProcess{lost, own("own", 2), dead}, "killed"},
		{[]*siteProcess{fine, told}, "told"},
		{[]*siteProcess{lost, fine}, "channel closed"},
	} {
		if got := judge(c.running); got.Text != c.want {
			t.Errorf("%q, want %q", got.Text, c.want)
		}
	}
}

// TestJudgeOfSurvivors: a node that has died is to blame, and the job went on without its site if
// others say so.
func TestJudgeOfSurvivors(t *testing.T) {
	died := func() *siteProcess {
		return &siteProcess{site: config.Site{Hosts: []config.Host{{Procs: 4}}}, outcome: outcome{Text: "its node was killed", Status: 137}}
	}
	left := func(lost int) *siteProcess {
		return &siteProcess{reported: true, order: 1, outcome: outcome{Text: "its channel ended", Status: ending.StatusRemote, Remote: true, Lost: lost}}
	}
	for lost, want := range map[int]string{
		0: "its node was killed",
		4: "its node was killed; the job went on without it",
		5: "its node was killed; 5 procs are lost in all; the job went on without them",
	} {
		if got := judge([]*siteProcess{left(lost), died(), left(0)}); got.Text != want || got.Status != 137 {
			t.Errorf("%d procs: %+v, want %q", lost, got, want)
		}
	}
}

func TestHandoff(t *testing.T) {
	launcher, file, err := handoffPair()
	if err != nil {
		t.Fatal(err)
	}
	defer launcher.Close()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	t.Setenv(procs.HandoffVariable, strconv.Itoa(fd))
	at, key := netip.MustParseAddrPort("127.0.0.1:7"), uint64(1)<<63
	if err := json.NewEncoder(launcher).Encode(order{Server: &at, Key: &key}); err != nil {
		t.Fatal(err)
	}
	h, err := takeHandoff()
	if err != nil {
		t.Fatal(err)
	}
	if _, set := os.LookupEnv(procs.HandoffVariable); set {
		t.Error("procs would take the descriptor for theirs")
	}
	site := config.Site{Server: config.Server{Embedded: true}, Auth: config.Auth{Random: true}}
	h.apply(&site)
	if site.Server.Embedded || site.Server.Address != at || site.Auth != (config.Auth{Keyed: true, Key: key}) {
		t.Errorf("%+v", site)
	}
	f := &ending.Failure{Text: "why", Status: 7, Remote: true, Early: true}
	if s := h.report(fmt.Errorf("wrapped: %w", f)); s != 7 {
		t.Errorf("status %d", s)
	}
	var first signalsReady
	var o outcome
	said := json.NewDecoder(launcher)
	if err := said.Decode(&first); err != nil || !first.Signals {
		t.Errorf("%+v, %v", first, err)
	}
	if err := said.Decode(&o); err != nil || o != (outcome{Text: "wrapped: why", Status: 7, Remote: true, Early: true}) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestNoHandoff(t *testing.T) {
	if h, err := takeHandoff(); h != nil || err != nil {
		t.Errorf("%v, %v", h, err)
	}
	t.Setenv(procs.HandoffVariable, "stdin")
	if _, err := takeHandoff(); err == nil {
		t.Error("that is no descriptor")
	}
}

func TestConclude(t *testing.T) {
	std := streams{nil, os.NewFile(0, ""), nil}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	std.err = w
	for err, want := range map[error]int{
		nil:                          statusOK,
		&ending.Failure{Status: 9}:   9,
		errors.New("something else"): ending.StatusNode,
		fmt.Errorf("%w", &ending.Failure{Status: 4}): 4,
	} {
		if got := conclude(err, std); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// started is how many transports a node starts for a job that says nothing of them.
var started = len(config.Default(1, []string{"prog"}, known()).Sites[0].RouteTo("*").Prefer)

// TestLauncherKilledLeavesNothing kills the process that started two nodes, and
// looks for those, their procs and plugins.
func TestLauncherKilledLeavesNothing(t *testing.T) {
	cmd, _ := ready(t, "block", 2, "-config", file(t, twoSites))
	family := descendants(t, cmd.Process.Pid)
	if len(family) != 2+2*started+2 {
		t.Errorf("%d descendants, not 2 nodes, %d plugins and 2 procs", len(family), 2*started)
	}
	kill(t, cmd)
	for _, fd := range family {
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != unix.EINTR {
				break
			}
		}
		unix.Close(fd)
	}
}

// TestNodeThatDiesBeforeTheJobBegins: the others of its launcher do not wait for it as long
// as a job may take to start.
func TestNodeThatDiesBeforeTheJobBegins(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r := startProgram(t, "never", 2, "-config", file(t, twoSites+"limits { start = \"1h\" }\n"))
	watch := time.AfterFunc(5*time.Minute, func() { _ = r.cmd.Process.Kill() })
	defer watch.Stop()
	strikeAll(t, nodesOnly(r, "TMPDIR="+temp+"\x00")[:1], syscall.SIGKILL)
	_ = r.cmd.Wait() // in whatever way
	log := fmt.Sprint(r.cmd.Stderr)
	if got := r.cmd.ProcessState.ExitCode(); got != 128+int(syscall.SIGKILL) || !strings.Contains(log, "was killed by SIGKILL") {
		t.Errorf("status %d\n%s", got, log)
	}
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// descendants returns a pidfd for each process below pid.
func descendants(t *testing.T, pid int) (fds []int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			skips.NotRun(t, fmt.Sprint("the kernel does not list children: ", err), "use a kernel with CONFIG_PROC_CHILDREN")
		}
		for _, s := range strings.Fields(string(b)) {
			child, _ := strconv.Atoi(s)
			fd, err := unix.PidfdOpen(child, 0)
			if err != nil {
				t.Fatal(err)
			}
			fds = append(append(fds, fd), descendants(t, child)...)
		}
	}
	return fds
}
