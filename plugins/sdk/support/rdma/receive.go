package rdma

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// receiving is the state of what a Link receives.
type receiving struct {
	queue      []piece // messages, oldest first
	arrived    uint64  // messages in slots
	freedSlots uint64  // of them
	offered    uint64  // other messages
	open       int     // of these, those in queue
	reads      map[uint64]*read
	lastRead   uint64
	stages     []bool // whether a slot for reading is in use
	peerEnded  bool
}

// piece is a message that has come.
type piece struct {
	size int
	at   int    // bytes that were delivered
	buf  []byte // in a slot; nil: it was offered
	slot uint32

	number uint64
	asked  int     // bytes that were asked for: read in stages, or delivered
	staged []*read // into slots, in order
	direct *read   // into the receiver's memory
}

// read is a part of a message that the plugin reads.
type read struct {
	to    []byte
	stage int        // the slot; -1: the receiver's memory
	into  *lentBlock // then
	at    int        // bytes of to that were delivered
	done  bool
}

// Recv delivers what has come.
func (l *Link) Recv(batch [][]byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	if err := l.usable(); err != nil && (l.closed.Load() || len(l.queue) == 0) {
		return 0, err
	}
	total := link.Len(batch)
	for n < total {
		if len(l.queue) == 0 && !l.pollOne() {
			break
		}
		if len(l.queue) == 0 {
			continue
		}
		p := &l.queue[0]
		k := 0
		if p.buf != nil {
			k = spread(batch, n, p.buf[p.at:p.size])
		} else if n == 0 { // so that the next call provides the memory behind this
			l.poll()
			p = &l.queue[0]
			k = l.receiveLong(p, batch)
		}
		if k == 0 {
			break
		}
		n += k
		if p.at += k; p.at == p.size {
			l.drop(p)
		}
	}
	if n > 0 {
		l.idle = 0
		l.counts.received += uint64(n)
		return n, nil
	}
	if l.idle++; l.idle < lookEvery && !l.peerEnded && !l.dead && l.err == nil || total == 0 {
		return 0, nil // a poll that brings nothing must cost next to nothing
	}
	l.idle = 0
	return 0, l.atEnd()
}

// drop removes the first message, which was delivered.
func (l *Link) drop(p *piece) {
	if p.buf != nil {
		l.freedSlots++
		l.submit(Entry{Kind: Free, Slot: p.slot})
	} else {
		l.open--
		l.submit(Entry{Kind: Done, Message: p.number})
	}
	*p = piece{}
	l.queue = l.queue[1:]
}

// spread copies b into batch behind its first skip bytes, and returns how many bytes had room.
func spread(batch [][]byte, skip int, b []byte) (n int) {
	for _, to := range batch {
		k := min(skip, len(to))
		skip -= k
		k = copy(to[k:], b[n:])
		n += k
	}
	return n
}

// deliverable reports whether Recv would deliver something, or ask for it.
func (s *receiving) deliverable() bool {
	if len(s.queue) == 0 {
		return false
	}
	p := &s.queue[0]
	switch {
	case p.buf != nil:
		return true
	case p.direct != nil:
		return p.direct.done
	case len(p.staged) > 0:
		return p.staged[0].done
	}
	return true
}

// receiveLong delivers a part of a message that was offered, or asks for it, and returns how many
// bytes were delivered.
func (l *Link) receiveLong(p *piece, batch [][]byte) int {
	if r := p.direct; r != nil {
		switch {
		case !r.done:
			return 0
		case len(batch[0]) >= len(r.to) && unsafe.SliceData(batch[0]) == unsafe.SliceData(r.to):
			p.direct = nil
			return len(r.to)
		}
		p.direct, p.asked = nil, p.at // nobody wants it there any more
	}
	if len(p.staged) == 0 && l.err == nil && !l.readDirect(p, batch[0]) {
		l.readStaged(p)
	}
	n := 0
	for len(p.staged) > 0 && p.staged[0].done {
		r := p.staged[0]
		k := spread(batch, n, r.to[r.at:])
		n += k
		if r.at += k; r.at < len(r.to) {
			return n
		}
		l.stages[r.stage] = false
		p.staged = p.staged[1:]
		l.readStaged(p)
	}
	return n
}

// readDirect asks for the next bytes of a message in the receiver's memory, if that can be lent.
func (l *Link) readDirect(p *piece, to []byte) bool {
	to = to[:min(len(to), p.size-p.at)]
	if len(to) < directSize && len(to) < p.size-p.at {
		return false
	}
	x, offset := l.borrow(to)
	if x == nil {
		return false
	}
	p.direct = &read{to: to, stage: -1, into: x}
	l.ask(p, p.direct, x.number, x.generation, offset)
	return true
}

// readStaged asks for the next bytes of a message in slots, as many as are vacant.
func (l *Link) readStaged(p *piece) {
	for i, used := range l.stages {
		if used || p.asked == p.size || l.err != nil {
			continue
		}
		l.stages[i] = true
		to := l.region.slot(2, i)
		r := &read{to: to[:min(len(to), p.size-p.asked)], stage: i}
		p.staged = append(p.staged, r)
		l.ask(p, r, 0, 0, uint64(i*l.region.shape.SlotSize))
	}
}

func (l *Link) ask(p *piece, r *read, region, generation uint32, offset uint64) {
	l.lastRead++
	l.reads[l.lastRead] = r
	l.submit(Entry{
		Kind: Read, Number: l.lastRead, Message: p.number, At: uint64(p.asked),
		Region: region, Generation: generation, Offset: offset, Length: uint64(len(r.to)),
	})
	p.asked += len(r.to)
}

func (l *Link) wasRead(e *Entry) error {
	r := l.reads[e.Number]
	if r == nil {
		return fmt.Errorf("%w: read %d was completed, which is not under way: %d are", ErrRules, e.Number, len(l.reads))
	}
	delete(l.reads, e.Number)
	r.done = true
	l.regions.release(r.into)
	return nil
}

// come takes note of a message.
func (l *Link) come(e *Entry) error {
	s := l.region.shape
	switch {
	case l.peerEnded:
		return fmt.Errorf("%w: a message came after the peer's last", ErrRules)
	case e.Kind == Arrived:
		want := l.arrived % uint64(s.Slots)
		if l.arrived-l.freedSlots == uint64(s.Slots) || uint64(e.Slot) != want || e.Length == 0 || e.Length > uint64(s.SlotSize) {
			return fmt.Errorf("%w: %d bytes came in slot %d for receiving; the next is slot %d of %d bytes, and %d of %d are in use",
				ErrRules, e.Length, e.Slot, want, s.SlotSize, l.arrived-l.freedSlots, s.Slots)
		}
		l.arrived++
		l.queue = append(l.queue, piece{size: int(e.Length), slot: e.Slot, buf: l.region.slot(1, int(e.Slot))[:e.Length]})
		return nil
	case l.open == s.Slots || e.Message != l.offered+1 || e.Length == 0 || e.Length > MaxLength:
		return fmt.Errorf("%w: message %d of %d bytes was offered; the next is message %d of at most %d bytes, and %d of %d are open",
			ErrRules, e.Message, e.Length, l.offered+1, MaxLength, l.open, s.Slots)
	}
	l.offered++
	l.open++
	l.queue = append(l.queue, piece{size: int(e.Length), number: e.Message})
	return nil
}
