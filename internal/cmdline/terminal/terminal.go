// Package terminal gives processes of tests a controlling terminal.
package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Attach makes a command, which is not started yet, the leader of a session with a terminal of its
// own. hangUp removes the terminal, as closing its window does.
func Attach(t *testing.T, cmd *exec.Cmd) (hangUp func()) {
	t.Helper()
	if signal.Ignored(syscall.SIGHUP) { // tests under nohup would pass that on, and no hang-up would end the command
		heard := make(chan os.Signal, 1)
		signal.Notify(heard, syscall.SIGHUP)
		t.Cleanup(func() { signal.Stop(heard); signal.Ignore(syscall.SIGHUP) })
	}
	master, tty := Open(t)
	cmd.ExtraFiles = append(cmd.ExtraFiles, tty)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2 + len(cmd.ExtraFiles)}
	return func() { master.Close() }
}

// Open makes a terminal of 80 by 24. Output to tty is read from master; no other program answers
// it. Both are closed when the test is over.
func Open(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}
