package link

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// FastBoxLink is a link that also carries fast-box messages (docs/plugin-protocol.md):
// short messages, each in a line of memory of its own, which both sides see if it is a Memory,
// too. The receiver polls the line in which the message itself arrives, and neither side makes
// or parses a packet.
//
// A fast-box message has a position in the stream: it comes after that many bytes and
// before those that follow. So fast-box messages and packets keep the order in which they
// were sent. The calls for sending count as Send and those for receiving as Recv, for the
// rule about concurrent calls.
type FastBoxLink interface {
	Link

	// TakeFastBoxes announces that this side takes fast-box messages. It is called once,
	// before the link is used. It returns false if the link has no fast boxes.
	TakeFastBoxes() bool

	// FastBoxRoom returns the place of the next fast-box message, of n bytes, which comes after
	// everything that was sent before. PostFastBox sends it. It returns nil if there is no room for
	// n bytes, if something reserved is not committed, or if the other side does not accept such
	// messages. Then a packet has to be sent.
	FastBoxRoom(n int) *EagerMessage

	// PostFastBox copies the data of the message for which FastBoxRoom returned a place, and
	// its length, and sends it.
	PostFastBox(data []byte)

	// NextFastBox returns the fast-box message that comes before any other byte, or nil.
	// The other side can still change it, so each field must be read only once.
	NextFastBox() *EagerMessage

	// BegunFastBox is like NextFastBox, but also returns a message some of whose data may still be
	// missing.
	BegunFastBox() *EagerMessage

	// FastBoxData returns the data of m, which NextFastBox returned; n is its length as it
	// was read. It returns nil if there can be no such message. The other side can still
	// change the data.
	FastBoxData(m *EagerMessage, n uint32) []byte

	// FastBoxTaken releases the message that NextFastBox returned, with n bytes.
	FastBoxTaken(n uint32)

	// FastBoxesAt returns the positions in the two streams of the next fast-box messages, and
	// whether code with direct access to the boxes could send and take messages now.
	FastBoxesAt() (out, in uint64, sends, takes bool)

	// MoveFastBoxes moves this side's state of the fast boxes to other memory, so that C
	// code can use it, too, while no goroutine calls the link.
	MoveFastBoxes(to *FastBoxes)

	// FastBoxesAgreed reports whether the other side takes fast-box messages.
	FastBoxesAgreed() bool

	// FastBoxesSent returns how many fast-box messages were sent.
	FastBoxesSent() uint64

	// FastBoxesCharged returns the total cost, by FastBoxCost, of the fast-box messages that were
	// sent, FastBoxesTaken of those that were taken.
	FastBoxesCharged() uint64
	FastBoxesTaken() uint64

	// LimitFastBoxes stops sending fast-box messages before they cost more than charge in
	// all. At first there is no limit.
	LimitFastBoxes(charge uint64)

	// ReviewFastBoxes asks code with direct access to the boxes to take no more messages by itself
	// once the total cost of the messages taken has reached taken.
	ReviewFastBoxes(taken uint64)

	// WakeForFastBox wakes the other side if it sleeps. Code with direct access to the
	// boxes calls it after it has sent a message.
	WakeForFastBox()
}

// ApartLink is a FastBoxLink that has messages whose data come apart: their boxes have the envelope
// alone, and their data, of more than MaxFastBox bytes or fewer, go straight to where they belong.
type ApartLink interface {
	FastBoxLink

	// FastBoxApart reports whether the data of m, which NextFastBox returned, come apart.
	// FastBoxData returns nil for it. After FastBoxTaken, Recv returns the data before anything
	// else. No fast-box message comes before they were all received.
	FastBoxApart(m *EagerMessage) bool
}

