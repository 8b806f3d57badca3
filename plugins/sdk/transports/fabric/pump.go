package fabric

import (
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/support/rdma"
)

// pump passes messages between a proc, behind a control region, and a connection. step does what
// can be done now; nothing in here waits.
type pump struct {
	port  *rdma.Port
	conn  Conn
	cache *Cache
	rails []bool // by number: whether reads may go there

	outbound
	inbound
	reading
	fetching
	lending

	head, keys []byte // memory for a header, and for a key
	pieces     [3][]byte
}

// outbound is what goes to the peer.
type outbound struct {
	begun    bool         // hello was sent
	queue    []submission // SendSlot, SendLoan and End, oldest first
	done     []uint64     // numbers of messages that the peer is to be told of as taken
	allowed  int          // messages that the peer has room for
	most     int          // the most that it can have
	slotSize int          // bytes of a message that it has room for; 0: its hello has not come
	answers  bool         // it answers asks
	owed     int          // by how many messages its allowance is to grow
	offers   uint64       // messages that were offered to it
	loans    []loan       // of them, those that it has not taken
	over     bool         // the end was sent
}

// submission is what the proc has submitted, with the memory of a loan: that stays lent until it is
// sent, whatever the proc says of the region meanwhile.
type submission struct {
	rdma.Entry
	from   *entry
	copied []byte // what is left to be copied of a loan that cannot be offered; nil: it was not tried
	sent   int    // bytes of a message in a slot that were sent
}

// loan is a message that was offered to the peer.
type loan struct {
	message uint64 // its number for the peer; 0: it was copied
	number  uint64 // its number for the proc
	entry   *entry
	data    []byte
}

// inbound is what comes from the peer.
type inbound struct {
	given     int // messages that the peer may still send
	open      map[uint64]*offered
	last      uint64 // number of the last message that it offered
	peerOver  bool   // it has sent its end
	connEnded bool   // and closed the connection
}

// offered is a message that the peer has offered.
type offered struct {
	key            []byte
	offset, length uint64
}

func newPump(port *rdma.Port, c Conn, cache *Cache) (*pump, error) {
	limits := c.Limits()
	if limits.Message < LeastMessage || limits.Rails < 1 {
		return nil, fmt.Errorf("the connection takes messages of %d bytes by %d rails; at least %d and 1 are needed", limits.Message, limits.Rails, LeastMessage)
	}
	p := &pump{port: port, conn: c, cache: cache, head: make([]byte, headerSize), keys: make([]byte, maxKey)}
	p.rails = make([]bool, limits.Rails)
	for i := range p.rails {
		p.rails[i] = true
	}
	p.open, p.parts, p.regions = map[uint64]*offered{}, map[uint64]*part{}, map[uint32]*lent{}
	p.done = make([]uint64, 0, port.Shape().Slots)
	return p, nil
}

// shapeFor returns the shape of a control region for a connection: its messages have a header.
func shapeFor(l Limits) rdma.Shape {
	s := rdma.DefaultShape
	for s.SlotSize > 1<<10 && s.SlotSize+headerSize > l.Message {
		s.SlotSize /= 2
	}
	return s
}

// step does what can be done now, and reports whether that was anything.
func (p *pump) step() (moved bool, err error) {
	for _, f := range []func() (bool, error){p.submissions, p.send, p.receive, p.completions, p.issue, p.ask} {
		m, err := f()
		if err != nil {
			return moved, err
		}
		moved = moved || m
	}
	return moved, nil
}

// errLeft means that the proc has gone without the end of its messages.
var errLeft = errors.New("the proc has closed the link, or died, before it has ended its messages")

// finished reports whether the proc has gone and everything that it had sent was passed on.
func (p *pump) finished() (bool, error) {
	if !p.port.Left() {
		return false, nil
	}
	if len(p.loans) > 0 || !p.over && (len(p.queue) == 0 || p.queue[len(p.queue)-1].Kind != rdma.End || p.connEnded) {
		return false, errLeft
	}
	return p.over && p.under == 0 && (len(p.done) == 0 || p.connEnded), nil
}

// submissions takes what the proc has submitted.
func (p *pump) submissions() (moved bool, err error) {
	for {
		e, ok, err := p.port.Next()
		if err != nil || !ok {
			return moved, err
		}
		if err := p.submitted(&e); err != nil {
			return true, err
		}
		moved = true
	}
}

