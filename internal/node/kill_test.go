package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/plugins/host"
)

func TestProcKilled(t *testing.T) {
	all := start(t, testJob("block", 2, 2))
	pid := all[1].out.Number(t, "[2] pid ")
	all[0].out.Line(t, "[0] rank 0 of 4")
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f := wantAll(t, all, "rank 2 on site beta was killed by SIGKILL")
	if f[1].Status != 137 || f[0].Status != ending.StatusRemote || !f[0].Remote || f[1].Remote {
		t.Errorf("alpha: %+v, beta: %+v", f[0], f[1])
	}
}

func TestProcExits(t *testing.T) {
	all := start(t, testJob("three", 1, 2))
	f := wantAll(t, all, "rank 1 on site beta exited with status 3")
	if f[1].Status != 3 {
		t.Errorf("%+v", f[1])
	}
}

func TestExitWithoutFinalizeIsAFailure(t *testing.T) {
	f := wantAll(t, start(t, testJob("zero", 2)), "rank 1 on site alpha exited with status 0 without MPI Finalize")
	if f[0].Status != 1 {
		t.Errorf("%+v", f[0])
	}
}

func TestAbort(t *testing.T) {
	all := start(t, testJob("abort", 2, 1))
	f := wantAll(t, all, "rank 2 on site beta called MPI Abort with code 7: the matrix is singular")
	if f[1].Status != 7 || f[0].Status != ending.StatusRemote {
		t.Errorf("alpha: %+v, beta: %+v", f[0], f[1])
	}
}

func TestProcExitsBeforeInit(t *testing.T) {
	job := testJob("early", 2, 1)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	job.Sites[0].Program.Env[gateVariable] = gate
	all := start(t, job)
	all[1].err.Await("startup: connected", 1) // who comes when the server has ended, waits for one
	w, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	f := wantAll(t, all, "proc 1 of site alpha exited with status 5 before it called MPI Init")
	if f[0].Status != 5 || f[1].Status != ending.StatusRemote {
		t.Errorf("%+v %+v", f[0], f[1])
	}
}

func TestProcFailsAfterFinalize(t *testing.T) {
	all := start(t, testJob("late", 2, 1))
	f := end(all)
	if f[0] == nil || f[0].Text != "rank 1 on site alpha exited with status 4" || f[0].Status != 4 {
		t.Errorf("alpha: %v", f[0])
	}
	if f[1] != nil {
		t.Errorf("beta had no part in it: %v", f[1])
	}
}

func TestOperatorEndsTheJob(t *testing.T) {
	all := start(t, testJob("block", 1, 1))
	var fds []int
	for i, r := range all {
		fds = append(fds, launchtest.Pidfd(t, r.out.Number(t, fmt.Sprintf("[%d] pid ", i))))
	}
	all[1].cancel(lifetime.Interrupt{Signal: syscall.SIGTERM})
	f := wantAll(t, all, "the operator ended the job at site beta (SIGTERM)")
	if f[1].Status != 143 || f[0].Status != ending.StatusRemote {
		t.Errorf("alpha: %+v, beta: %+v", f[0], f[1])
	}
	for _, fd := range fds {
		launchtest.AwaitEnd(t, fd)
	}
}

func TestDeafProcIsKilledInTheEnd(t *testing.T) {
	job := testJob("deaf", 2)
	job.Limits.Stop = time.Millisecond
	all := start(t, job)
	fd := launchtest.Pidfd(t, all[0].out.Number(t, "[1] pid "))
	all[0].cancel(lifetime.Interrupt{Signal: syscall.SIGINT})
	wantAll(t, all, "the operator ended the job at site alpha (SIGINT)")
	launchtest.AwaitEnd(t, fd)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	job := testJob("deaf", 1)
	job.Limits.Stop = time.Hour
	all := start(t, job)
	fd := launchtest.Pidfd(t, all[0].out.Number(t, "[0] pid "))
	all[0].cancel(lifetime.Interrupt{Signal: syscall.SIGINT})
	all[0].hurry()
	<-all[0].done
	launchtest.AwaitEnd(t, fd)
}