const (
	// FastBoxCount is the number of fast-box messages that one direction holds.
	FastBoxCount = 64
	// InFastBox is the number of data bytes that a fast box itself has room for. The first 32 are
	// in the line that the receiver polls.
	InFastBox = 96
	// MaxFastBox is the longest data of a fast-box message in any link, in bytes: data of
	// more than InFastBox lie in memory behind the boxes, if there is some.
	MaxFastBox = MaxFastBoxArea / FastBoxShare
	// MaxFastBoxArea is the most memory for such data in one direction.
	MaxFastBoxArea = 128 << 10
	// EnvelopeCost is the cost of each message that is kept until it is received, in addition to
	// its data, in bytes.
	EnvelopeCost = 320
	// FastBoxLag is how many messages a reader takes before it publishes that it has taken
	// them.
	FastBoxLag = FastBoxCount / 4
	// FastBoxOwed is the part of the memory for data that taken messages occupy when their reader
	// publishes that, if they are fewer than FastBoxLag.
	FastBoxOwed = 8
	// FastBoxShare is the part of the memory for data that one message may use.
	FastBoxShare = 2
	// FastBoxAlign is the alignment of data in the memory for data, in bytes.
	FastBoxAlign = 64
	// FastBoxPiece is the number of bytes of longer data that are written before the reader may
	// copy them, so that both copy at the same time.
	FastBoxPiece = 16 << 10
	// leastPage is the smallest page size of any machine.
	leastPage = 4 << 10
	// patience is how many times a reader looks for the next piece before it does other things.
	patience = 4 << 10
)

// FastBoxCost returns the cost of a fast-box message with n bytes of data in the limit of what a
// receiver keeps: an envelope, and the data, rounded up as memory is allocated.
func FastBoxCost(n uint32) uint64 {
	return EnvelopeCost + 1<<bits.Len32(max(n, 128)-1)
}

// EagerMessage is a message in standard mode from one proc of a link to the other, in a fast box.
type EagerMessage struct {
	Context uint64
	Rank    int32 // of the sender in the communicator
	Tag     int32
	Len     uint32 // bytes of data
	Kind    uint32 // kind of the data, for information

	// Data are the data if there are no more than InFastBox, else their offset in the
	// memory for data, in the first four bytes, and, if there are more than FastBoxPiece,
	// how many of them have been written, in the next four.
	Data [InFastBox]byte
}

// FastBoxNowhere is the offset of data that come apart.
const FastBoxNowhere = math.MaxUint32

// Apart reports whether the data of m, of n bytes, come apart.
func (m *EagerMessage) Apart(n uint32) bool { return n > InFastBox && *m.offset() == FastBoxNowhere }

func (m *EagerMessage) offset() *uint32 { return (*uint32)(unsafe.Pointer(&m.Data)) }
func (m *EagerMessage) filled() *uint32 { return (*uint32)(unsafe.Pointer(&m.Data[4])) }

// FastBoxPart returns how many of n bytes of data of m have been written.
func FastBoxPart(m *EagerMessage, n uint32) uint32 {
	if n <= FastBoxPiece {
		return n
	}
	return min(n, atomic.LoadUint32(m.filled()))
}

// CopyFastBox copies all data of m, as they come, and reports whether they came soon. If not it
// stops, and another call begins again.
func CopyFastBox(to, data []byte, m *EagerMessage) bool {
	n := uint32(len(data))
	for done, i := uint32(0), 0; i < patience; i++ {
		if part := FastBoxPart(m, n); part > done {
			copy(to[done:], data[done:part])
			done, i = part, 0
		}
		if done == n {
			return true
		}
	}
	return n == 0
}

// fastBox is the place of a fast-box message. The upper half of mark is the number of the
// message, from 1, the lower half its position in the stream, both modulo 2^32. mark is
// written last.
type fastBox struct {
	mark    atomic.Uint64
	message EagerMessage
}

// FastBoxPage is the memory of the fast-box messages of one direction.
type FastBoxPage [FastBoxCount]fastBox

// FastBoxPageSize is the size in bytes of a FastBoxPage, which FastBoxPageAt needs.
const FastBoxPageSize = int(unsafe.Sizeof(FastBoxPage{}))

// FastBoxPageAt returns the page at the start of b, which must be aligned to 8 bytes.
func FastBoxPageAt(b []byte) *FastBoxPage {
	return (*FastBoxPage)(unsafe.Pointer(&b[:FastBoxPageSize][0]))
}

