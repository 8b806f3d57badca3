package rdma

import (
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// sending is the state of what a Link sends.
type sending struct {
	sent, acknowledged uint64 // messages in slots
	loans              []loan // what put has not given back, oldest first
	numbers            uint64 // of loans, so far
	owing              int    // loans that the peer does not have
	stalled            bool   // the last put had more, but no slot for it
}

// loan is some bytes that put was given. It is done when they belong to the caller again.
type loan struct {
	size   int
	number uint64 // 0: they were copied
	from   *lentBlock
	done   bool
}

// Send copies the bytes that it accepts.
func (l *Link) Send(batch [][]byte) (n int, err error) { return l.put(batch, false) }

// Lend sends long slices of lent memory without copying them.
func (l *Link) Lend(batch [][]byte) (n int, err error) { return l.put(batch, true) }

func (l *Link) put(batch [][]byte, lend bool) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	switch err := l.usable(); {
	case err != nil:
		return 0, err
	case l.ended:
		return 0, link.ErrClosed
	case l.out.b.gone.Load() != 0:
		return 0, errGone // and not l.err: there may be something to receive
	}
	if l.owing > 0 || !l.vacant() {
		l.poll()
	}
	skip := 0 // bytes that are sent already
	for _, x := range l.loans {
		skip += x.size
	}
	slot := filling{l: l}
	l.stalled = false
	for _, b := range batch {
		k := min(skip, len(b))
		skip -= k
		if !slot.take(b[k:], lend) {
			break
		}
	}
	slot.flush()
	if l.err != nil {
		return 0, l.err
	}
	return l.returned(), nil
}

// returned returns how many bytes at the front of what was given belong to the giver again.
func (l *Link) returned() (n int) {
	i := 0
	for ; i < len(l.loans) && l.loans[i].done; i++ {
		n += l.loans[i].size
	}
	l.loans = append(l.loans[:0], l.loans[i:]...)
	return n
}

// vacant reports whether there is a slot for sending.
func (l *Link) vacant() bool { return l.sent-l.acknowledged < uint64(l.region.shape.Slots) }

// movable reports whether a put that did nothing would do something now. If all that it was given
// is lent, only the end of a loan lets it continue, and slots do not matter.
func (l *Link) movable() bool {
	if len(l.loans) == 0 {
		return l.vacant()
	}
	return l.loans[0].done || l.stalled && l.vacant()
}

// filling is a slot that is being filled.
type filling struct {
	l    *Link
	buf  []byte // nil: there is none
	used int
}

// take sends b, and reports whether there was room for all of it.
func (f *filling) take(b []byte, lend bool) bool {
	l := f.l
	for len(b) > 0 && l.err == nil {
		if lend && len(b) >= longSize {
			if k := f.lend(b); k > 0 {
				b = b[k:]
				continue
			}
		}
		if f.buf == nil {
			if !l.vacant() {
				l.stalled = true
				return false
			}
			f.buf, f.used = l.region.slot(0, int(l.sent%uint64(l.region.shape.Slots))), 0
		}
		k := copy(f.buf[f.used:], b)
		f.used += k
		if b = b[k:]; f.used == len(f.buf) {
			f.flush()
		}
	}
	return l.err == nil
}

func (f *filling) flush() {
	if f.buf == nil {
		return
	}
	l := f.l
	l.submit(Entry{Kind: SendSlot, Slot: uint32(l.sent % uint64(l.region.shape.Slots)), Length: uint64(f.used)})
	l.sent++
	l.counts.sent += uint64(f.used)
	l.loans = append(l.loans, loan{size: f.used, done: true})
	f.buf = nil
}

// lend sends the beginning of b from where it is, if that is possible, and returns how many bytes.
func (f *filling) lend(b []byte) int {
	l := f.l
	if l.owing == l.region.shape.Slots {
		return 0
	}
	b = b[:min(len(b), MaxLength)]
	x, offset := l.borrow(b)
	if x == nil {
		return 0
	}
	f.flush()
	l.numbers++
	l.owing++
	l.submit(Entry{Kind: SendLoan, Number: l.numbers, Region: x.number, Generation: x.generation, Offset: offset, Length: uint64(len(b))})
	l.counts.sent += uint64(len(b))
	l.loans = append(l.loans, loan{size: len(b), number: l.numbers, from: x})
	return len(b)
}

// borrow returns the block that has all of b, and where in its region, once the plugin has that; nil
// if it cannot be lent. It keeps its memory until it is released.
func (l *Link) borrow(b []byte) (x *lentBlock, offset uint64) {
	if x, offset = l.regions.borrow(b); x == nil {
		return nil, 0
	}
	if !l.lendRegion(x.lentRegion) {
		l.regions.release(x)
		return nil, 0
	}
	return x, offset
}

// lendRegion lends the plugin a region, unless it has it, and reports whether it has.
func (l *Link) lendRegion(x *lentRegion) bool {
	if l.lent[x.number] == x.generation {
		return true
	}
	if len(l.lent) == MaxLent {
		return false
	}
	l.channelMu.Lock()
	defer l.channelMu.Unlock()
	if l.channel < 0 {
		return false
	}
	err := l.regions.withFD(x, func(fd int) error {
		return sendRegion(l.channel, Lent{x.number, x.generation, int64(len(x.mem)), fd})
	})
	if err != nil {
		return false // the channel is full, or has ended: the bounce memory will do
	}
	l.lent[x.number] = x.generation
	return true
}

// forget tells the plugin of regions that were freed, as long as the ring has enough room for all
// other submissions: for N slots these are at most 5N+2 (each slot and each loan once, a slot and a
// message that are given back, a read for each slot and one into the receiver's memory, the end).
// The next call continues.
func (l *Link) forget() {
	if l.regions == nil || l.err != nil {
		return
	}
	freed := l.regions.freed.Load()
	if freed == l.freed {
		return
	}
	room, err := l.out.vacant()
	if err != nil {
		l.fail(fmt.Errorf("%w: submissions: %w", ErrRules, err))
		return
	}
	room -= keptBack * l.region.shape.Slots
	for number, generation := range l.lent {
		if l.regions.lives(number, generation) {
			continue
		}
		if room <= 0 {
			return
		}
		room--
		delete(l.lent, number)
		l.submit(Entry{Kind: Forget, Region: number, Generation: generation})
	}
	l.freed = freed
}

func (l *Link) slotSent(e *Entry) error {
	want := l.acknowledged % uint64(l.region.shape.Slots)
	if l.acknowledged == l.sent || uint64(e.Slot) != want {
		return fmt.Errorf("%w: slot %d for sending was completed; %d messages are under way, the oldest in slot %d", ErrRules, e.Slot, l.sent-l.acknowledged, want)
	}
	l.acknowledged++
	return nil
}

func (l *Link) loanSent(e *Entry) error {
	for i := range l.loans {
		x := &l.loans[i]
		if x.done {
			continue
		}
		if x.number != e.Number {
			break
		}
		x.done = true
		l.regions.release(x.from)
		x.from = nil
		l.owing--
		return nil
	}
	return fmt.Errorf("%w: loan %d was completed, which is not the oldest of the %d that are under way", ErrRules, e.Number, l.owing)
}
