package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/cmdline/terminal"
)

// ready starts impi-node with a program and waits until each of procs has said that it is ready.
func ready(t *testing.T, program string, procs int, args ...string) (cmd *exec.Cmd, err *bytes.Buffer) {
	t.Helper()
	cmd, err, _ = readyOn(t, program, procs, args...)
	return cmd, err
}

// readyOn is ready with a terminal, which hangUp takes away.
func readyOn(t *testing.T, program string, procs int, args ...string) (cmd *exec.Cmd, err *bytes.Buffer, hangUp func()) {
	t.Helper()
	cmd, _, err = command(t, program, append([]string{"-no-prefix"}, args...)...)
	hangUp = terminal.Attach(t, cmd)
	cmd.Stdout = nil
	r, e := cmd.StdoutPipe()
	if e != nil {
		t.Fatal(e)
	}
	if e := cmd.Start(); e != nil {
		t.Fatal(e)
	}
	var seen strings.Builder
	for buf := make([]byte, 100); strings.Count(seen.String(), "ready\n") < procs; {
		n, e := r.Read(buf)
		seen.Write(buf[:n])
		if e != nil {
			t.Fatalf("%v\n%s\n%s", e, &seen, err)
		}
	}
	return cmd, err, hangUp
}

// this is the path of this program.
func this(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// The operator's signals end the job in order, with a status that names them.
func TestSignalsOfTheOperator(t *testing.T) {
	for s, name := range map[syscall.Signal]string{syscall.SIGQUIT: "SIGQUIT", syscall.SIGHUP: "SIGHUP"} {
		for what, args := range map[string][]string{"one site": {"-n", "2", this(t)}, "two sites": {"-config", file(t, twoSites)}} {
			t.Run(name+" "+what, func(t *testing.T) {
				cmd, err, hangUp := readyOn(t, "catch", 2, args...)
				if s == syscall.SIGHUP {
					hangUp()
				} else if e := cmd.Process.Signal(s); e != nil {
					t.Fatal(e)
				}
				_ = cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != 128+int(s) || !strings.Contains(err.String(), "the operator ended the job at site") ||
					!strings.Contains(err.String(), "("+name+")") {
					t.Errorf("status %d\n%s", got, err)
				}
			})
		}
	}
}

// A signal that comes before the procs are there waits for them, at the launcher too.
func TestUserSignalsThatComeEarly(t *testing.T) {
	for what, args := range map[string][]string{"one site": {"-n", "2", this(t)}, "two sites": {"-config", file(t, twoSites)}} {
		t.Run(what, func(t *testing.T) {
			cmd, _, _ := command(t, "early", append([]string{"-log-level", "debug"}, args...)...)
			cmd.Stderr = nil
			r, e := cmd.StderrPipe()
			if e != nil {
				t.Fatal(e)
			}
			if e := cmd.Start(); e != nil {
				t.Fatal(e)
			}
			watch := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
			defer watch.Stop()
			log := bufio.NewScanner(r)
			log.Scan() // something has begun: no proc has
			first := log.Text()
			if e := cmd.Process.Signal(syscall.SIGUSR1); e != nil {
				t.Fatal(e)
			}
			var rest strings.Builder
			for log.Scan() {
				rest.WriteString(log.Text() + "\n")
			}
			if e := cmd.Wait(); e != nil || strings.Contains(first, "procs started") {
				t.Errorf("%v, after %s\n%s", e, first, &rest)
			}
		})
	}
}

// SIGUSR1 reaches every proc: those of program "catch" end when it has come.
func TestUserSignalsReachTheProcs(t *testing.T) {
	for what, args := range map[string][]string{"one site": {"-n", "2", this(t)}, "two sites": {"-config", file(t, twoSites)}} {
		t.Run(what, func(t *testing.T) {
			cmd, err := ready(t, "catch", 2, args...)
			if e := cmd.Process.Signal(syscall.SIGUSR1); e != nil {
				t.Fatal(e)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 0 {
				t.Errorf("status %d\n%s", got, err)
			}
		})
	}
}
