package calls

import (
	"runtime"
	"sync/atomic"
	"time"
)

// An entry of a timeline costs about 0.3 us, most of it when it is written, so calls of less than
// about 10 us have no entries of their own: calls shorter than brief that follow each other within
// gap are merged into a burst, of at most longest. A call that is not short is an entry of its own,
// with its original times.
const (
	brief   = 25 * time.Microsecond
	gap     = 10 * time.Microsecond
	longest = 200 * time.Microsecond
)

// MaxKinds is the maximum number of different calls in a burst.
const MaxKinds = 8

// Burst contains short calls that follow each other closely. The thread that has set lock may use
// all fields; open and stalled may be used without it. C code accesses a Burst like this file
// (cmd/libmpi/measure.c).
type Burst struct {
	lock       atomic.Uint32
	kinds      uint32
	open       atomic.Uint64 // not 0: the call that is pending is not over
	stalled    atomic.Uint64 // of C: when a call that sends, and has not read the clock, began to wait; 0: it did not wait
	from, last int64
	_          [3]uint64

	// pending is a call that receives, with the time when it began; 0: there is none. It is
	// recorded while its message is under way. When the message is there, another proc may wait for
	// the program's next step, so only the end of the call is recorded then; the call is merged
	// before anything else is.
	pending Event
	calls   [MaxKinds]Event
	run     Run
}

// looksAtLock is how often a thread tries a lock before it yields its core.
const looksAtLock = 64

// Lock waits until no other thread has the lock. It is held for some instructions only, so who
// waits polls.
func (b *Burst) Lock() {
	for i := 1; b.lock.Swap(1) != 0; i++ {
		if i%looksAtLock == 0 {
			runtime.Gosched()
		}
	}
}

// Unlock gives the lock back; what was written under it is seen by the next to have it.
func (b *Burst) Unlock() { releaseLock(&b.lock) }

// bound sets the limits for short calls; unit is the nanoseconds of a unit of the clock.
func (m *Memory) bound(unit float64) {
	m.Brief, m.Gap, m.Longest = uint64(float64(brief)/unit), uint64(float64(gap)/unit), uint64(float64(longest)/unit)
}

// called notes a call that has ended. begun is late if it was over at once. owner says that the
// caller has the run.
func (m *Memory) called(w about, begun, ended int64, owner bool) {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	if b.pending.Begun == begun && b.pending.Call == w.call { // the pending call has waited
		b.pending.Begun = 0
		b.open.Store(0)
	}
	m.settle()
	if begun == late {
		begun = ended
	}
	m.settleRun(begun)
	if ended-begun < int64(m.Brief) {
		m.merge(w, 1, begun, ended)
		if owner {
			b.run.renew(&w, m.Brief)
		}
		return
	}
	m.closeBurst()
	b.run.ends()
	if owner {
		b.run.left = 0
	}
	var e Event
	e.set(w, 1)
	m.Traced.put([]*Event{&e}, begun, ended, 0)
}

// closeBurst passes on what was merged. The burst is locked, here and in what follows.
func (m *Memory) closeBurst() {
	b := &m.Burst
	var list [MaxKinds]*Event
	for i := range b.kinds {
		list[i] = &b.calls[i]
	}
	if b.kinds > 0 {
		m.Traced.put(list[:b.kinds], b.from, b.last, 0)
	}
	b.kinds = 0
}

// merge adds short calls of a name to the burst, or begins another.
func (m *Memory) merge(w about, times uint32, begun, ended int64) {
	b := &m.Burst
	if begun-b.last > int64(m.Gap) {
		m.closeBurst()
		b.run.ends()
	} else if b.kinds > 0 && ended-b.from > int64(m.Longest) {
		m.closeBurst()
	}
	b.run.follows(times)
	k := uint32(0)
	for k < b.kinds && b.calls[k].Call != w.call {
		k++
	}
	if k == MaxKinds {
		m.closeBurst()
		k = 0
	}
	if b.kinds == 0 {
		b.from = max(begun, b.last)
		b.last = b.from
	}
	b.last = max(b.last, ended)
	s := &b.calls[k]
	if k == b.kinds {
		s.set(w, times)
		b.kinds++
		return
	}
	s.Times += times
	if w.size > 0 {
		s.Size = max(s.Size, 0) + w.size
	}
	if s.Peer != w.peer {
		s.Peer = NoPeer
	}
	if s.Tag != w.tag {
		s.Tag = NoTag
	}
	if s.Source != w.source {
		s.Source = NoPeer
	}
	if s.Comm != w.comm {
		s.Comm = 0
	}
}

