package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idleCases are done for each data plane.
var idleCases = []Case{
	{ID: "P-LIFE-07", Name: "idle", Kind: Robust, run: idle,
		Rule: "while no bytes move on its links and nobody dials, the process sleeps"},
}

// An idle process passes if it runs, or waits for a processor, for less than a quarter of one of
// these intervals: in the others it may have had something to finish. A process that never sleeps
// does so in all of them.
const (
	idleInterval  = 500 * time.Millisecond
	idleIntervals = 8
	idleShare     = 4 // of the interval: a quarter
)

func idle(e *env) {
	near, far, ln := e.listening()
	e.connect(e.context(), far, ln)
	pids := []int{near.Status().PID, far.Status().PID}
	used := make([]time.Duration, len(pids))
	for range idleIntervals {
		begun := time.Now()
		for i, pid := range pids {
			used[i] = -e.wanted(pid)
		}
		time.Sleep(idleInterval)
		busy := false
		for i, pid := range pids {
			used[i] += e.wanted(pid)
			busy = busy || used[i] > time.Since(begun)/idleShare
		}
		if !busy {
			return
		}
	}
	e.Fatalf("nothing moves on the only link; within the last of %d intervals of %v, the process that accepts wanted the processor for %v, the one that dials for %v",
		idleIntervals, idleInterval, used[0], used[1])
}

// wanted is for how long the threads of a process have run or waited for a processor. Unlike the
// time for which they ran, it does not depend on what else the machine does.
func (e *env) wanted(pid int) (sum time.Duration) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	e.must(err)
	if len(files) == 0 {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/status", pid)); err != nil {
			e.Fatalf("nothing moves on the only link, and the plugin's process has ended")
		}
		e.Skipf("this kernel does not say how long threads wait for a processor (CONFIG_SCHED_INFO)")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		fields := strings.Fields(string(text)) // nanoseconds running, nanoseconds waiting, number of runs
		if err != nil || len(fields) < 2 {
			continue // the thread has ended
		}
		for _, field := range fields[:2] {
			n, err := strconv.ParseInt(field, 10, 64)
			e.must(err)
			sum += time.Duration(n)
		}
	}
	return sum
}
