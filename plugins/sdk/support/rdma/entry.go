package rdma

import "fmt"

// Kind is what an entry of a ring says.
type Kind uint32

// The submissions, by the proc.
const (
	SendSlot Kind = 1 // a message in a slot for sending: Slot, Length
	SendLoan Kind = 2 // a message in memory that is lent: Number, Region, Generation, Offset, Length
	Free     Kind = 3 // a slot for receiving may be used again: Slot
	Read     Kind = 4 // a part of a message that was offered: Number, Message, At, Region, Generation, Offset, Length
	Done     Kind = 5 // nothing more of a message that was offered is needed: Message
	End      Kind = 6 // the last message was sent
	Forget   Kind = 7 // a region is lent no more: Region, Generation
)

// The completions, by the plugin.
const (
	SlotSent  Kind = 1 // a slot for sending may be used again: Slot
	LoanSent  Kind = 2 // the peer has what was lent: Number
	Arrived   Kind = 3 // a message is in a slot for receiving: Slot, Length
	Offered   Kind = 4 // a message can be read: Message, Length
	WasRead   Kind = 5 // a Read is complete: Number
	PeerEnded Kind = 6 // the peer has sent its last message
)

// Entry is one entry of a ring, as it is in memory: 64 bytes in the byte order of the machine.
// Fields that a kind does not have are 0.
type Entry struct {
	Kind       Kind
	Region     uint32 // number of lent memory, from 1; 0: the slots for reading
	Number     uint64 // of a loan or a read, which the completion repeats
	Message    uint64 // number of an offered message
	At         uint64 // where in the message a read begins
	Generation uint32 // of the region
	Slot       uint32
	Offset     uint64 // in the region
	Length     uint64 // bytes
	_          uint64
}

// producer is the writing side of a ring of entries.
type producer struct {
	b       *block
	entries []Entry
	head    uint64 // as in block
	tail    uint64 // as last seen
}

// put appends an entry. It returns an error if the ring is full, which it is not if the other side
// keeps the rules.
func (p *producer) put(e Entry) error {
	size := uint64(len(p.entries))
	if p.head-p.tail == size {
		switch n, err := p.vacant(); {
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("%w: the other side has left %d entries unread, which is more than can be of use", ErrRegion, size)
		}
	}
	p.entries[p.head%size] = e
	p.head++
	p.b.head.Swap(p.head)
	return nil
}

// vacant returns for how many entries there is room.
func (p *producer) vacant() (int, error) {
	size := uint64(len(p.entries))
	tail := p.b.tail.Load()
	if p.head-tail > size || tail-p.tail > size {
		return 0, fmt.Errorf("%w: the other side says that it has read %d entries of %d, and %d before", ErrRegion, tail, p.head, p.tail)
	}
	p.tail = tail
	return int(size - (p.head - tail)), nil
}

// consumer is the reading side of a ring of entries.
type consumer struct {
	b       *block
	entries []Entry
	tail    uint64 // as in block
	head    uint64 // as last seen
}

// waits reports whether there is an entry, or an impossible counter.
func (c *consumer) waits() bool { return c.head != c.tail || c.b.head.Load() != c.tail }

// next returns a copy of the next entry, which the other side cannot change any more.
func (c *consumer) next() (e Entry, ok bool, err error) {
	size := uint64(len(c.entries))
	if c.head == c.tail {
		head := c.b.head.Load()
		if head-c.tail > size {
			return e, false, fmt.Errorf("%w: the other side says that it has written %d entries, %d were read of %d that fit", ErrRegion, head, c.tail, size)
		}
		if c.head = head; head == c.tail {
			return e, false, nil
		}
	}
	e = c.entries[c.tail%size]
	c.tail++
	c.b.tail.Store(c.tail)
	return e, true, nil
}
