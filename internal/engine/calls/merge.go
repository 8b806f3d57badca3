package calls

import (
	"runtime"
	"sync/atomic"
	"time"
)

// An entry of a timeline costs about 0.3 us, most of it when it is written, so there is none for less than
// about 10 us: calls shorter than brief that follow each other within gap are merged into a burst, of at
// most longest. A call that is not short is an entry of its own, with its times as they were.
const (
	brief   = 25 * time.Microsecond
	gap     = 10 * time.Microsecond
	longest = 200 * time.Microsecond
)

// Kinds is how many different calls a burst has at most.
const Kinds = 8

// Burst are short calls that follow each other closely. Whoever has set lock may use the rest, but for open
// and stalled. C code does the same to it as this file (cmd/libmpi/measure.c).
type Burst struct {
	lock       atomic.Uint32
	kinds      uint32
	open       atomic.Uint64 // not 0: the call that is pending is not over
	stalled    atomic.Uint64 // when a call that sends, and has not looked at the clock, began to wait; 0: it did not
	from, last int64
	_          [3]uint64

	// pending is a call that receives, with the time when it began; 0: there is none. It is announced while
	// its message is under way. When that is there, somebody waits for what the program does next, so all
	// that is said then is that the call is over; it is merged before anything else is.
	pending Event
	calls   [Kinds]Event
}

// looksAtLock is how often a thread looks at a lock before it offers its core.
const looksAtLock = 64

func (b *Burst) Lock() {
	for i := 1; b.lock.Swap(1) != 0; i++ {
		if i%looksAtLock == 0 {
			runtime.Gosched()
		}
	}
}

func (b *Burst) Unlock() { releaseLock(&b.lock) }

// bound sets what is short, in units of which one takes so many nanoseconds.
func (m *Memory) bound(unit float64) {
	m.Brief, m.Gap, m.Longest = uint64(float64(brief)/unit), uint64(float64(gap)/unit), uint64(float64(longest)/unit)
}

// called notes a call that has ended. begun is late if it was over at once, unless it stalled.
func (m *Memory) called(w about, begun, ended int64) {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	if b.pending.Begun == begun && b.pending.Call == w.call { // it has waited
		b.pending.Begun = 0
		b.open.Store(0)
		waited.Store(false)
	}
	m.settle()
	if s := b.stalled.Load(); s != 0 {
		b.stalled.Store(0)
		if begun == late && (b.kinds == 0 || int64(s) >= b.last) {
			begun = int64(s)
		}
	}
	if begun == late {
		begun = ended
	}
	if ended-begun < int64(m.Brief) {
		m.merge(w, begun, ended)
		return
	}
	m.closeBurst()
	var e Event
	e.set(w, 1)
	m.Traced.put([]*Event{&e}, begun, ended)
}

// closeBurst passes on what was merged. The burst is locked, here and below.
func (m *Memory) closeBurst() {
	b := &m.Burst
	var list [Kinds]*Event
	for i := range b.kinds {
		list[i] = &b.calls[i]
	}
	if b.kinds > 0 {
		m.Traced.put(list[:b.kinds], b.from, b.last)
	}
	b.kinds = 0
}

// merge adds a short call to the burst, or begins another.
func (m *Memory) merge(w about, begun, ended int64) {
	b := &m.Burst
	if b.kinds > 0 && (begun-b.last > int64(m.Gap) || ended-b.from > int64(m.Longest)) {
		m.closeBurst()
	}
	k := uint32(0)
	for k < b.kinds && b.calls[k].Call != w.call {
		k++
	}
	if k == Kinds {
		m.closeBurst()
		k = 0
	}
	if b.kinds == 0 {
		b.from, b.last = begun, begun
	}
	b.last = max(b.last, ended)
	s := &b.calls[k]
	if k == b.kinds {
		s.set(w, 1)
		b.kinds++
		return
	}
	s.Times++
	if w.size > 0 {
		s.Size = max(s.Size, 0) + w.size
	}
	if s.Peer != w.peer {
		s.Peer = Nobody
	}
	if s.Tag != w.tag {
		s.Tag = NoTag
	}
	if s.Source != w.source {
		s.Source = Nobody
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
	m.merge(p.about(), p.Begun, p.Begun)
	p.Begun = 0
}

// pends announces a call that receives. It returns false if another thread's waits: then the call is measured
// as others are.
func (m *Memory) pends(w about, begun int64) bool {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	m.settle()
	if b.pending.Begun != 0 {
		return false
	}
	b.pending.set(w, 1)
	b.pending.Begun = begun
	b.open.Store(1)
	return true
}

// idle passes on a burst that nothing has been added to for a while, so that it does not wait to be written
// for as long as the program computes; all is set at the end.
func (m *Memory) idle(now int64, all bool) {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	if all {
		b.open.Store(0)
	}
	m.settle()
	if all || now-b.last > int64(m.Gap) {
		m.closeBurst()
	}
}

// waited is set where a call that receives had to wait, until its end is noted.
var waited atomic.Bool

// merging reports whether calls that are over at once are merged without the clock being read for them alone.
func merging() bool { return on.Load()&(counts|merges) == merges }

// late is what BeginLate returns where a call may be over at once.
const late = -1

// BeginLate is Begin for a call that sends: most are over at once, and while they leave somebody may wait for
// the message, so the clock is read only afterwards. Stalled says if it was different. The compiler puts it into
// the caller, which TestInlined watches: a call would come before each message.
func BeginLate() int64 {
	switch on.Load() {
	case 0:
		return 0
	case traces | merges:
		return late
	}
	return now()
}

// Stalling returns the time for Stalled; 0 if nobody wants it.
func Stalling() int64 {
	if !merging() {
		return 0
	}
	return now()
}

// Stalled says that the call that ends next has had to wait from a time on that Stalling returned.
func Stalled(since int64) {
	if since != 0 {
		mem.Burst.stalled.Store(uint64(since))
	}
}

// Waits says that a call that receives has had to wait longer than for Looks.
func Waits() {
	if merging() {
		waited.Store(true)
	}
}

// Looks is how often a call that receives may look for its message, with a short pause after each, before it
// counts as one that waits.
const Looks = 64

// Pends announces a call that receives and has begun at a time that Begin returned; Over ends it. It
// returns false if the call is measured as others are.
func Pends(n Number, begun int64, peer, tag int, size int64, comm uint64) bool {
	return merging() && mem.pends(about{uint32(n), int32(peer), int32(tag), Nobody, size, comm}, begun)
}

// Over ends a call that pends. It returns false if that has had to wait: then End has to say the rest. It
// does not get what the call is about, which takes time to find out while somebody waits, and is put into the
// caller like BeginLate.
func Over() bool {
	if waited.Load() {
		return false
	}
	releaseCall(&mem.Burst.open)
	return true
}
