package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/cmdline/terminal"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/version"
)

// TestMain lets the test binary be impi-server itself.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_AS_IMPI_SERVER") != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a running impi-server.
type process struct {
	cmd     *exec.Cmd
	address string
	stdout  *bufio.Reader
	stderr  bytes.Buffer
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startAs(t, func(*exec.Cmd) {}, env, args...)
}

// startAs is start of a command that is changed before.
func startAs(t *testing.T, change func(*exec.Cmd), env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), append(env, "TEST_AS_IMPI_SERVER=1")...)
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal, wherever the tests run
	change(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	p.stdout = bufio.NewReader(out)
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.cmd.Wait()
		t.Fatalf("no address: %v\n%s", err, p.stderr.String())
	}
	p.address = strings.TrimSuffix(line, "\n")
	return p
}

// end waits for the process, checks that it printed nothing else, and gives its
// exit status.
func (p *process) end(t *testing.T) int {
	t.Helper()
	if rest, _ := io.ReadAll(p.stdout); len(rest) > 0 {
		t.Errorf("more on stdout: %q", rest)
	}
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func join(t *testing.T, address string, auth startup.Auth) (*rendezvous.Client, error) {
	host := wire.HostIDFrom(netip.MustParseAddr("127.0.0.1"), wire.IPv4Compatible)
	s, _, err := rendezvous.Join(t.Context(), rendezvous.Settings{Server: address}, startup.ClientConfig{
		Auth: auth, Params: startup.DefaultParams(),
		Hosts: []startup.HostConfig{{Address: host, Port: 5000, Procs: []startup.ProcConfig{{ID: wire.Proc{Host: host, PID: 1}}}}},
	})
	return s, err
}

func TestJobThatEndsWell(t *testing.T) {
	p := start(t, nil, "-clients", "1", "-auth", "none", "--host", "127.0.0.1", "-log-json")
	if a, err := netip.ParseAddrPort(p.address); err != nil || a.Addr().String() != "127.0.0.1" || a.Port() == 0 {
		t.Fatalf("address %q: %v", p.address, err)
	}
	s, err := join(t, p.address, startup.Auth{None: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Finish()
	if code := p.end(t); code != exitOK {
		t.Errorf("status %d\n%s", code, p.stderr.String())
	}
	if !strings.Contains(p.stderr.String(), `"@message":"client joined"`) {
		t.Errorf("log:\n%s", p.stderr.String())
	}
}

func TestKeyFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.key")
	if err := os.WriteFile(file, []byte("  987654321\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{envNone + "="}, "-clients=1", "-key-file", file, "-host", "127.0.0.1", "-log-level", "trace")
	if _, err := join(t, p.address, startup.Auth{HasKey: true, Key: 1}); !errors.Is(err, startup.ErrFailed) {
		t.Errorf("wrong key: %v", err)
	}
	if _, err := join(t, p.address, startup.Auth{None: true}); !errors.Is(err, startup.ErrFailed) {
		t.Errorf("no key: %v", err)
	}
	s, err := join(t, p.address, startup.Auth{HasKey: true, Key: 987654321})
	if err != nil {
		t.Fatal(err)
	}
	s.Finish()
	if code := p.end(t); code != exitOK {
		t.Errorf("status %d", code)
	}
	if strings.Contains(p.stderr.String(), "987654321") {
		t.Errorf("the key is in the log:\n%s", p.stderr.String())
	}
}

func TestJobThatFails(t *testing.T) {
	p := start(t, nil, "-clients", "2", "-auth", "none", "-host", "127.0.0.1", "-timeout", "100ms")
	if code := p.end(t); code != exitFailed {
		t.Errorf("status %d", code)
	}
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	if last := lines[len(lines)-1]; last != "impi-server: startup: server: time limit is over: clients {0,1} of 2 did not come within 100ms" {
		t.Errorf("last words: %q", last)
	}
}

func TestSignalEndsJob(t *testing.T) {
	p := start(t, nil, "-clients", "1", "-auth", "none", "-host", "127.0.0.1")
	s, err := join(t, p.address, startup.Auth{None: true})
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Process.Signal(syscall.SIGINT)
	<-s.Lost()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "the server was stopped: its operator sent SIGINT") {
		t.Errorf("client: %v", err)
	}
	if code := p.end(t); code != 130 {
		t.Errorf("status %d", code)
	}
}

// TestTermLeavesAJobThatRuns: to the site it is the loss of the server.
func TestTermLeavesAJobThatRuns(t *testing.T) {
	p := start(t, nil, "-clients", "1", "-auth", "none", "-host", "127.0.0.1")
	s, err := join(t, p.address, startup.Auth{None: true})
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-s.Lost()
	if err := s.Err(); !errors.Is(err, startup.ErrLost) || errors.Is(err, startup.ErrFailed) {
		t.Errorf("client: %v", err)
	}
	if code := p.end(t); code != 143 {
		t.Errorf("status %d", code)
	}
	if said := p.stderr.String(); !strings.HasSuffix(said, "impi-server: stopped by SIGTERM: the job goes on without its server\n") {
		t.Errorf("it says:\n%s", said)
	}
}

// TestInterruptBeforeAnybodyCame: who presses Ctrl-C is told what that does, and the
// status is that of the signal.
func TestInterruptBeforeAnybodyCame(t *testing.T) {
	for sig, want := range map[syscall.Signal]string{syscall.SIGINT: "stopped by SIGINT", syscall.SIGHUP: "stopped by SIGHUP", syscall.SIGTERM: "stopped by SIGTERM"} {
		var hangUp func()
		p := startAs(t, func(cmd *exec.Cmd) { hangUp = terminal.Attach(t, cmd) }, nil, "-clients", "2", "-auth", "none", "-host", "127.0.0.1")
		if sig == syscall.SIGHUP {
			hangUp()
		} else {
			p.cmd.Process.Signal(sig)
		}
		if code := p.end(t); code != 128+int(sig) {
			t.Errorf("%v: status %d", sig, code)
		}
		if said := p.stderr.String(); !strings.Contains(said, "impi-server: "+want+" before the job had ended") || strings.Contains(said, "context canceled") {
			t.Errorf("%v:\n%s", sig, said)
		}
	}
}

func TestPortInUse(t *testing.T) {
	p := start(t, nil, "-clients", "1", "-auth", "none", "-host", "127.0.0.1")
	_, port, _ := strings.Cut(p.address, ":")
	var out, errs bytes.Buffer
	if code := run([]string{"-clients", "1", "-auth", "none", "-host", "127.0.0.1", "-port", port}, none, &out, &errs); code != exitFailed || out.Len() > 0 || !strings.Contains(errs.String(), "address already in use; another program has that port") {
		t.Errorf("status %d, %q, %q", code, out.String(), errs.String())
	}
}

// TestPortRange: the server takes the first free port of a range, and says so if none is free.
func TestPortRange(t *testing.T) {
	p := start(t, nil, "-clients", "1", "-auth", "none", "-host", "127.0.0.1")
	at := netip.MustParseAddrPort(p.address).Port()
	last := min(int(at)+50, 65535)
	other := start(t, nil, "-clients", "1", "-auth", "none", "-host", "127.0.0.1", "-port", fmt.Sprintf("%d-%d", at, last))
	if got := netip.MustParseAddrPort(other.address).Port(); got <= at || int(got) > last {
		t.Errorf("it listens on %d", got)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-clients", "1", "-auth", "none", "-host", "127.0.0.1", "-port", fmt.Sprintf("%d-%d", at, at)}, none, &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "all of them are in use") {
		t.Errorf("status %d, %q, %q", code, out.String(), errs.String())
	}
}

func none(string) (string, bool) { return "", false }

func TestHelpAndVersion(t *testing.T) {
	for arg, want := range map[string]string{"-help": "Examples:", "-h": "Exit status:", "--version": "impi-server " + version.Release} {
		var out, errs bytes.Buffer
		if code := run([]string{arg}, none, &out, &errs); code != exitOK || !strings.Contains(out.String(), want) || errs.Len() > 0 {
			t.Errorf("%s: status %d, %q %q", arg, code, out.String(), errs.String())
		}
	}
}

// TestHelpIsComplete: every flag is in the help text, and no other.
func TestHelpIsComplete(t *testing.T) {
	c, _ := newCommand(none)
	for _, fault := range c.Faults() {
		t.Error(fault)
	}
}

// TestServerAddress: a server that listens everywhere prints an address to
// connect to.
func TestServerAddress(t *testing.T) {
	p := start(t, nil, "-clients", "1", "-auth", "none")
	a, err := netip.ParseAddrPort(p.address)
	if err != nil || a.Addr().IsUnspecified() {
		t.Errorf("address %q: %v", p.address, err)
	}
}

// TestOpenServerWarns: with -auth none on an address that is not this machine's own.
func TestOpenServerWarns(t *testing.T) {
	const warning = "[WARN]  impi-server: anybody who reaches this address can take part: start with -key-file"
	for _, c := range []struct {
		args   []string
		warned bool
	}{
		{[]string{"-auth", "none"}, true},
		{[]string{"-auth", "none", "-host", "127.0.0.1"}, false},
	} {
		p := start(t, nil, append(c.args, "-clients", "1")...)
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.end(t)
		if got := strings.Contains(p.stderr.String(), warning); got != c.warned {
			t.Errorf("%q: warned is %v\n%s", c.args, got, p.stderr.String())
		}
	}
}
