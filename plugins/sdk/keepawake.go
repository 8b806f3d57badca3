package sdk

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// awakeLook is how often a process that passes bytes on looks how busy it is.
	awakeLook = 100 * time.Millisecond
	// awakeBusy is how often the threads of a busy process fall asleep between two
	// looks: it wakes for each small message and sleeps before the next.
	awakeBusy = 100
	// awakeNap is how long keeping awake sleeps at a time, and so the longest that the
	// collector waits for it where the runtime may not interrupt it by a signal.
	awakeNap = 10 * time.Millisecond
)

// keepAwake keeps Go's monitor thread from falling asleep between two messages.
//
// The monitor sleeps when no goroutine runs on any processor, and whoever runs again
// wakes it first. In a process that sleeps after each message that is a second thread
// to wake, for nothing, while the message waits: 13 us where a core has to be roused
// by another one, and a message passes two plugins. So while there is traffic one
// goroutine sleeps without telling the scheduler, whose processor then counts as one
// that works. It is a processor more than there were, so that none is missing, and
// the others are as they would be. It costs some 200 switches of tasks a second, and
// is not there when there is no traffic: the kernel's count of how often our threads
// fell asleep tells, whichever way the bytes take.
//
// GOMAXPROCS is ours from the first time on: the runtime does not follow a limit
// of the control group that is changed later.
type keepAwake struct {
	sleeps func() int64  // of all threads, since the beginning
	nap    func()        // sleeps for awakeNap at most, out of the scheduler's sight
	tick   time.Duration // between two looks

	mu    sync.Mutex
	links int
	stop  chan struct{} // closed after the last link
}

func newKeepAwake() *keepAwake { return &keepAwake{sleeps: sleepsOfThreads, nap: nap, tick: awakeLook} }

// enter says that bytes may pass through this process from now on.
func (v *keepAwake) enter() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.links++; v.links == 1 {
		v.stop = make(chan struct{})
		go v.watch(v.stop)
	}
}

// leave takes one enter back.
func (v *keepAwake) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.links--; v.links == 0 {
		close(v.stop)
	}
}

// watch looks whether there is traffic. A first link is taken to bring some.
func (v *keepAwake) watch(stop <-chan struct{}) {
	v.keep(stop)
	tick := time.NewTicker(v.tick)
	defer tick.Stop()
	for last := v.sleeps(); ; last = v.sleeps() {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if v.sleeps()-last >= awakeBusy {
			v.keep(stop)
		}
	}
}

// keep naps until there is little traffic.
func (v *keepAwake) keep(stop <-chan struct{}) {
	v.processors(+1)
	defer v.processors(-1)
	start, last := time.Now(), v.sleeps()
	for !isClosed(stop) {
		v.nap()
		runtime.Gosched() // whoever was put on our processor
		if time.Since(start) < v.tick {
			continue
		}
		now := v.sleeps()
		if now-last < awakeBusy {
			return
		}
		start, last = time.Now(), now
	}
}

// processors has the scheduler use more of them, or fewer again.
func (v *keepAwake) processors(more int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + more)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// nap is a system call that the scheduler takes for a computation. A signal ends it:
// the runtime sends one to whoever computes for long, or when the world is to stop.
func nap() {
	t := unix.NsecToTimespec(int64(awakeNap))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// sleepsOfThreads is how often threads of this process gave their core away because
// they had to wait.
func sleepsOfThreads() int64 {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return int64(use.Nvcsw) //nolint:unconvert // 32 bits on some machines
}