func (p *pump) submitted(e *rdma.Entry) error {
	switch e.Kind {
	case rdma.SendSlot, rdma.SendLoan, rdma.End:
		// The proc has as many slots, and may have as many loans.
		if len(p.queue) > 2*p.port.Shape().Slots || len(p.queue) > 0 && p.queue[len(p.queue)-1].Kind == rdma.End || p.over {
			return fmt.Errorf("%w: it sends more than its slots and loans, or after its end", rdma.ErrRules)
		}
		s := submission{Entry: *e}
		if e.Kind == rdma.SendLoan {
			if n := p.lent(); n >= p.port.Shape().Slots {
				return fmt.Errorf("%w: it lends a message beside %d that it has not had back", rdma.ErrRules, n)
			}
			x, err := p.find(e)
			if err != nil {
				return err
			}
			p.cache.hold(x)
			s.from = x
		}
		p.queue = append(p.queue, s)
		return nil
	case rdma.Free:
		p.owed++
		return nil
	case rdma.Done:
		if p.open[e.Message] == nil || p.reads(e.Message) {
			return fmt.Errorf("%w: it is done with message %d, which is not open or is being read", rdma.ErrRules, e.Message)
		}
		delete(p.open, e.Message)
		p.done = append(p.done, e.Message)
		p.owed++
		return nil
	case rdma.Read:
		return p.read(e)
	case rdma.Forget:
		return p.forget(e)
	}
	return fmt.Errorf("%w: a submission of kind %d", rdma.ErrRules, e.Kind) // Next has checked that
}

// lent returns how many loans of the proc are not completed.
func (p *pump) lent() int {
	n := len(p.loans)
	for i := range p.queue {
		if p.queue[i].Kind == rdma.SendLoan {
			n++
		}
	}
	return n
}

// post sends a message on the connection, with the allowance that is owed.
func (p *pump) post(h header, data []byte) (bool, error) {
	if p.connEnded {
		return false, nil
	}
	h.allowed = uint32(p.owed)
	p.pieces[0], p.pieces[1] = h.put(p.head), data
	ok, err := p.conn.Send(p.pieces[:2])
	if err == nil && ok {
		p.given += p.owed
		p.owed = 0
	}
	return ok, err
}

// send passes on what the proc has sent.
func (p *pump) send() (moved bool, err error) {
	s := p.port.Shape()
	if !p.begun {
		p.owed = 0
		if p.begun, err = p.post(header{kind: hello, number: uint64(s.Slots), length: uint64(s.SlotSize), offset: answersFetch}, nil); !p.begun || err != nil {
			return false, err
		}
		p.given, moved = s.Slots, true
	}
	for len(p.done) > 0 {
		if ok, err := p.post(header{kind: taken, number: p.done[0]}, nil); !ok || err != nil {
			return moved, err
		}
		p.done, moved = append(p.done[:0], p.done[1:]...), true
	}
	// First, since what waits may wait for the other side's allowance, and that for this one.
	if p.owed >= s.Slots/2 && (len(p.queue) == 0 || p.allowed == 0) {
		if ok, err := p.post(header{kind: more}, nil); !ok || err != nil {
			return moved, err
		}
		moved = true
	}
	if m, err := p.sendFetched(); err != nil {
		return true, err
	} else if m {
		moved = true
	}
	for len(p.queue) > 0 {
		if ok, err := p.sendNext(&p.queue[0]); !ok || err != nil {
			return moved, err
		}
		p.queue, moved = append(p.queue[:0], p.queue[1:]...), true
	}
	return moved, nil
}

// sendNext passes on one submission. It reports false if that is not possible now.
func (p *pump) sendNext(e *submission) (ok bool, err error) {
	if e.Kind == rdma.End {
		p.over, err = p.post(header{kind: ended}, nil)
		return p.over, err
	}
	if p.allowed == 0 {
		return false, nil
	}
	if e.Kind == rdma.SendLoan {
		if e.copied == nil {
			if ok, err = p.offer(e); ok || e.copied == nil {
				return ok, err
			}
		}
		return p.copyLoan(e)
	}
	data := p.port.SendSlot(&e.Entry)
	n, err := p.copyOut(data[e.sent:])
	if e.sent += n; err != nil || e.sent < len(data) {
		return false, err
	}
	return true, p.port.Complete(rdma.Entry{Kind: rdma.SlotSent, Slot: e.Slot})
}

// copyOut sends data in messages, one if the peer's slots are as long as this side's, as far as it
// has room for them. It returns how many bytes were sent.
func (p *pump) copyOut(data []byte) (sent int, err error) {
	for sent < len(data) && p.allowed > 0 {
		n := min(len(data)-sent, p.pieceSize())
		if ok, err := p.post(header{kind: eager, length: uint64(n)}, data[sent:][:n]); !ok || err != nil {
			return sent, err
		}
		p.allowed--
		sent += n
	}
	return sent, nil
}

// pieceSize is how many bytes a message with data can have, in both directions.
func (p *pump) pieceSize() int { return min(p.slotSize, p.port.Shape().SlotSize) }

// offer tells the peer of a message in lent memory. If that cannot be registered it leaves e.copied.
func (p *pump) offer(e *submission) (bool, error) {
	x := e.from
	reg, mem, err := p.cache.use(x)
	if err != nil {
		return false, err
	}
	data := mem[e.Offset:][:e.Length]
	if reg == nil {
		e.copied = data
		return false, nil
	}
	key := reg.Key()
	ok, err := p.post(header{kind: offer, number: p.offers + 1, length: e.Length, offset: e.Offset, key: uint16(len(key))}, key)
	if !ok || err != nil {
		p.cache.unuse(x)
		return ok, err
	}
	p.allowed--
	p.offers++
	p.loans = append(p.loans, loan{p.offers, e.Number, x, data})
	p.cache.reclaim(x) // it is in use now
	e.from = nil
	return true, nil
}

