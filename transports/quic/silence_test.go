package quic_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Variables of the process that is stopped: the settings of its transport, and whom it dials.
const (
	stoppedSettings = "IMPI_TEST_STOPPED_SETTINGS"
	stoppedDials    = "IMPI_TEST_STOPPED_DIALS"
)

// A process that does not run for longer than its own idle timeout, with something sent that nobody has
// acknowledged, goes on with a link that its peer has kept.
func TestStoppedProcessKeepsItsLink(t *testing.T) {
	if os.Getenv(stoppedDials) != "" {
		echo(t)
		return
	}
	ca := pkitest.Authority(t)
	patient := started(t, pkitest.Site(t, "alpha", ca, ca, map[string]any{"keepalive": 30.0, "idle_timeout": 600.0}))
	ln := listen(t, patient, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	settings, err := json.Marshal(pkitest.Site(t, "beta", ca, ca, map[string]any{"keepalive": 1.0, "idle_timeout": 3.0}))
	if err != nil {
		t.Fatal(err)
	}
	child := asProcess(t, stoppedSettings+"="+string(settings), stoppedDials+"="+n.address())
	b, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	child.say(t)
	one := make([]byte, 1)
	if err := recvAll(b, one); err != nil {
		t.Fatal(err)
	}

	n.worsen(1, 0)
	child.say(t)
	<-n.lost
	if err := unix.Kill(child.cmd.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	longer(t)
	n.worsen(0, 0)
	if err := unix.Kill(child.cmd.Process.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := child.hear(t); got != "sent\n" {
		t.Fatalf("it says %q", got)
	}
	if got := child.hear(t); got != "sent\n" {
		t.Fatalf("once it runs again it says %q", got)
	}
	if err := recvAll(b, one); err != nil || one[0] != 2 {
		t.Errorf("what it has sent is %d: %v", one[0], err)
	}
	if err := sendAll(b, one); err != nil {
		t.Error(err)
	}
	if got := child.hear(t); got != "answered\n" {
		t.Errorf("of the answer it says %q", got)
	}
}

// longer waits for as long as a link takes to be given up whose idle timeout is longer than that of the
// process that is stopped.
func longer(t *testing.T) {
	t.Helper()
	alpha, beta := two(t, map[string]any{"keepalive": 1.0, "idle_timeout": 4.0})
	ln := listen(t, alpha, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	a, _ := join(t, beta, ln, n.address())
	n.worsen(1, 0)
	if err := recvAll(a, make([]byte, 1)); !errors.Is(err, link.ErrSilent) {
		t.Fatalf("a link to nobody ends with %v", err)
	}
}

// process is a test that runs again, as another process.
type process struct {
	cmd  *exec.Cmd
	in   io.Writer
	said *bufio.Reader
}

func asProcess(t *testing.T, variables ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")}
	p.cmd.Env = append(os.Environ(), variables...)
	p.cmd.Stderr = t.Output()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.said = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) say(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

func (p *process) hear(t *testing.T) string {
	t.Helper()
	line, err := p.said.ReadString('\n')
	if err != nil {
		t.Fatalf("%q, and then %v", line, err)
	}
	return line
}

// echo is the process that is stopped: it sends a byte for each line that it is told, 1 and 2, and then waits
// for one.
func echo(t *testing.T) {
	var settings map[string]any
	if err := json.Unmarshal([]byte(os.Getenv(stoppedSettings)), &settings); err != nil {
		t.Fatal(err)
	}
	x := started(t, settings)
	l, err := x.Dial(t.Context(), transports.DialSpec{Address: os.Getenv(stoppedDials)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := bufio.NewReader(os.Stdin)
	for i := range 2 {
		if _, err := told.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := sendAll(l, []byte{byte(i + 1)}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("sent")
	}
	if err := recvAll(l, make([]byte, 1)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("answered")
}
