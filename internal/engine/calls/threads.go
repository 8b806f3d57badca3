package calls

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// moment is how long threads are watched.
	moment = 60 * time.Millisecond
	// patience is how long to wait for a runnable thread to have a turn, on a machine that is busy.
	// The node waits for the answer for half a second.
	patience = 300 * time.Millisecond
	// busyPart is the part of the moment that computing threads use at least, if there is a core
	// for them. The runtime's own threads, which the question wakes, use a few percent.
	busyPart = 10
	// longTurn is longer than the turn of a thread that is woken only for a moment, and shorter
	// than the kernel's shortest time slice.
	longTurn = 500 * time.Microsecond
)

// Computing watches the threads of this process for a moment, and reports whether any of them
// computes. On a machine with too few cores that takes several. The caller sleeps meanwhile.
func Computing() bool {
	runtime.LockOSThread() // the state of this thread is ignored
	defer runtime.UnlockOSThread()
	began := time.Now()
	before, since, twice := threads(), began, false
	for {
		time.Sleep(moment)
		after, now := threads(), time.Now()
		switch {
		case compute(before, after, now.Sub(since)):
			if twice {
				return true
			}
			// Threads that this check has woken may have taken long: they have ended by the next
			// check.
			before, since, twice = after, now, true
		case !undecided(before, after):
			return false
		case now.Sub(began) > patience:
			return true // as far as can be determined
		}
	}
}

// thread is what the kernel counts for a thread.
type thread struct {
	ran     time.Duration
	ready   bool   // it runs, or is runnable
	slept   uint64 // voluntary context switches
	ousted  uint64 // involuntary context switches
	started uint64 // start time, since the kernel reuses thread IDs
}

// compute reports whether threads have computed between two looks: together they have used a good
// part of the elapsed time, or one has run for longTurn or more and lost its core only when it was
// preempted.
func compute(before, after map[string]thread, elapsed time.Duration) bool {
	var all time.Duration
	for id, x := range after {
		was := x.at(before[id])
		all += x.ran - was.ran
		if x.slept == was.slept && x.ousted > was.ousted && x.ran-was.ran >= longTurn {
			return true
		}
	}
	return all >= elapsed/busyPart
}

// undecided reports whether a thread was runnable at both looks and has not slept in between: it
// has had no turn, or only a short one.
func undecided(before, after map[string]thread) bool {
	for id, x := range after {
		was := x.at(before[id])
		if was.ready && x.ready && x.slept == was.slept {
			return true
		}
	}
	return false
}

// at returns what x was at the first look, which is the zero value if x has started since.
func (x thread) at(first thread) thread {
	if first.started != x.started {
		return thread{}
	}
	return first
}

const mostThreads = 256

func threads() map[string]thread {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	ids, _ := dir.Readdirnames(mostThreads) // on error there are none
	own := strconv.Itoa(unix.Gettid())
	list := make(map[string]thread, len(ids))
	for _, id := range ids {
		if id == own {
			continue
		}
		if x, ok := readThread("/proc/self/task/" + id); ok {
			list[id] = x
		}
	}
	return list
}

// Places in the kernel's /proc/PID/stat, from the state on, which follows the name (proc(5)).
const (
	statState = 0
	statUser  = 11
	statStart = 19
)

// tick is the unit of times in /proc, which is the same on all Linux systems as programs see them.
const tick = 10 * time.Millisecond

// readThread returns false if the thread has ended.
func readThread(dir string) (x thread, ok bool) {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return x, false
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) <= statStart {
		return x, false
	}
	x.ready, x.started = f[statState][0] == 'R', number(f[statStart])
	x.ran = time.Duration(number(f[statUser])+number(f[statUser+1])) * tick
	if text, err := os.ReadFile(dir + "/schedstat"); err == nil { // in nanoseconds, if the kernel has it
		if f := bytes.Fields(text); len(f) == 3 {
			x.ran = time.Duration(number(f[0]))
		}
	}
	text, err := os.ReadFile(dir + "/status")
	x.slept, x.ousted = counter(text, "\nvoluntary_ctxt_switches:"), counter(text, "\nnonvoluntary_ctxt_switches:")
	return x, err == nil
}

// counter returns the number that follows name on a line.
func counter(text []byte, name string) uint64 {
	_, rest, _ := bytes.Cut(text, []byte(name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return number(bytes.TrimSpace(line))
}

// number parses b; it returns 0 on errors, as the kernel writes nothing but numbers.
func number(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b), 10, 63)
	return n
}