// copyLoan sends lent memory that cannot be registered like messages in slots.
func (p *pump) copyLoan(e *submission) (bool, error) {
	n, err := p.copyOut(e.copied)
	if e.copied = e.copied[n:]; err != nil || len(e.copied) > 0 {
		return false, err
	}
	p.cache.unuse(e.from)
	p.cache.reclaim(e.from)
	e.from, e.copied = nil, nil
	p.loans = append(p.loans, loan{number: e.Number})
	return true, p.loansCopied()
}

// loansCopied completes the oldest loans, as far as they were copied.
func (p *pump) loansCopied() error {
	for len(p.loans) > 0 && p.loans[0].message == 0 {
		number := p.loans[0].number
		p.loans = append(p.loans[:0], p.loans[1:]...)
		if err := p.port.Complete(rdma.Entry{Kind: rdma.LoanSent, Number: number}); err != nil {
			return err
		}
	}
	return nil
}

// receive takes what the peer has sent.
func (p *pump) receive() (moved bool, err error) {
	for !p.connEnded {
		// Data go into the slot in which the proc gets them, but for the first ones: a key must
		// not be where the proc can change it. What is fetched goes elsewhere.
		slot := p.port.ReceiveSlot()
		p.pieces[0], p.pieces[1], p.pieces[2] = p.head, p.keys, slot[min(len(slot), maxKey):]
		if len(p.slow) > 0 {
			p.pieces[2] = p.scratch
		}
		n, err := p.conn.Recv(p.pieces[:])
		switch {
		case err == io.EOF && p.peerOver: //nolint:errorlint // a Conn reports it bare
			p.connEnded = true
			p.port.Deaf()
			return true, nil
		case err != nil:
			return moved, err
		case n == 0:
			return moved, nil
		}
		h, err := parseHeader(p.head, n)
		if err == nil {
			err = p.message(&h, slot)
		}
		if err != nil {
			return true, err
		}
		moved = true
	}
	return moved, nil
}

// message handles a message of the peer, whose first bytes are in p.keys and the others in slot.
func (p *pump) message(h *header, slot []byte) error {
	s := p.port.Shape()
	if (h.kind == hello) != (p.slotSize == 0) {
		return fmt.Errorf("%w: a message of kind %d, hello comes first and once", errWire, h.kind)
	}
	if h.kind == eager || h.kind == offer {
		if p.given == 0 || p.peerOver {
			return fmt.Errorf("%w: it sends more messages than it may, or one after its end", errWire)
		}
		p.given--
	}
	if h.kind != hello && uint64(p.allowed)+uint64(h.allowed) > uint64(p.most) {
		return fmt.Errorf("%w: it allows %d more messages, this side may send %d of %d", errWire, h.allowed, p.allowed, p.most)
	}
	p.allowed += int(h.allowed)
	switch h.kind {
	case asks:
		return p.fetched(h)
	case piece:
		return p.arrived(h)
	case hello:
		if h.number == 0 || h.number > 1<<16 || h.length == 0 || h.length > 1<<30 || h.allowed != 0 {
			return fmt.Errorf("%w: it has room for %d messages of %d bytes", errWire, h.number, h.length)
		}
		p.most, p.allowed, p.slotSize, p.answers = int(h.number), int(h.number), int(h.length), h.offset&answersFetch != 0
	case eager:
		if h.length > uint64(s.SlotSize) {
			return fmt.Errorf("%w: a message of %d bytes, slots have %d", errWire, h.length, s.SlotSize)
		}
		if copy(slot, p.keys[:min(maxKey, h.length)]); len(p.slow) > 0 {
			copy(slot[min(len(slot), maxKey):], p.scratch[:max(h.length, maxKey)-maxKey])
		}
		return p.port.Arrive(int(h.length))
	case offer:
		if h.number != p.last+1 || h.length == 0 || h.length > rdma.MaxLength || len(p.open) >= s.Slots {
			return fmt.Errorf("%w: it offers message %d of %d bytes after %d, %d are open", errWire, h.number, h.length, p.last, len(p.open))
		}
		p.last = h.number
		p.open[h.number] = &offered{append([]byte(nil), p.keys[:h.key]...), h.offset, h.length}
		return p.port.Complete(rdma.Entry{Kind: rdma.Offered, Message: h.number, Length: h.length})
	case taken:
		if len(p.loans) == 0 || p.loans[0].message != h.number || p.owes(h.number) {
			return fmt.Errorf("%w: it has taken message %d, which is not the oldest of the %d that it was offered", errWire, h.number, len(p.loans))
		}
		x := p.loans[0]
		p.loans = append(p.loans[:0], p.loans[1:]...)
		p.cache.unuse(x.entry)
		return errors.Join(p.port.Complete(rdma.Entry{Kind: rdma.LoanSent, Number: x.number}), p.loansCopied())
	case ended:
		if p.peerOver {
			return fmt.Errorf("%w: it has ended twice", errWire)
		}
		p.peerOver = true
		return p.port.Complete(rdma.Entry{Kind: rdma.PeerEnded})
	}
	return nil
}
