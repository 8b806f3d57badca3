package board

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// Step is a step of an operation: the number of the operation and of the step in it. Later steps
// are larger.
type Step uint64

const (
	stepBits = 16
	doneBit  = 1

	// MaxSteps is the maximum number of steps of an operation.
	MaxSteps = 1 << (stepBits - 1)
)

// FirstStep returns the first step of operation number n, counted from 0.
func FirstStep(n uint64) Step { return Step((n + 1) << stepBits) }

// Step returns step i of the operation whose first step is t.
func (t Step) Step(i int) Step { return t + Step(i)<<1 }

// index counts pairs of steps, so that those in a row differ.
func (t Step) index() int { return int(t>>stepBits + t>>2&(MaxSteps/2-1)) }

// Member is one member's part of a slot, and its view of the other members' parts. Only one
// goroutine at a time may use it.
type Member struct {
	b           *Board
	slot, n, me int
	base        int // offset of the slot

	*State
	took bool // this member has read from an area in this step
	now  Step // step that this member has reached
}

// State is one member's view of its part of a slot. C code uses it too, for operations that it does
// without Go (docs/decisions/0030-fast-boxes.md); then it is in memory that both have.
type State struct {
	Slot     unsafe.Pointer // the memory of the slot
	Areas    unsafe.Pointer // the memory of its members' areas
	Number   atomic.Uint64  // number of the communicator's next operation
	Written  [entries]Step  // step in which each entry was written last
	Rooms    [2]Step        // the same for each half
	Seen     Step           // step that all the others had reached when they were last checked
	Members  uint32         // 0: there is no communicator in the slot
	Me       uint32         // the member's rank
	Backed   [2]uint32      // 1: rooms, and halves, have memory
	Busy     uint32         // 1: an operation of the Go code is running
	Ops      uint32         // number of operations so far
	Rechecks uint32         // 1: members check again soon after they go to sleep, so others may use PublishRelaxed
	_        uint32
	Lend     uint64 // minimum size in bytes of blocks that are lent, as agreed by the members; 0: not agreed yet
	Keys     [MaxProcs]MemoryKey
}

// SetState makes the Member keep its State at s from now on. Neither may be used by others in the
// meantime.
func (p *Member) SetState(s *State) {
	old := p.State
	s.Slot, s.Areas, s.Members, s.Me = old.Slot, old.Areas, old.Members, old.Me
	s.Number.Store(old.Number.Load())
	s.Written, s.Rooms, s.Seen, s.Backed = old.Written, old.Rooms, old.Seen, old.Backed
	s.Busy, s.Ops, s.Rechecks, s.Lend, s.Keys = old.Busy, old.Ops, old.Rechecks, old.Lend, old.Keys
	p.State = s
}

// Index returns the number of the slot.
func (p *Member) Index() int { return p.slot }

func (p *Member) part(m int) int { return p.base + slotHead + m*memberSize }

// progress returns the word that says how far a member is.
func (p *Member) progress(m int) *atomic.Uint64 { return p.b.word(p.part(m)) }

func (p *Member) entry(m int, t Step) int {
	return p.part(m) + line + t.index()%entries*entrySize
}

func (p *Member) area(m int) int { return ControlSize(p.b.procs) + (p.slot*p.b.procs+m)*areaSize }

// data returns the memory of the n bytes that a member posts in t.
func (p *Member) data(m int, t Step, n int) []byte {
	at := p.entry(m, t) + 16
	switch i := t.index(); {
	case n > roomSize:
		at = p.area(m) + entries*roomSize + i%2*halfSize
	case n > inline:
		at = p.area(m) + i%entries*roomSize
	}
	return p.b.mem[at : at+n : at+n]
}

// Others returns the set of all members except this one, a bit for each rank.
func (p *Member) Others() uint64 {
	return ^uint64(0) >> (64 - p.n) &^ (1 << p.me)
}

// SetOf returns the set that contains member m alone: bit m.
func SetOf(m int) uint64 { return 1 << m }

// Begin records that this member has begun t, and has read all that it needs of earlier steps.
func (p *Member) Begin(t Step) {
	p.took, p.now = false, t
	p.progress(p.me).Swap(uint64(t))
}

// PrefetchOwn fetches the cache lines that this member writes next, in t, so that Begin and Post do
// not wait until the others' cores have given them up.
func (p *Member) PrefetchOwn(t Step) {
	ntcopy.Claim(unsafe.Pointer(p.progress(p.me)))
	ntcopy.Claim(unsafe.Pointer(p.b.word(p.entry(p.me, t))))
}

