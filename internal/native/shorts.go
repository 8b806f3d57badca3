package native

import (
	"math"
	"slices"
	"unsafe"

	"github.com/openimpi/impi/internal/native/shortbox"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Short messages do not go into the stream of a link but by messages of their own, for which
// receives are posted: a message of the program is then one of the library, and C can send and
// receive it without Go. To the engine, and to the C code of procs, they are fast-box messages
// (docs/decisions/0030-fast-boxes.md): the boxes are in this proc's own memory, where shorts.c puts
// the received ones. Like boxes in memory that two procs share, they contain the number of bytes of
// the stream that come before them; and each message of the stream contains the number of short
// ones that were sent before it (tagAfter).

// shortMost is the longest message that Go sends in pieces, and that C sends so with any library.
// With some libraries C sends longer ones in pieces.
const shortMost = link.MaxCarried

type shorts struct {
	fast   *link.FastBoxes // nil: this side accepts none
	boxes  *shortbox.Boxes
	agreed bool // the other side accepts them
	out    uint64
	in     uint64            // bytes of the two streams
	come   uint64            // bytes of the peer's stream that have come
	next   link.EagerMessage // the next message to be posted
}

// TakeFastBoxes announces that this side accepts short messages. It is called once, before the link
// is used.
func (l *Link) TakeFastBoxes() bool {
	if l.set.shorts == nil || l.usable() != nil {
		return false
	}
	b, err := mapped(int(unsafe.Sizeof(shortbox.Boxes{})))
	if err != nil {
		return false // then messages are sent as packets
	}
	x := (*shortbox.Boxes)(unsafe.Pointer(&b[0]))
	x.Rank = int32(l.to)
	l.boxes = x
	l.fast = &link.FastBoxes{
		In: &x.In, InData: &x.Data[0], InArea: uint64(len(x.Data)), OutArea: link.FastBoxShare * shortMost,
		Read: &x.Read, Told: &x.Told, Sleeps: &x.Sleeps, Bytes: &x.Bytes,
		Limit: math.MaxUint64, Review: math.MaxUint64, Carrier: unsafe.Pointer(x),
	}
	l.set.shorts.attach(x)
	x.Bytes.Store(l.come)
	if c, err := l.set.chunk(); err == nil {
		l.launch(tagAllowance, c[:prefixSize], c)
	}
	return true
}

// FastBoxesAgreed reports whether both sides accept short messages.
func (s *shorts) FastBoxesAgreed() bool { return s.agreed && s.fast != nil }

func (l *Link) opens() bool { return l.FastBoxesAgreed() && !l.ended && l.usable() == nil }

// FastBoxRoom returns the place of the next message, of n bytes, or nil.
func (l *Link) FastBoxRoom(n int) *link.EagerMessage {
	if n > shortMost || !l.opens() || !l.fast.Admits(n) || !l.set.shorts.room() {
		return nil
	}
	return &l.next
}

// PostFastBox sends the message of FastBoxRoom.
func (l *Link) PostFastBox(data []byte) {
	m := link.CarriedMessage{
		Taken: uint32(l.fast.Taken), At: uint32(l.out), Context: l.next.Context, Rank: l.next.Rank, Tag: l.next.Tag,
		Bytes: uint32(len(data)), Kind: l.next.Kind,
	}
	if err := l.set.shorts.put(l.boxes, &m, data); err != nil {
		l.set.fail(err)
	}
	l.fast.Posted(len(data))
}

// NextFastBox returns the message that comes before any other byte, or nil.
func (l *Link) NextFastBox() *link.EagerMessage {
	if l.usable() != nil || len(l.queue) > 0 && l.queue[0].shortData {
		return nil
	}
	return l.fast.Next(l.in)
}

// FastBoxApart reports whether the data of a message come separately.
func (s *shorts) FastBoxApart(m *link.EagerMessage) bool { return m.Apart(m.Len) }

// BegunFastBox is NextFastBox: messages come whole.
func (l *Link) BegunFastBox() *link.EagerMessage { return l.NextFastBox() }

func (s *shorts) FastBoxData(m *link.EagerMessage, n uint32) []byte { return s.fast.Content(m, n) }

// FastBoxTaken releases the message of NextFastBox.
func (l *Link) FastBoxTaken(n uint32) {
	if m := l.fast.Begun(l.in); m != nil && m.Apart(n) {
		l.queue = slices.Insert(l.queue, 0, piece{size: int(n), after: l.taken(), shortData: true, held: none, number: none})
		l.markReady()
	}
	l.fast.Take(n)
	l.set.shorts.took(l.boxes, l.fast.Taken)
}

// FastBoxesAt returns the positions of the next messages, and whether C could send and take some
// now.
func (l *Link) FastBoxesAt() (out, in uint64, sends, takes bool) {
	return l.out, l.in, l.opens(), l.fast != nil && l.usable() == nil
}

// MoveFastBoxes moves this side's state to other memory.
func (s *shorts) MoveFastBoxes(to *link.FastBoxes) {
	*to = *s.fast
	s.fast = to
}

// FastBoxesSent returns how many messages were sent.
func (s *shorts) FastBoxesSent() uint64 { return s.fast.Sent }

// FastBoxesCharged returns the cost of the messages that were sent.
func (s *shorts) FastBoxesCharged() uint64 { return s.fast.Charged }

// FastBoxesTaken returns the cost of the messages that were taken.
func (s *shorts) FastBoxesTaken() uint64 { return s.fast.Received }

// LimitFastBoxes stops sending messages before they cost more than charge.
func (s *shorts) LimitFastBoxes(charge uint64) { s.fast.Limit = charge }

// ReviewFastBoxes sets the cost from which on only Go takes messages.
func (s *shorts) ReviewFastBoxes(taken uint64) { s.fast.Review = taken }

// WakeForFastBox does nothing: no proc sleeps that would have to be woken.
func (s *shorts) WakeForFastBox() {}

// LookForStream looks for messages, and reports whether something other than a whole short message
// has come on l: bytes of its stream, or a message whose data come apart.
func (h *Links) LookForStream(l *Link) bool {
	if h.err == nil {
		h.take()
	}
	if len(l.queue) > 0 || l.err != nil {
		return true
	}
	m := l.NextFastBox()
	return m != nil && m.Apart(m.Len)
}

// taken is how many short messages were taken, modulo 256 as in tags.
func (s *shorts) taken() uint8 {
	if s.fast == nil {
		return 0
	}
	return uint8(s.fast.Taken)
}

// sent is how many short messages were sent, modulo 256 as in tags.
func (s *shorts) sent() uint8 {
	if s.fast == nil {
		return 0
	}
	return uint8(s.fast.Sent)
}

// shut tells the peer that nothing is wanted any more.
func (l *Link) shut() {
	if l.boxes != nil && l.set.err == nil {
		_ = l.set.shorts.close(l.boxes, l.fast.Taken) // fails only with the library, which is reported elsewhere
	}
}

// carrier is what sends and receives them, and puts those that come into the boxes of their senders
// whenever the library is polled.
type carrier interface {
	attach(b *shortbox.Boxes)
	// put sends a short message, for which there has to be room. took gets how many were taken.
	put(b *shortbox.Boxes, m *link.CarriedMessage, data []byte) error
	took(b *shortbox.Boxes, taken uint64)
	room() bool
	// fetch begins to receive the data of the message that was taken last, which come apart. drop
	// discards them.
	fetch(b *shortbox.Boxes, buf unsafe.Pointer, n int) (request, error)
	drop(b *shortbox.Boxes, n int) error
	// close drops the messages that have come, from the one with number taken on, and those that
	// will come.
	close(b *shortbox.Boxes, taken uint64) error
	// come returns the number of messages that were put into boxes, also by C.
	come() uint64
	// sending reports whether some messages are still being sent.
	sending() bool
}

// BeginShortMessages begins short messages, where the library lets any thread call it.
func (h *Links) BeginShortMessages() { h.shorts = h.lib.beginShorts() }

func (h *Links) markShorts() {
	n := h.shorts.come()
	if n == h.seen {
		return
	}
	h.seen = n
	for _, l := range h.links {
		if l != nil && l.fast != nil && l.fast.Begun(l.in) != nil {
			l.markReady()
		}
	}
}

var _ link.ApartLink = (*Link)(nil)
