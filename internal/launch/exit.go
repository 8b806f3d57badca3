package launch

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit is how a process ended.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // that killed it, or 0
	Core   bool           // it left a core dump
	Unseen bool           // only that it has ended is known, since another process waits for it
}

func exitOf(w syscall.WaitStatus) Exit {
	if w.Signaled() {
		return Exit{Signal: w.Signal(), Core: w.CoreDump()}
	}
	return Exit{Code: w.ExitStatus()}
}

// OK reports whether the process ended with status 0.
func (e Exit) OK() bool { return e == Exit{} }

// Status returns the exit status that a shell would report: 128 plus the number of the signal if
// one killed it.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// String returns how the process has ended, as the rest of a sentence that begins with its name.
func (e Exit) String() string {
	switch {
	case e.Unseen:
		return "ended"
	case e.Signal != 0 && e.Core:
		return fmt.Sprintf("was killed by %s and dumped core", SignalName(e.Signal))
	case e.Signal != 0:
		return "was killed by " + SignalName(e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}

// SignalName returns the name of a signal, as SIGKILL, or its number if it has none.
func SignalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return fmt.Sprintf("signal %d", int(s))
}
