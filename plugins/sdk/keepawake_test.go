package sdk

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// traffic is a process whose threads fall asleep that often between two looks.
type traffic struct {
	keepAwake
	each  atomic.Int64
	asked atomic.Int64
	naps  atomic.Int64
}

// pass advances the bubble's clock by d.
func pass(d time.Duration) { <-time.After(d) }

func newTraffic(each int64) *traffic {
	x := &traffic{}
	x.each.Store(each)
	x.tick = awakeLook
	x.sleeps = func() int64 { return x.asked.Add(x.each.Load()) }
	x.nap = func() { x.naps.Add(1); pass(awakeNap) }
	return x
}

func TestKeepAwakeIsForTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.GOMAXPROCS(0)
		x := newTraffic(awakeBusy - 1)
		x.enter()
		pass(awakeLook / 2)
		if x.naps.Load() == 0 || runtime.GOMAXPROCS(0) != before+1 {
			t.Errorf("at first: %d naps, %d processors of %d", x.naps.Load(), runtime.GOMAXPROCS(0), before)
		}
		pass(awakeLook)
		first := x.naps.Load()
		pass(5 * awakeLook)
		if n := x.naps.Load() - first; n != 0 || runtime.GOMAXPROCS(0) != before {
			t.Errorf("an idle process: %d naps, %d processors of %d", n, runtime.GOMAXPROCS(0), before)
		}
		x.each.Store(awakeBusy)
		pass(5 * awakeLook)
		if x.naps.Load() == first || runtime.GOMAXPROCS(0) != before+1 {
			t.Errorf("a busy process: %d naps, %d processors of %d", x.naps.Load()-first, runtime.GOMAXPROCS(0), before)
		}
		x.each.Store(0)
		pass(3 * awakeLook)
		done := x.naps.Load()
		pass(5 * awakeLook)
		if x.naps.Load() != done || runtime.GOMAXPROCS(0) != before {
			t.Errorf("idle again: %d further naps, %d processors of %d", x.naps.Load()-done, runtime.GOMAXPROCS(0), before)
		}
		x.leave()
	})
}

// keepAwake ends with the last link, not with the first that goes; the next link begins
// another.
func TestKeepAwakeEndsWithTheLastLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.GOMAXPROCS(0)
		x := newTraffic(awakeBusy)
		for range 2 {
			x.enter()
			x.enter()
			pass(2 * awakeLook)
			x.leave()
			pass(2 * awakeLook)
			if runtime.GOMAXPROCS(0) != before+1 {
				t.Error("it ended with a link that was not the last one")
			}
			x.leave()
			pass(2 * awakeNap)
			if synctest.Wait(); runtime.GOMAXPROCS(0) != before {
				t.Error("it outlives its links")
			}
		}
	})
}

// The garbage collector can stop the world while somebody naps.
func TestNapsYieldToTheCollector(t *testing.T) {
	v := newKeepAwake()
	v.tick = time.Hour // it does not end by itself
	var naps atomic.Int64
	begun := make(chan struct{})
	v.nap = func() {
		if naps.Add(1) == 1 {
			close(begun)
		}
		nap()
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		v.keep(stop)
	}()
	<-begun
	for range 3 {
		runtime.GC()
	}
	close(stop)
	<-ended
	if naps.Load() == 0 {
		t.Error("nobody napped")
	}
}

func TestSleepsAreCounted(t *testing.T) {
	before := sleepsOfThreads()
	c, back := make(chan int), make(chan int)
	go func() {
		runtime.LockOSThread() // so that each answer is another thread's
		for n := range c {
			back <- n
		}
		close(back)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range 100 {
		c <- i
		<-back
	}
	close(c)
	<-back
	if n := sleepsOfThreads() - before; n < 50 {
		t.Errorf("100 exchanges of two threads count %d", n)
	}
}
