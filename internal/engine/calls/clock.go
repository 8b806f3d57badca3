package calls

import (
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Files in which the kernel names the machine's clock source and the CPU's features.
const (
	clockSource = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	cpuInfo     = "/proc/cpuinfo"
)

// counters are the kernel's names of the counters that ticks reads.
var counters = map[string]string{"amd64": "tsc", "arm64": "arch_sys_counter"}

// clock is what times of calls are read from. A call of the machine's clock takes as long as half
// of a short message; the CPU's counter is read in a third of that. It is used where it runs at one
// rate, has the same value on all cores, and programs may read it: where the kernel, too, takes the
// time from it, and in a virtual machine whose clock the host derives from it. Elsewhere times are
// in nanoseconds.
var clock struct {
	runs  bool
	ticks bool

	sync.Mutex // guards the rest once the clock runs
	began      instant
	rate       float64 // since began, once it is known
}

// longAgo is how long the clock must have run for the rate of the counter to be known to some
// millionths.
const longAgo = 100 * time.Millisecond

// steady reports whether the counter can serve as a clock. source and cpus are the contents of the
// files above.
func steady(counter, source, cpus string) bool {
	switch source = strings.TrimSpace(source); {
	case source == counter:
		return true
	case counter != "tsc" || source != "kvm-clock":
		return false
	}
	for line := range strings.Lines(cpus) {
		if name, flags, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "flags" {
			has := strings.Fields(flags)
			return slices.Contains(has, "constant_tsc") && slices.Contains(has, "nonstop_tsc")
		}
	}
	return false
}

// instant is a moment by both clocks: that of now, and that of package time.
type instant struct {
	ticks int64 // as now returns it
	at    time.Time
}

// startClock decides where times are read from. No time may be read before.
func startClock() {
	if clock.runs {
		return
	}
	if name, known := counters[runtime.GOARCH]; known {
		source, _ := os.ReadFile(clockSource) // where a file cannot be read, the counter is not used
		cpus, _ := os.ReadFile(cpuInfo)
		clock.ticks = steady(name, string(source), string(cpus))
	}
	if clock.ticks {
		mem.Ticks = 1
	}
	clock.began, clock.runs = thisInstant(), true
}

// now is the time by the clock, for functions of core/mpi as well as for C code.
func now() int64 {
	if clock.ticks {
		return ticks()
	}
	if !byC {
		return int64(time.Since(epoch)) + 1
	}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0 // Linux always has this clock
	}
	return t.Nano()
}

var epoch = time.Now()

// thisInstant reads both clocks several times, and returns the pair that was read in the shortest
// time.
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

// scale is how many nanoseconds a unit of the clock takes. The longer the clock runs, the more
// precise it is.
func scale() float64 {
	if !clock.ticks {
		return 1
	}
	clock.Lock()
	defer clock.Unlock()
	return scaleAt(thisInstant())
}

// scaleAt is scale at a moment. The clock is locked. After the counter has jumped, as when a
// virtual machine was moved to another host, its rate is measured from then on, and meanwhile the
// rate before the jump is used.
func scaleAt(i instant) float64 {
	const most = 0.01
	r := clock.began.rateUntil(i)
	if i.at.Sub(clock.began.at) < longAgo {
		if clock.rate != 0 {
			return clock.rate
		}
		return r
	}
	if clock.rate != 0 && math.Abs(r-clock.rate) > most*clock.rate {
		clock.began = i
		return clock.rate
	}
	clock.rate = r
	return r
}

// roughScale is scale just after startClock: it waits until the rate is good to a percent.
func roughScale() float64 {
	const enough = 100 * time.Microsecond
	for clock.ticks && time.Since(clock.began.at) < enough {
		runtime.Gosched()
	}
	return scale()
}

// Elapsed returns the duration of d units of the clock.
func Elapsed(d uint64) time.Duration {
	if d == 0 {
		return 0
	}
	return time.Duration(float64(d) * scale())
}