// Advance is like Begin if several steps are in progress: t is the first of them of which this
// member still has to read something, or the last if there is none. Nothing happens if the member
// has begun a later one.
func (p *Member) Advance(t Step) {
	if t > p.now {
		took := p.took
		p.Begin(t)
		p.took = took
	}
}

// Resume is like Advance for a step that C has begun. took is true if C has read something in an
// area since it has last published this member's step.
func (p *Member) Resume(t Step, took bool) {
	p.Advance(t)
	p.took = p.took || took
}

// End records that this member has read all that it needs of the step that it has begun last. It
// writes nothing and returns false if that would delay no other member for long.
func (p *Member) End() bool {
	if !p.took {
		return false
	}
	p.took = false
	p.progress(p.me).Swap(uint64(p.now | doneBit))
	return true
}

// Done is like End if others may wait for this member although it has read little or nothing.
func (p *Member) Done() {
	p.took = true
	p.End()
}

// Backing returns the part of the memory that posting n bytes needs, unless it was returned before:
// the caller may have to allocate it.
func (p *Member) Backing(n int) (at, size int) {
	long := n > roomSize
	switch {
	case n <= inline, long && p.Backed[1] != 0, !long && p.Backed[0] != 0:
		return 0, 0
	case long:
		p.Backed[1] = 1
		return p.area(p.me) + entries*roomSize, 2 * halfSize
	}
	p.Backed[0] = 1
	return p.area(p.me), entries * roomSize
}

// Overwrites reports whether posting n bytes in t may overwrite bytes that this member has posted
// since an earlier step.
func (p *Member) Overwrites(t Step, n int, since Step) bool {
	apart := t.index() - since.index()
	return apart >= entries || n > roomSize && apart >= 2
}

// Room returns the memory for the n bytes, at most MaxPost, that this member will post in
// t. A Wait of Vacant must be over, so that no member still reads there.
func (p *Member) Room(t Step, n int) []byte {
	p.b.between()
	return p.data(p.me, t, n)
}

// Post publishes the contents of Room. The argument what distinguishes operations.
func (p *Member) Post(t Step, what uint8, n int) {
	if n > roomSize {
		p.Rooms[t.index()%2] = t
	}
	publish(p, p.entry(p.me, t), t, what, n)
}

// Write is Post without the publication, which PublishRelaxed does.
func (p *Member) Write(t Step, what uint8, n int) {
	if n > roomSize {
		p.Rooms[t.index()%2] = t
	}
	fill(p, p.entry(p.me, t), t, what, n)
}

// PublishRelaxed publishes what Write has written in t, and returns the Sleepers. It does not wait
// until the others can see it: the check for sleepers may come first, and miss a member that has
// just gone to sleep. So it is for members that check again soon after they have gone to sleep
// (State.Rechecks). It may be called while others use the Member.
func (p *Member) PublishRelaxed(t Step) (sleepers uint64) {
	word := p.b.word(p.entry(p.me, t))
	if p.b.step != nil { // look for sleepers first
		sleepers = p.Sleepers()
		p.b.between()
		word.Swap(uint64(t))
		return sleepers
	}
	ntcopy.Tell((*uint64)(unsafe.Pointer(word)), uint64(t))
	return p.Sleepers()
}

// HoldUntil records that the n bytes posted in t stay in use until the others have read what they
// need of a later step.
func (p *Member) HoldUntil(t Step, n int, until Step) {
	p.Written[t.index()%entries] = until
	if n > roomSize {
		p.Rooms[t.index()%2] = until
	}
}

func header(what uint8, n int) uint64 { return uint64(what)<<56 | uint64(n) }

// Read returns the n bytes that member m has posted in t; a Wait of Posted must be over.
// They are valid until End, and may change if a proc breaks the rules. If the member has
// posted something else the error is a *Mismatch.
func (p *Member) Read(m int, t Step, what uint8, n int) ([]byte, error) {
	if _, err := p.posted(m, t, what, n); err != nil {
		return nil, err
	}
	if n > inline {
		p.took = true
	}
	p.b.between()
	return p.data(m, t, n), nil
}

// Mismatch is the error if members do not call the same operation with the same length.
type Mismatch struct {
	Member    int
	What      uint8
	Bytes     uint64
	WantWhat  uint8
	WantBytes int
}

func (e *Mismatch) Error() string {
	if e.What != e.WantWhat {
		return fmt.Sprintf("rank %d calls another operation, number %d where %d is expected", e.Member, e.What, e.WantWhat)
	}
	return fmt.Sprintf("rank %d sent %d bytes, %d are expected", e.Member, e.Bytes, e.WantBytes)
}

