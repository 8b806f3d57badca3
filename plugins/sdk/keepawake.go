package sdk

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// awakeLook is how often a process that passes bytes on measures how busy it is.
	awakeLook = 100 * time.Millisecond
	// awakeBusy is how often the threads of a busy process fall asleep between two
	// measurements: such a process wakes for each small message and sleeps before the next.
	awakeBusy = 100
	// awakeNap is how long keepAwake sleeps at a time, and so the longest that the garbage
	// collector waits for it where the runtime may not interrupt it by a signal.
	awakeNap = 10 * time.Millisecond
)

// keepAwake keeps Go's monitor thread from falling asleep between two messages; see
// docs/decisions/0024-a-plugin-keeps-the-monitor-awake.md.
//
// The monitor sleeps when no goroutine runs on any processor, and the first thread to run
// again wakes it. In a process that sleeps after each message that wakes a second thread
// for nothing, while the message waits: 13 us if another core has to be woken, and a
// message passes two plugins. So while there is traffic one goroutine sleeps in a way that
// the scheduler does not see, and its processor counts as working. GOMAXPROCS is raised by
// one for it, so that the other goroutines have as many processors as before. It costs some
// 200 task switches a second. Without traffic it does not run: the kernel's count of how
// often our threads fell asleep shows whether there is traffic, for every data plane.
//
// From the first time on the runtime does not adapt GOMAXPROCS to a changed limit of the
// control group.
type keepAwake struct {
	sleeps func() int64  // of all threads, since the process began
	nap    func()        // sleeps for at most awakeNap without telling the scheduler
	tick   time.Duration // between two measurements

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

// leave cancels one enter.
func (v *keepAwake) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.links--; v.links == 0 {
		close(v.stop)
	}
}

// watch measures whether there is traffic. The first link counts as traffic.
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

// keep sleeps again and again until there is little traffic.
func (v *keepAwake) keep(stop <-chan struct{}) {
	v.processors(+1)
	defer v.processors(-1)
	start, last := time.Now(), v.sleeps()
	for !isClosed(stop) {
		v.nap()
		runtime.Gosched() // lets goroutines run that were queued on our processor
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

// processors raises GOMAXPROCS by more, which may be negative.
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

// nap is a system call that the scheduler takes for a computation. A signal ends it: the
// runtime sends one to a goroutine that computes for long, or before it stops the world.
func nap() {
	t := unix.NsecToTimespec(int64(awakeNap))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// sleepsOfThreads is how often threads of this process have given up their core because
// they had to wait.
func sleepsOfThreads() int64 {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return int64(use.Nvcsw) //nolint:unconvert // 32 bits on some machines
}
