package calls

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Computing watches the threads of this process for a moment, and reports whether any of them
// computes: the caller sleeps meanwhile.
func Computing() bool {
	runtime.LockOSThread() // whose own state says nothing
	defer runtime.UnlockOSThread()
	const (
		moment = 30 * time.Millisecond
		little = time.Millisecond // more than a Go program that waits needs for itself
	)
	before, used := runnable(), processTime()
	time.Sleep(moment)
	if processTime()-used >= little {
		return true
	}
	for id, turns := range runnable() { // on a busy machine, one that has not had its turn
		if t, was := before[id]; was && t == turns {
			return true
		}
	}
	return false
}

// processTime is the time that all threads of this process have run.
func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0 // which Linux always has
	}
	return time.Duration(t.Nano())
}

// mostThreads bounds how many threads are looked at one by one.
const mostThreads = 256

// runnable returns the other threads that run or could, each with how many turns it has had.
func runnable() map[string]string {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return nil // then only the time counts
	}
	defer dir.Close()
	ids, _ := dir.Readdirnames(mostThreads) // on error there are none
	own := strconv.Itoa(unix.Gettid())
	list := make(map[string]string)
	for _, id := range ids {
		if id == own {
			continue
		}
		stat, err := os.ReadFile("/proc/self/task/" + id + "/stat")
		if err != nil {
			continue // it has ended
		}
		if _, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")); len(state) == 0 || state[0] != 'R' {
			continue
		}
		if turns, err := os.ReadFile("/proc/self/task/" + id + "/schedstat"); err == nil {
			if f := bytes.Fields(turns); len(f) == 3 {
				list[id] = string(f[2])
			}
		}
	}
	return list
}
