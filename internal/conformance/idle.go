package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/host"
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
	plugins := []*host.Plugin{near, far}
	used := make([]time.Duration, len(plugins))
	for range idleIntervals {
		begun := time.Now()
		for i, p := range plugins {
			used[i] = -e.wanted(p.Status().PID)
		}
		time.Sleep(idleInterval)
		busy := false
		for i, p := range plugins {
			used[i] += e.wanted(p.Status().PID)
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
