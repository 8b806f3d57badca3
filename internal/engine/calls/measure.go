package calls

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Number is the number of a call of MPI that is measured.
type Number uint16

// String is the call's name in C.
func (n Number) String() string { return names[n].name }

// Class is one of Classes.
func (n Number) Class() string { return names[n].class }

// What End gets where a call has no other proc, or no tag.
const (
	Nobody = -1 << 31
	NoTag  = -1 << 31
)

// Most is how many calls Memory has room for.
const Most = 256

// Memory is where calls are counted: this package's own, or that of C code, which counts the calls of
// C programs (cmd/libmpi/measure.h declares it).
type Memory struct {
	On     atomic.Uint32 // what C code does: counts, or withTrace too
	_      uint32
	Sums   [Most]Sum
	Traced Traced
}

// The values of On.
const (
	counts    = 1
	withTrace = 3 // and notes each call, for a Timeline
)

// Sum is what is known of all calls of a name.
type Sum struct {
	Calls atomic.Uint64
	Time  atomic.Uint64 // in ns
}

var (
	own Memory
	mem = &own
	on  atomic.Bool // functions of core/mpi count

	tracing atomic.Bool              // and note each call
	context func(comm uint64) uint64 // of a communicator as C code notes it, with 1 added; 0: it is gone
)

// UseC has C code count, in its memory, and not the functions of core/mpi that C code calls. context
// returns one more than the context ID of a communicator that C code calls so; 0: there is none. It is
// called before anything is counted.
func UseC(m *Memory, contextOf func(comm uint64) uint64) { mem, context = m, contextOf }

// Enable begins to count. Nothing is counted before, and no clock is read.
func Enable() { enable(counts) }

func enable(what uint32) {
	if mem != &own {
		mem.On.Or(what)
		return
	}
	if what == withTrace {
		tracing.Store(true)
	}
	on.Store(true)
}

// now is the time by the clock of whoever counts.
func now() int64 {
	if mem == &own {
		return clock()
	}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0 // which Linux always has
	}
	return t.Nano()
}

var epoch = time.Now()

// Begin returns the time for End; 0 if calls are not counted.
func Begin() int64 {
	if !on.Load() {
		return 0
	}
	return clock()
}

func clock() int64 { return int64(time.Since(epoch)) + 1 }

// End counts a call that has begun at a time that Begin returned. The rest says what the call is
// about: the other rank, the tag, bytes and one more than the context ID of the communicator, or Nobody,
// NoTag, -1 and 0.
func End(n Number, begun int64, peer, tag int, size int64, comm uint64) {
	ended := clock()
	Add(n, time.Duration(ended-begun))
	if tracing.Load() {
		mem.Traced.add(n, begun, ended, peer, tag, size, comm)
	}
}

// Add counts a call that has taken d.
func Add(n Number, d time.Duration) {
	mem.Sums[n].Calls.Add(1)
	mem.Sums[n].Time.Add(uint64(d))
}

// Count is what is known of all calls of a name.
type Count struct {
	Number
	Calls uint64
	Time  time.Duration // in all, which includes that of other threads' calls at the same time
}

// Counts returns what was counted, without calls that were not called.
func Counts() (list []Count) {
	for n := range count {
		if s := &mem.Sums[n]; s.Calls.Load() > 0 {
			list = append(list, Count{n, s.Calls.Load(), time.Duration(s.Time.Load())})
		}
	}
	return list
}