// Sleepers returns the members, except this one, that have gone to sleep, and clears their
// bits: the caller must wake them. It is called after writing whatever they may wait for.
// That must be written by Swap: under the race detector a Store to memory that is not Go's
// own may be reordered with this check. After PublishRelaxed, which stores, a member may be missed:
// see State.Rechecks.
func (p *Member) Sleepers() uint64 {
	w := p.b.word(p.base)
	if w.Load() == 0 {
		return 0
	}
	p.b.between()
	others := p.Others()
	return w.And(^others) & others
}

// Sleep records that this member is about to sleep, and must be woken from then on.
func (p *Member) Sleep() {
	p.b.between()
	p.b.word(p.base).Or(1 << p.me)
	p.b.between()
}

// EndSleep records that this member does not sleep any more.
func (p *Member) EndSleep() { p.b.word(p.base).And(^(uint64(1) << p.me)) }

// Leave records that this member will not use the slot any more. The last member to leave clears
// and releases the slot.
func (p *Member) Leave() {
	left := p.b.word(p.base + line)
	if left.Add(1) != uint64(p.n) {
		return
	}
	for m := range p.n {
		p.progress(m).Store(0)
		p.b.word(p.part(m) + atAsked).Store(0)
		for i := range entries {
			p.b.word(p.part(m) + line + i*entrySize).Store(0)
		}
	}
	p.b.word(p.base).Store(0)
	left.Store(0)
	if p.slot != 0 {
		p.b.free(p.slot)
	}
}

// Wait is a condition: that some other members have reached a step.
type Wait struct {
	p     *Member
	left  uint64 // members not known to have reached it
	entry Step   // step whose entries are checked; 0: the members' steps are checked
	want  uint64
}

// Arrived returns a Wait until members have begun t's operation.
func (p *Member) Arrived(members uint64, t Step) Wait {
	return Wait{p: p, left: members, want: uint64(t)}
}

// Posted returns a Wait until each of members has posted in t, after which Read has what they
// posted.
func (p *Member) Posted(members uint64, t Step) Wait {
	return Wait{p: p, left: members, entry: t, want: uint64(t)}
}

// Finished returns a Wait until members have ended t, or begun a later operation.
func (p *Member) Finished(members uint64, t Step) Wait {
	return Wait{p: p, left: members, want: uint64(t | doneBit)}
}

// Vacant returns a Wait until n bytes can be posted in t.
func (p *Member) Vacant(t Step, n int) Wait {
	was := p.lastUse(t, n)
	if was == 0 || p.Seen > was {
		return Wait{}
	}
	p.Seen = slowest(p)
	return p.Finished(p.Others(), was)
}

// lastUse returns the step in which this member last wrote what it needs to post n bytes in t.
func (p *Member) lastUse(t Step, n int) Step {
	was := p.Written[t.index()%entries]
	if n > roomSize {
		was = max(was, p.Rooms[t.index()%2])
	}
	return was
}

// slowest returns the step that all the other members have reached.
func slowest(p *Member) Step {
	least := ^uint64(0)
	for m := range p.n {
		if m != p.me {
			least = min(least, p.progress(m).Load())
		}
	}
	return Step(least)
}

// Done reports whether the condition holds.
func (w *Wait) Done() bool {
	for w.left != 0 {
		m := bits.TrailingZeros64(w.left)
		at := w.p.progress(m)
		if w.entry != 0 {
			at = w.p.b.word(w.p.entry(m, w.entry))
		}
		if at.Load() < w.want {
			return false
		}
		w.left &= w.left - 1
	}
	return true
}

// Missing returns the set of the members that are still waited for.
func (w *Wait) Missing() uint64 { return w.left }

// Prefetch fetches the cache lines that this member will read when the Wait, for posts of n bytes
// by each of the members, is over: those of the first most bytes. The bytes may not be written yet.
// For short posts, which are in an entry, it fetches nothing.
func (w *Wait) Prefetch(n, most int) {
	for left := w.left; left != 0 && n > inline; left &= left - 1 {
		m := bits.TrailingZeros64(left)
		ntcopy.Fetch(unsafe.Pointer(w.p.b.word(w.p.entry(m, w.entry))))
		b := w.p.data(m, w.entry, n)
		for at := 0; at < min(n, most); at += entrySize {
			ntcopy.Fetch(unsafe.Pointer(&b[at]))
		}
	}
}
