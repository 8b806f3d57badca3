package calls

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestComputing: a goroutine that computes is seen, and that nothing computes. Either may take
// several looks: on a busy machine a thread may have no turn during one.
func TestComputing(t *testing.T) {
	stop, over := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				over <- n
				return
			default:
				n++
			}
		}
	}()
	for !Computing() {
	}
	close(stop)
	<-over
	for Computing() {
	}
}

// TestThreadsThatCompute: what the kernel counted of a thread in a tenth of a second, on a machine
// with a free core and on a busy one.
func TestThreadsThatCompute(t *testing.T) {
	const ms = time.Millisecond
	first := thread{ran: 50 * ms, slept: 7, ousted: 3, started: 9}
	ready := func(x thread) thread { x.ready = true; return x }
	for name, c := range map[string]struct {
		before, after      thread
		computes, deciding bool
	}{
		"sleeps":                           {first, first, false, false},
		"computes":                         {ready(first), ready(thread{ran: 149 * ms, slept: 7, ousted: 4, started: 9}), true, false},
		"computes now and then":            {first, thread{ran: 62 * ms, slept: 17, ousted: 3, started: 9}, true, false},
		"is woken for a moment":            {first, thread{ran: 52 * ms, slept: 9, ousted: 3, started: 9}, false, false},
		"has no turn":                      {ready(first), ready(first), false, true},
		"has its first turn":               {ready(first), ready(thread{ran: 51 * ms, slept: 7, ousted: 3, started: 9}), false, true},
		"used its turn to the end":         {ready(first), ready(thread{ran: 53 * ms, slept: 7, ousted: 4, started: 9}), true, false},
		"had a turn and sleeps":            {ready(first), thread{ran: 51 * ms, slept: 8, ousted: 3, started: 9}, false, false},
		"was ousted by another, and slept": {ready(first), thread{ran: 51 * ms, slept: 8, ousted: 4, started: 9}, false, false},
		"was ousted as soon as it ran":     {ready(first), ready(thread{ran: 50*ms + 1000, slept: 7, ousted: 4, started: 9}), false, true},
		"another thread of this number":    {first, thread{ran: 60 * ms, slept: 1, ousted: 0, started: 10}, true, false},
		"another one, which sleeps":        {first, thread{ran: 1 * ms, slept: 1, ousted: 0, started: 10}, false, false},
	} {
		before, after := map[string]thread{"12": c.before}, map[string]thread{"12": c.after}
		if got := compute(before, after, 100*ms); got != c.computes {
			t.Errorf("%s: computes: %t", name, got)
		}
		if got := !c.computes && undecided(before, after); got != c.deciding {
			t.Errorf("%s: undecided: %t", name, got)
		}
	}
	several := make(map[string]thread)
	for _, id := range []string{"1", "2", "3", "4"} {
		several[id] = thread{ran: 3 * ms, slept: 4}
	}
	if !compute(nil, several, 100*ms) {
		t.Error("several that compute a little each do not count together")
	}
}

// TestReadThread: a thread of this process is there, and one that is none is not.
func TestReadThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := "/proc/self/task/" + strconv.Itoa(unix.Gettid())
	x, ok := readThread(own)
	for ok && x.ran == 0 { // until the kernel has counted that it ran, which it does in ticks at worst
		x, ok = readThread(own)
	}
	if !ok || !x.ready || x.started == 0 {
		t.Errorf("%+v, %t", x, ok)
	}
	if _, ok := readThread("/proc/self/task/0"); ok {
		t.Error("there is a thread 0")
	}
}