// FastBoxes is one side's state of the fast-box messages of both directions.
type FastBoxes struct {
	Out    *FastBoxPage   // written by this side
	In     *FastBoxPage   // written by the other side
	Read   *atomic.Uint64 // messages of Out that the other side has taken
	Told   *atomic.Uint64 // messages of In that this side has taken, for the other side
	Sleeps *atomic.Uint32 // 1 while the other side sleeps
	Bytes  *atomic.Uint64 // bytes of the stream that the other side has written

	Sent  uint64 // messages sent since the beginning
	Seen  uint64 // last value of Read
	Taken uint64 // messages taken since the beginning

	Charged  uint64 // cost of the messages that were sent
	Limit    uint64 // maximum of Charged
	Received uint64 // cost of the messages that were taken
	Review   uint64 // value of Received from which on only Go takes messages
	Payload  uint64 // bytes of data that code with direct access has sent

	// Memory for longer data of each direction: Area bytes, a power of two, or 0.
	OutData, InData *byte
	OutArea, InArea uint64
	Placed          uint64               // bytes of OutData that were used since the beginning
	Freed           uint64               // bytes of Placed that the other side no longer needs
	Owed            uint64               // bytes of InData that were taken and not reported yet
	Ends            [FastBoxCount]uint64 // Placed after each message

	// Carrier, of a link whose other side does not see this memory, identifies the link for the C
	// code that carries the messages. They are not written to Out and OutData then.
	Carrier unsafe.Pointer
}

// CarrierCalls are functions of C for the messages of links with a Carrier. Their prototypes are in
// cmd/libmpi/fastpath_layout.h.
type CarrierCalls struct {
	Pump unsafe.Pointer // takes up to a number of messages, of all links, into their boxes
	Put  unsafe.Pointer // sends a message of up to MaxCarried bytes, or returns 0
	Took unsafe.Pointer // receives the number of messages taken
	All  unsafe.Pointer // of all links: for Pump

	// For messages whose data come apart. number identifies what is still under way, for Test; it
	// is -1 if nothing is.
	Lend  unsafe.Pointer // sends a longer message, of up to MaxLent bytes, or returns 0
	Fetch unsafe.Pointer // receives the data of the message that is taken next

	// Collective operations of the library that carries the messages.
	Begin   unsafe.Pointer // begins an operation; number is -1 if it is over
	Test    unsafe.Pointer // returns 0 if what has a number is over, or -1
	Library unsafe.Pointer
}

const (
	// MaxCarried is the maximum number of bytes of a message for Put of CarrierCalls.
	MaxCarried = 8000
	// MaxLent is the maximum number of bytes of a message for Lend of CarrierCalls.
	MaxLent = 4 << 20
)

// CarriedMessage is a message without its data, for Put and Lend of CarrierCalls.
type CarriedMessage struct {
	Taken   uint32 // number of the receiver's messages that the sender has taken
	At      uint32 // bytes of the stream that come before it
	Context uint64
	Rank    int32 // of the sender in the communicator
	Tag     int32
	Bytes   uint32 // of data
	Kind    uint32 // of the data, for information
}

// CarriedOperation is a collective operation, for Begin of CarrierCalls.
type CarriedOperation struct {
	Comm  int32 // number of the communicator
	Phase int32 // what it is: a coll.Phase
	Type  int32 // of the elements of reductions, by the library's numbers
	Op    int32 // of reductions, by the library's numbers
	Root  int32
	N     int64   // bytes, or elements of reductions
	In    uintptr // address of the data; 0: in place, or not significant
	Out   uintptr
}

// longest returns the longest data that go through an area.
func longest(area uint64) uint64 { return max(InFastBox, area/FastBoxShare) }

// Room returns the place of the next fast-box message, of n bytes, to be filled in and posted,
// or nil.
func (l *FastBoxes) Room(n int) *EagerMessage {
	if !l.Admits(n) {
		return nil
	}
	if n > InFastBox {
		end := l.place(uint64(n)) + uint64(n)
		if end-l.Freed > l.OutArea {
			l.look()
			if end-l.Freed > l.OutArea {
				return nil
			}
		}
	}
	return &l.Out[l.Sent%FastBoxCount].message
}

// Admits reports whether the next message may have n bytes, and a box is free for it.
func (l *FastBoxes) Admits(n int) bool {
	if uint64(n) > longest(l.OutArea) || l.Charged+FastBoxCost(uint32(n)) > l.Limit {
		return false
	}
	if l.Sent-l.Seen >= FastBoxCount {
		l.look()
	}
	return l.Sent-l.Seen < FastBoxCount
}

// Posted counts a message of n bytes that a Carrier has taken.
func (l *FastBoxes) Posted(n int) {
	l.Charged += FastBoxCost(uint32(n))
	l.Sent++
}

// place returns where the next n bytes of data go, counted from the beginning: in one piece.
func (l *FastBoxes) place(n uint64) uint64 {
	at := l.Placed
	if rest := l.OutArea - at&(l.OutArea-1); rest < n {
		at += rest
	}
	return at
}

