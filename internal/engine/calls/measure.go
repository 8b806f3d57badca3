package calls

import (
	"sync"
	"sync/atomic"
	"time"
)

// Number is the number of a call of MPI that is measured.
type Number uint16

// String returns the call's name in C.
func (n Number) String() string { return names[n].name }

// Class returns the class of the call, one of Classes, by which figures of calls are added up.
func (n Number) Class() string { return names[n].class }

// Arguments of End for a call that has no other proc, or no tag.
const (
	NoPeer = -1 << 31
	NoTag  = -1 << 31
)

// MaxNumbers is the number of calls that Memory has room for.
const MaxNumbers = 256

// Memory contains the counts of calls: this package's own, or that of C code, which counts the
// calls of C programs (cmd/libmpi/measure.c).
type Memory struct {
	On    atomic.Uint32 // what C code does: CountBit, TraceBit, MergeBit
	Ticks uint32        // 1: times are those of the CPU's counter, see clock

	// Brief, Gap and Longest determine which calls are merged, in units of the clock: see merge.go.
	Brief, Gap, Longest uint64
	_                   [4]uint64

	Sums   [MaxNumbers]Sum
	Traced Traced
	Burst  Burst
}

// The bits of On.
const (
	CountBit = 1
	TraceBit = 2 // each call is recorded, for a Timeline
	MergeBit = 4 // with TraceBit: short calls are merged
)

// Sum contains the totals of all calls of a name.
type Sum struct {
	Calls atomic.Uint64
	Time  atomic.Uint64 // by the clock
}

var (
	mem     *Memory // nil: C code does not count, and counting was never enabled
	byC     bool
	on      atomic.Uint32            // the same for functions of core/mpi
	context func(comm uint64) uint64 // returns the context ID plus 1 of C's communicator; 0: it is gone
)

// CountInC makes C code count, in its memory, and not the functions of core/mpi that C code calls.
// contextOf returns one more than the context ID of a communicator that C code identifies by comm,
// or 0 if there is none. CountInC is called before anything is counted.
func CountInC(m *Memory, contextOf func(comm uint64) uint64) { mem, byC, context = m, true, contextOf }

// Enable begins to count. Before it no call is counted, and no clock is read.
func Enable() { enable(CountBit) }

// enabling guards enable: procs of tests share a process.
var enabling sync.Mutex

func enable(what uint32) {
	enabling.Lock()
	defer enabling.Unlock()
	if mem == nil {
		mem = new(Memory)
	}
	startClock()
	if what&MergeBit != 0 && mem.Brief == 0 {
		mem.bound(roughScale())
	}
	if byC {
		mem.On.Or(what)
	} else {
		on.Or(what)
	}
}

// Begin returns the time for End, or 0 if calls are not measured.
func Begin() int64 {
	if on.Load() == 0 {
		return 0
	}
	return now()
}

// End measures a call that has begun at a time that Begin returned. The other arguments describe
// the call: the other rank, the tag, bytes and one more than the context ID of the communicator, or
// NoPeer, NoTag, -1 and 0.
func End(n Number, begun int64, peer, tag int, size int64, comm uint64) {
	end(begun, about{uint32(n), int32(peer), int32(tag), NoPeer, size, comm}, false)
}

// EndExchange is End for a call that sends and receives, from source.
func EndExchange(n Number, begun int64, peer, tag, source int, size int64, comm uint64) {
	end(begun, about{uint32(n), int32(peer), int32(tag), int32(source), size, comm}, false)
}

func end(begun int64, w about, owner bool) {
	ended, what := now(), on.Load()
	if begun == late && what != TraceBit|MergeBit { // measuring was changed meanwhile
		begun = ended
	}
	if what&CountBit != 0 {
		mem.Sums[w.call].add(ended - begun)
	}
	switch {
	case what&TraceBit == 0:
	case what&MergeBit != 0:
		mem.called(w, begun, ended, owner)
	default:
		var e Event
		e.set(w, 1)
		mem.Traced.put([]*Event{&e}, begun, ended, 0)
	}
}

func (s *Sum) add(d int64) {
	s.Calls.Add(1)
	s.Time.Add(uint64(d))
}

// Add counts a call that has taken d. Enable must have been called.
func Add(n Number, d time.Duration) { mem.Sums[n].add(int64(float64(d) / scale())) }

// Count contains the totals of all calls of a name.
type Count struct {
	Number
	Calls uint64
	Time  time.Duration // total, including calls of other threads at the same time
}

// Counts returns the calls that were counted, without names that were not called.
func Counts() (list []Count) {
	if mem == nil {
		return nil
	}
	unit := scale()
	for n := range count {
		if s := &mem.Sums[n]; s.Calls.Load() > 0 {
			list = append(list, Count{n, s.Calls.Load(), time.Duration(float64(s.Time.Load()) * unit)})
		}
	}
	return list
}
