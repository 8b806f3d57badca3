package cmdline

import (
	"bytes"
	"os"
	"os/signal"
	"syscall"
)

// HangupReloads reports whether SIGHUP makes this process read its files again. It does for a
// service, which has no controlling terminal, and for a process that nohup has made to ignore the
// loss of its terminal. Otherwise SIGHUP means that the terminal is gone. Call it before signals
// are handled: when a terminal is gone, the process has none any more.
func HangupReloads() bool {
	if signal.Ignored(syscall.SIGHUP) {
		return true
	}
	stat, err := os.ReadFile("/proc/self/stat")
	return err == nil && !hasTerminal(stat)
}

// hasTerminal reports whether a line of /proc/PID/stat is of a process with a controlling terminal,
// and says so too if the line cannot be read.
func hasTerminal(stat []byte) bool {
	_, after, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(")")) // after the name, which may contain anything
	fields := bytes.Fields(after)
	const tty = 4 // after state, parent, group and session
	return len(fields) <= tty || !bytes.Equal(fields[tty], []byte("0"))
}
