package nativelaunch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// sweepTime is how long sweep waits for killed processes to end.
const sweepTime = 5 * time.Second

// sweep kills the processes that were started with a variable that no other job has. A killed
// launcher may leave some behind.
func sweep(variable string, log hclog.Logger) {
	for end := time.Now().Add(sweepTime); ; time.Sleep(10 * time.Millisecond) {
		left := startedWith(variable)
		for _, pid := range left {
			log.Debug("a process that the launcher has left behind is killed", "pid", pid)
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		if len(left) == 0 || time.Now().After(end) {
			return
		}
	}
}

// startedWith lists the processes that were started with a variable, except this one. Zombies have
// no variables.
func startedWith(variable string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil { // it has ended, or is another user's
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err == nil && pid != os.Getpid() && has(b, variable) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func has(environ []byte, variable string) bool {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if string(v) == variable {
			return true
		}
	}
	return false
}