// unread is a pipe whose reader has gone.
type unread struct{}

func (unread) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestNobodyReadsTheOutput(t *testing.T) {
	all := start(t, testJob("block", 1), func(o *Options) { o.Stdout = unread{} })
	f := wantAll(t, all, "the output of site alpha cannot be written: broken pipe")
	if f[0].Status != 141 {
		t.Errorf("%+v", f[0])
	}
}

func TestOtherControlProtocol(t *testing.T) {
	f := end(start(t, testJob("old", 1)))
	if f[0] == nil || !strings.Contains(f[0].Text, "old 1.0") || !strings.Contains(f[0].Text, "99") || f[0].Status != ending.StatusNode {
		t.Errorf("%v", f[0])
	}
}

func TestProcClosesItsControlSocket(t *testing.T) {
	f := wantAll(t, start(t, testJob("mute", 1)), "rank 0 on site alpha closed its connection to the node without MPI Finalize")
	if f[0].Status != 1 {
		t.Errorf("%+v", f[0])
	}
}

// nodeMain is a node as a process: its job comes on standard input.
func nodeMain() {
	var job config.Job
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		panic(err)
	}
	client := 0
	fmt.Sscan(os.Getenv("IMPI_TEST_CLIENT"), &client)
	n := newNode(Options{
		Job: &job, Site: job.Sites[client], Stdout: os.Stdout, Stderr: os.Stderr, RunBase: os.Getenv("IMPI_TEST_BASE"),
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug}),
	})
	go func() {
		<-n.ready
		for _, t := range n.routes.Transports {
			fmt.Fprintln(os.Stdout, "plugin", t.Name, t.Plugin.Status().PID)
		}
		fmt.Fprintln(os.Stdout, "dir", n.dir.Path)
	}()
	if f := n.life(context.Background()).Failure; f != nil {
		fmt.Fprintln(os.Stderr, f)
		os.Exit(f.Status)
	}
}

func TestNodeKilledLeavesNothing(t *testing.T) {
	job := testJob("block", 1, 2)
	serveApart(t, job)
	base := launchtest.ShortDir(t)
	b, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	out := &transcript.Writer{}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=node", "IMPI_TEST_CLIENT=1", "IMPI_TEST_BASE="+base)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(b)), out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	alpha := startSites(t, job, job.Sites[:1])
	fds := []int{launchtest.Pidfd(t, cmd.Process.Pid)}
	for _, prefix := range []string{"[1] pid ", "[2] pid ", "plugin unix ", "plugin tcp "} {
		fds = append(fds, launchtest.Pidfd(t, out.Number(t, prefix)))
	}
	dir := out.Line(t, "dir ")
	alpha[0].out.Line(t, "[0] rank 0 of 3")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for _, fd := range fds {
		launchtest.AwaitEnd(t, fd)
	}
	f := end(alpha)
	if f[0] == nil || !strings.Contains(f[0].Text, "site beta (client 1)") || f[0].Status != ending.StatusRemote {
		t.Errorf("alpha: %+v", f[0])
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal("who removed it?", err)
	}
	next, err := host.NewRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the socket files of the dead node are still there: %v", err)
	}
}

func TestPluginKilledDisturbsNoLinkAndServesTheNextDial(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	job := testJob("onword", 2, 2) // the ring leaves 0-2 and 1-3 unlinked
	all := start(t, route(job, config.Route{Prefer: []string{"tcp"}, Direct: true}), func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = r
		}
	})
	all[0].out.Line(t, "[0] ready")
	for _, x := range all {
		fd := launchtest.Pidfd(t, x.n.routes.Transport("tcp").Plugin.Status().PID)
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
			t.Fatal(err)
		}
		launchtest.AwaitEnd(t, fd)
	}
	w.Close() // now all send to all
	wantNone(t, all)
	if got := all[1].out.Line(t, "[2] sum "); got != "6" {
		t.Errorf("sum %s", got)
	}
}

