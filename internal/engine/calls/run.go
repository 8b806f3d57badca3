package calls

import "sync/atomic"

// Calls of MPI_Send and MPI_Recv that are short and have followed each other closely for long are a
// run: most are only counted, and the clock is read for one call after every UntimedCalls calls
// without a reading; in Go, where reading takes longer, after as many as have taken Brief before,
// at most MaxUntimedCalls. A core that shares its units with the core of the other proc slows that
// proc down while it reads the clock and locks the burst.
const (
	MinStreak           = 256     // calls that follow each other closely before some are not timed
	LongStreak          = 1024    // calls, as steady counts them, after which a pause is an interruption
	MinStreakAfterPause = 16      // calls; replaces MinStreak for the run after an interruption
	UntimedCalls        = 16      // calls in a row that are not timed
	MaxUntimedCalls     = 128     // the same in Go, at most
	MaxRunBytes         = 4 << 10 // bytes of a call in a run: larger ones take longer
)

// Run counts the calls of a run. One thread owns it, in C the first that was in a run, in Go the
// one that has locked the process: only the owner writes the fields that are not guarded by the
// burst's lock.
type Run struct {
	owner   uintptr       // of C: the thread, by the address of a variable of its own
	streak  atomic.Uint32 // short calls that have followed each other closely; guarded by the lock
	left    uint32        // calls that need not be timed
	pace    uint64        // of Go: mean time of the last UntimedCalls or more untimed calls; guarded by the lock
	since   uint64        // short calls since the last pause; guarded by the lock
	steady  uint64        // those before it, too, of which each pause leaves half; guarded by the lock
	_       [3]uint64
	tallies [RunKinds]tally
}

// The calls that a run may contain.
const (
	Sends = iota
	Receives
	RunKinds // how many they are
)

// tally counts calls that are equal in everything that a line says of them.
type tally struct {
	total atomic.Uint64
	taken uint64 // number of these that are in a burst; guarded by the lock
	size  int64
	comm  uint64
	call  uint32
	peer  int32
	tag   int32
	_     [5]uint32
}

// Count counts a call for which BeginUntimed has returned late, if it need not be timed. Where two
// procs share the units of a core each instruction of Count costs time, so the compiler inlines it:
// TestInlined.
func (r *Run) Count(k, peer, tag, size int, comm uint64) bool {
	t := &r.tallies[k]
	if r.left == 0 || r.streak.Load() < MinStreak || (t.peer^int32(peer))|(t.tag^int32(tag)) != 0 || uint64(t.size^int64(size))|(t.comm^comm) != 0 {
		return false
	}
	r.left--
	add(&t.total, 1)
	return true
}

// follows counts short calls that follow the ones before closely. The burst is locked, here and
// below.
func (r *Run) follows(times uint32) {
	r.since += uint64(times)
	if r.streak.Load() < MinStreak {
		r.streak.Add(times)
	}
}

// ends ends a streak. A virtual machine's timer stops a proc for more than gap some hundred to
// thousand times a second. If after each stop MinStreak calls were timed before counting begins
// again, this would be an eighth of all calls of a ping-pong. So after many calls that followed each
// other closely MinStreakAfterPause suffice. Two stops may be close to each other: half of the calls
// before the last pause count, too.
func (r *Run) ends() {
	if r.since == 0 {
		return // this pause has ended the run
	}
	r.steady = min(r.steady+r.since, maxSteady)
	again := uint32(0)
	if r.steady >= LongStreak {
		again = MinStreak - MinStreakAfterPause
	}
	r.streak.Store(again)
	r.since = 0
	r.steady /= 2
}

// maxSteady is the highest value of steady: when phases of communication become short, it takes
// three pauses until steady is below LongStreak.
const maxSteady = 4 * LongStreak

// renew has the next calls that are like this one counted, if it is part of a run: as many as
// probably end within a time, in units of the clock. The caller has looked at the clock; all calls
// that were counted before are in the burst, which is still locked. The caller owns the run.
func (r *Run) renew(w *about, within uint64) {
	r.left = 0
	k := Receives
	switch Number(w.call) {
	case Send:
		k = Sends
	case Recv:
	default:
		return
	}
	if r.streak.Load() < MinStreak || w.size < 0 || w.size > MaxRunBytes || w.peer < 0 {
		return
	}
	t := &r.tallies[k]
	t.call, t.peer, t.tag, t.size, t.comm = w.call, w.peer, w.tag, w.size, w.comm
	r.left = UntimedCalls
	if r.pace > 0 {
		r.left = uint32(min(max(within/r.pace, UntimedCalls), MaxUntimedCalls))
	}
}

// usual is how long the calls that were counted since the last look at the clock take at the usual
// pace, but not more than most.
func (r *Run) usual(most uint64) int64 {
	if r.pace == 0 {
		return 0
	}
	n := uint64(0)
	for k := range r.tallies {
		t := &r.tallies[k]
		n += max(t.total.Load(), t.taken) - t.taken
	}
	return int64(min(n*r.pace, most))
}

// settleRun adds the calls that were counted since the last look at the clock to the burst, as if
// the last one had ended at until. If that time is too long for calls that follow each other
// closely, they become an entry of their own, which is marked as paused. The burst is locked.
func (m *Memory) settleRun(until int64) {
	b := &m.Burst
	from := b.last
	until = max(until, from)
	if until-from > int64(m.Gap)+b.run.usual(m.Brief) {
		m.pause(from, until)
		return
	}
	calls := uint32(0)
	for k := range b.run.tallies {
		t := &b.run.tallies[k]
		if n := t.take(); n > 0 {
			m.merge(t.about(n), n, from, until)
			calls += n
		}
	}
	if calls >= UntimedCalls && !byC {
		b.run.pace = uint64(until-from) / uint64(calls)
	}
}

// take returns how many calls were counted since the last take.
func (t *tally) take() uint32 {
	n := int64(t.total.Load() - t.taken)
	if n <= 0 { // below 0 if a counted receive has waited later
		return 0
	}
	t.taken += uint64(n)
	return uint32(n)
}

func (t *tally) about(n uint32) about {
	return about{t.call, t.peer, t.tag, NoPeer, t.size * int64(n), t.comm}
}

// pause passes on what was counted from one look to the next, if anything was.
func (m *Memory) pause(from, until int64) {
	b := &m.Burst
	var list []*Event
	for k := range b.run.tallies {
		t := &b.run.tallies[k]
		if n := t.take(); n > 0 {
			e := new(Event)
			e.set(t.about(n), n)
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return
	}
	m.closeBurst()
	m.Traced.put(list, from, until, paused)
	b.last = until
	b.run.ends()
	b.run.pace = 0
}

// uncount takes back a receive that was counted and then, at the time at, had to wait.
func (m *Memory) uncount(at int64) {
	b := &m.Burst
	b.Lock()
	defer b.Unlock()
	add(&b.run.tallies[Receives].total, ^uint64(0))
	m.settle()
	m.settleRun(at)
}
