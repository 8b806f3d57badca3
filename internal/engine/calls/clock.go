package calls

import (
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockSource says what the kernel reads the machine's clock from.
const clockSource = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// counters are the kernel's names of the counters that ticks reads.
var counters = map[string]string{"amd64": "tsc", "arm64": "arch_sys_counter"}

// clock is what times of calls are read from. A call of the machine's clock takes as long as half of a
// short message; the CPU's counter is read in a third of that. It is used where the kernel, too, takes the
// time from it: then it runs at one rate, has the same value on all cores, and programs may read it.
// Elsewhere times are in nanoseconds.
var clock struct {
	runs  bool
	ticks bool
	began instant
}

// instant is a moment by both clocks.
type instant struct {
	ticks int64 // as now returns it
	at    time.Time
}

// startClock finds out what times are read from. Nobody may read any before.
func startClock() {
	if clock.runs {
		return
	}
	if name, known := counters[runtime.GOARCH]; known {
		b, err := os.ReadFile(clockSource)
		clock.ticks = err == nil && strings.TrimSpace(string(b)) == name
	}
	if clock.ticks {
		mem.Ticks = 1
	}
	clock.began, clock.runs = thisInstant(), true
}

// now is the time, for functions of core/mpi as for C code.
func now() int64 {
	if clock.ticks {
		return ticks()
	}
	if !byC {
		return int64(time.Since(epoch)) + 1
	}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0 // which Linux always has
	}
	return t.Nano()
}

var epoch = time.Now()

// thisInstant reads both clocks, again if something came between.
func thisInstant() (best instant) {
	const tries = 8
	shortest := int64(-1)
	for range tries {
		before := now()
		at := time.Now()
		if took := now() - before; shortest < 0 || took < shortest {
			shortest, best = took, instant{before + took/2, at}
		}
	}
	return best
}

// rateUntil is how many nanoseconds a tick took between two moments.
func (i instant) rateUntil(later instant) float64 {
	if later.ticks <= i.ticks || !later.at.After(i.at) {
		return 1
	}
	return float64(later.at.Sub(i.at)) / float64(later.ticks-i.ticks)
}

// scale is how many nanoseconds a unit of the clock is. It is the more precise the longer the clock runs.
func scale() float64 {
	if !clock.ticks {
		return 1
	}
	return clock.began.rateUntil(thisInstant())
}

// roughScale is scale when the clock has just begun to run: for that it waits until it is good to a percent.
func roughScale() float64 {
	const enough = 100 * time.Microsecond
	for clock.ticks && time.Since(clock.began.at) < enough {
		runtime.Gosched()
	}
	return scale()
}

// Elapsed is how long d units of the clock are.
func Elapsed(d uint64) time.Duration {
	if d == 0 {
		return 0
	}
	return time.Duration(float64(d) * scale())
}