func TestSiteThatNeverComes(t *testing.T) {
	job := testJob("block", 1, 1)
	job.Sites[0].Server.Timeout = 300 * time.Millisecond
	job.Sites[0].Server.Embedded = true
	alpha := startSites(t, job, job.Sites[:1])
	f := end(alpha)
	if f[0] == nil || !strings.Contains(f[0].Text, "site beta (client 1) did not come") || f[0].Status != ending.StatusTimeout {
		t.Errorf("%v", f[0])
	}
}

func TestProgramThatNeverCallsInit(t *testing.T) {
	job := testJob("idle", 2)
	job.Limits.Start = time.Second
	f := end(start(t, job))
	want := "site alpha: 1s passed while waiting for MPI Init of proc 0 of site alpha and another one"
	if f[0] == nil || f[0].Status != ending.StatusTimeout || !strings.HasPrefix(f[0].Text, want) {
		t.Errorf("%v", f[0])
	}
}

func TestPeerThatCannotBeDialledIsReachedByTheAgents(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := start(t, testJob("onword", 2, 2), func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = r
		}
	})
	all[0].out.Line(t, "[0] ready")
	for _, x := range all {
		for _, l := range x.n.hosts[0].Direct {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Close()
	wantNone(t, all)
	if got := all[1].out.Line(t, "[3] sum "); got != "6" {
		t.Errorf("sum %s", got)
	}
	if log := all[0].err.String() + all[1].err.String(); !strings.Contains(log, "no direct link") {
		t.Errorf("the operator was not told:\n%s", log)
	}
}

func TestWrongKey(t *testing.T) {
	job := testJob("block", 1, 1)
	job.Sites[1].Auth.Key++
	all := start(t, job)
	<-all[1].done
	if f := all[1].failure; f == nil || !strings.Contains(f.Text, "wrong key") || f.Status != ending.StatusNode {
		t.Errorf("%v", f)
	}
	all[0].cancel(lifetime.Interrupt{Signal: syscall.SIGINT})
	<-all[0].done
}

func TestStrangersAtTheDirectPort(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := start(t, testJob("onword", 2), func(o *Options) { o.Stdin = r })
	all[0].out.Line(t, "[0] ready")
	for _, l := range all[0].n.hosts[0].Direct {
		network, address := "unix", l.Address()
		if l.Transport.Name != "unix" {
			network = "tcp"
			address, _, _ = strings.Cut(address, "/")
		}
		for _, words := range []string{"GET / HTTP/1.0\r\n\r\n" + strings.Repeat("x", 100), ""} {
			c, err := net.Dial(network, address)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte(words)); err != nil {
				t.Fatal(err)
			}
			if words != "" {
				if n, err := c.Read(make([]byte, 1)); err == nil && n == 0 {
					t.Error("no answer and no end")
				}
			}
			c.Close()
		}
	}
	w.Close()
	wantNone(t, all)
}

func TestStrangersAtTheChannelPort(t *testing.T) {
	job := testJob("ring", 1, 1)
	serveApart(t, job)
	alpha := startSites(t, job, job.Sites[:1])
	<-alpha[0].n.listening
	address := alpha[0].n.hosts[0].Channel.Address()
	for _, words := range []string{"\x00\x00\x00\x00", "\x00\x00\x00\x09", "GET /", "\x00"} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(words)); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	beta := startSites(t, job, job.Sites[1:])
	wantNone(t, append(alpha, beta...))
}

// Waiting does not turn an IPv4 address into an IPv6 one.
func TestHostsThatCannotReachEachOther(t *testing.T) {
	job := testJob("block", 1, 1)
	job.Sites[1].Hosts[0].Address = netip.MustParseAddr("::1")
	all := start(t, job)
	for _, s := range all {
		<-s.done
	}
	if f := all[1].failure; f == nil || !strings.Contains(f.Text, "no channel to site") || f.Status != ending.StatusNode {
		t.Errorf("%v", f)
	}
	if f := all[0].failure; f == nil || f.Status != ending.StatusRemote {
		t.Errorf("the other site: %v", f)
	}
}
