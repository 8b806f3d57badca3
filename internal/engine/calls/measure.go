package calls

import (
	"sync/atomic"
	"time"
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
	On   atomic.Uint32 // 1: C code counts
	_    uint32
	Sums [Most]Sum
}

// Sum is what is known of all calls of a name.
type Sum struct {
	Calls atomic.Uint64
	Time  atomic.Uint64 // in ns
}

var (
	own Memory
	mem = &own
	on  atomic.Bool // functions of core/mpi count
)

// UseC has C code count, in its memory, and not the functions of core/mpi that C code calls. It is
// called before Enable.
func UseC(m *Memory) { mem = m }

// Enable begins to count. Nothing is counted before, and no clock is read.
func Enable() {
	if mem != &own {
		mem.On.Store(1)
		return
	}
	on.Store(true)
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
// about: the other rank, the tag, bytes and the context ID of the communicator, or Nobody, NoTag, -1
// and 0.
func End(n Number, begun int64, peer, tag int, size int64, comm uint64) {
	Add(n, time.Duration(clock()-begun))
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