// settle merges the call that was announced, if it is over.
func (m *Memory) settle() {
	p := &m.Burst.pending
	if p.Begun == 0 || m.Burst.open.Load() != 0 {
		return
	}
	m.merge(p.about(), 1, p.Begun, p.Begun)
	p.Begun = 0
}

// pends announces a call that receives. It returns false if another thread's call is announced
// already: then the call is measured like others.
func (m *Memory) pends(w about, begun int64, owner bool) bool {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	m.settle()
	m.settleRun(begun)
	if b.pending.Begun != 0 {
		return false
	}
	b.pending.set(w, 1)
	b.pending.Begun = begun
	b.open.Store(1)
	if owner {
		b.run.renew(&w, m.Brief)
	}
	return true
}

// idle passes on a burst that nothing has been added to for a while, so that it does not wait to be
// written for as long as the program computes; all is set at the end.
func (m *Memory) idle(now int64, all bool) {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	if all {
		b.open.Store(0)
	}
	m.settle()
	if all || now-b.last > int64(m.Gap) {
		m.settleRun(now)
		m.closeBurst()
	}
}

// late is what BeginUntimed returns instead of a time for a call that may be over at once: the clock
// has not been read.
const late = -1

// IsUntimed reports whether a call for which BeginUntimed has returned begun may be counted in a run.
func IsUntimed(begun int64) bool { return begun == late }

// BeginUntimed is Begin for a call that mostly ends at once: while a message leaves another proc may
// wait for it, so the clock is read only afterwards. The compiler inlines it, which TestInlined
// checks: otherwise a function call would come before each message.
func BeginUntimed() int64 {
	switch on.Load() {
	case 0:
		return 0
	case TraceBit | MergeBit:
		return late
	}
	return now()
}

// SinceNow returns the begin time of a call that is not over at once, from the result of BeginUntimed.
func SinceNow(begun int64) int64 {
	if begun == late {
		return now()
	}
	return begun
}

// EndSend is End for a call of MPI_Send that was not counted. If owner is set, the caller owns the
// run.
func EndSend(owner bool, begun int64, peer, tag int, size int64, comm uint64) {
	end(begun, about{uint32(Send), int32(peer), int32(tag), NoPeer, size, comm}, owner)
}

// MaxLooks is the number of times that a call that receives may look for its message, with a short
// pause after each, before it counts as one that waits.
const MaxLooks = 64

// MeasuredRecv is a measured call of MPI_Recv; the zero value is a call that is not measured.
type MeasuredRecv struct {
	begun int64
	state receiptState
	owner bool
}

type receiptState uint8

const (
	unmeasured receiptState = iota
	counted                 // without reading the clock: no End is needed
	pending                 // recorded as pending: its end must be recorded
	measured                // the clock is read at begin and end
)

// Counted records that the run has counted the call.
func (r *MeasuredRecv) Counted() { r.state, r.owner = counted, true }

// Begin begins a call for which BeginUntimed has returned begun, and that was not counted. If owner is
// set, the caller owns the run.
func (r *MeasuredRecv) Begin(owner bool, begun int64, peer, tag int, size int64, comm uint64) {
	*r = MeasuredRecv{begun, measured, owner}
	if begun != late {
		return
	}
	r.begun = now()
	if mem.pends(about{uint32(Recv), int32(peer), int32(tag), NoPeer, size, comm}, r.begun, owner) {
		r.state = pending
	}
}

// Waits records that the message has not come within MaxLooks.
func (r *MeasuredRecv) Waits() {
	if r.state == counted {
		r.begun = now()
		mem.uncount(r.begun)
	}
	if r.state != unmeasured {
		r.state = measured
	}
}

// TryEnd ends the call, unless it returns false: then End must record the rest. If the message came
// soon another proc may wait for the program's next step, so TryEnd is inlined as BeginUntimed is.
func (r *MeasuredRecv) TryEnd() bool {
	if r.state == pending {
		releaseCall(&mem.Burst.open)
	}
	return r.state != measured
}

// End ends a call for which TryEnd has returned false. size is in bytes.
func (r *MeasuredRecv) End(peer, tag int, size int64, comm uint64) {
	end(r.begun, about{uint32(Recv), int32(peer), int32(tag), NoPeer, size, comm}, r.owner)
}
