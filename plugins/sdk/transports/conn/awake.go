package conn

import (
	"runtime"
	"sync/atomic"
)

// pollers is how many goroutines of this process poll, each of which holds one of the scheduler's processors.
var pollers atomic.Int32

// processors is how many there are, without the one that package sdk adds for a while.
var processors = int32(runtime.GOMAXPROCS(0))

func awake()  { pollers.Add(1) }
func asleep() { pollers.Add(-1) }

// giveWay lets other goroutines run, if those that poll hold all processors. Otherwise it does nothing: with a
// processor free, runtime.Gosched would have the kernel wake a thread that then runs this goroutine.
func giveWay() {
	if pollers.Load() >= processors {
		runtime.Gosched()
	}
}
