package status

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/cmdline/terminal"
)

// commandVariable makes the test binary the command, which finds no job.
const commandVariable = "IMPI_TEST_TOP_COMMAND"

// topVariable makes the test binary impi-node top of a job.
const topVariable = "IMPI_TEST_TOP"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		os.Exit(TopCommand(os.Stdin, os.Stdout).Execute([]string{"-run-dir", "/nowhere"}, os.Stdout, os.Stderr))
	}
	if os.Getenv(topVariable) == "" {
		os.Exit(m.Run())
	}
	r := &Report{Jobs: []Job{{Job: *job(counted(0, 100, 0))}}}
	if _, err := run(newScreen(func() *Report { return r }, time.Second), os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
}

// TestTerminalThatAnswersNothing: the table is drawn without an answer to any question to the
// terminal. A terminal is asked for its colours by some libraries when the program begins, which
// then waits for seconds.
func TestTerminalThatAnswersNothing(t *testing.T) {
	master, tty := terminal.Open(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), topVariable+"=1", "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	defer func() { _ = cmd.Process.Kill() }()
	var seen strings.Builder
	b := make([]byte, 4096)
	for !strings.Contains(seen.String(), "job heat") {
		n, err := master.Read(b)
		if seen.Write(b[:n]); err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
	}
	before, _, _ := strings.Cut(seen.String(), "job heat")
	for _, question := range []string{"\x1b]10;?", "\x1b]11;?", "\x1b[6n"} {
		if strings.Contains(before, question) {
			t.Errorf("%q is asked before anything is drawn: %q", question, before)
		}
	}
	if _, err := master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	go func() { // what it still writes
		for {
			if _, err := master.Read(b); err != nil {
				return
			}
		}
	}()
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended by q: %v", err)
	}
}

// TestTopOfPlainTerminals: where a screen cannot be drawn, the command is refused as without a
// terminal.
func TestTopOfPlainTerminals(t *testing.T) {
	_, tty := terminal.Open(t)
	defer tty.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"TERM=dumb": cmdline.StatusUsage, "TERM=": cmdline.StatusUsage, "TERM=xterm": statusNoJob} {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), commandVariable+"=1", name)
		cmd.Stdin, cmd.Stdout = tty, tty
		var errs strings.Builder
		cmd.Stderr = &errs
		_ = cmd.Run() // its status is looked at
		if got := cmd.ProcessState.ExitCode(); got != want || strings.Contains(errs.String(), "for terminals") != (want == cmdline.StatusUsage) {
			t.Errorf("%s: status %d, want %d: %s", name, got, want, &errs)
		}
	}
}