// look finds out how many messages the other side has taken. It ignores an impossible
// number.
func (l *FastBoxes) look() {
	seen := l.Read.Load()
	if n := l.Sent - seen; n > FastBoxCount || n >= l.Sent-l.Seen {
		return
	}
	l.Seen = seen
	l.Freed = l.Ends[(seen-1)%FastBoxCount]
}

// Post sends data in the message for which Room has returned a place; at is its position in
// the stream. The caller then checks whether the other side sleeps; the last store is not
// reordered with that check.
func (l *FastBoxes) Post(data []byte, at uint64) {
	i, n := l.Sent%FastBoxCount, uint64(len(data))
	if n > FastBoxPiece {
		touch(data)
	}
	box := &l.Out[i]
	box.message.Len = uint32(n)
	to := box.message.Data[:]
	placed := l.Placed
	if n > InFastBox {
		start := l.place(n)
		placed = (start + n + FastBoxAlign - 1) &^ (FastBoxAlign - 1)
		start &= l.OutArea - 1
		*box.message.offset(), *box.message.filled() = uint32(start), 0
		to = unsafe.Slice(l.OutData, l.OutArea)[start : start+n]
	}
	if n <= FastBoxPiece {
		ntcopy.Copy(to, data) // if data are not there, nothing has changed
	}
	l.Placed, l.Ends[i] = placed, placed
	l.Charged += FastBoxCost(uint32(n))
	l.Sent++
	mark := l.Sent<<32 | at&math.MaxUint32
	if n <= FastBoxPiece {
		box.mark.Swap(mark)
		return
	}
	box.mark.Store(mark)
	for part := 0; len(data) > part; {
		part += ntcopy.Copy(to[part:], data[part:min(len(data), part+FastBoxPiece)])
		atomic.SwapUint32(box.message.filled(), uint32(part))
	}
}

// touch reads a byte of each page, so that data that are not there fault before their message has
// begun.
//
//go:noinline
func touch(data []byte) (sum byte) {
	for i := 0; i < len(data); i += leastPage {
		sum += data[i]
	}
	return sum + data[len(data)-1]
}

// Next returns the fast-box message whose position is at, or nil if there is none yet, or if
// its data are not complete.
func (l *FastBoxes) Next(at uint64) *EagerMessage {
	m := l.Begun(at)
	if m == nil {
		return nil
	}
	if n := m.Len; FastBoxPart(m, n) < n && uint64(n) <= longest(l.InArea) { // impossible ones are for the caller
		return nil
	}
	return m
}

// Begun is like Next, but also returns a message some of whose data may be missing.
func (l *FastBoxes) Begun(at uint64) *EagerMessage {
	p := &l.In[l.Taken%FastBoxCount]
	if p.mark.Load() != (l.Taken+1)<<32|at&math.MaxUint32 {
		return nil
	}
	return &p.message
}

// Content returns the data of m, whose length was read as n, or nil if there can be no such
// message.
func (l *FastBoxes) Content(m *EagerMessage, n uint32) []byte {
	if n <= InFastBox {
		return m.Data[:n]
	}
	at := uint64(atomic.LoadUint32(m.offset())) // once: the other side can write to it
	if uint64(n) > longest(l.InArea) || at > l.InArea-uint64(n) {
		return nil
	}
	return unsafe.Slice(l.InData, l.InArea)[at : at+uint64(n) : at+uint64(n)]
}

// Take releases the message that Next returned, whose length was read as n.
func (l *FastBoxes) Take(n uint32) {
	l.Taken++
	l.Received += FastBoxCost(n)
	if n > InFastBox {
		l.Owed += uint64(n)
	}
	if l.Taken%FastBoxLag == 0 || l.Owed > 0 && l.Owed >= l.InArea/FastBoxOwed {
		l.Owed = 0
		l.Told.Store(l.Taken)
	}
}

// Ahead returns how many bytes after position at come before the next fast-box message; ok
// is false if there is none. If the other side writes nonsense the number is nonsense.
func (l *FastBoxes) Ahead(at uint64) (n uint32, ok bool) {
	mark := l.In[l.Taken%FastBoxCount].mark.Load()
	return uint32(mark) - uint32(at), uint32(mark>>32) == uint32(l.Taken+1)
}
