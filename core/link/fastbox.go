package link

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// FastBoxLink is a Memory that also carries fast-box messages (docs/plugin-protocol.md):
// short messages, each in a line of memory of its own that both sides see. The receiver
// polls the line in which the message itself arrives, and neither side makes or parses a
// packet.
//
// A fast-box message has a position in the stream: it comes after that many bytes and
// before those that follow. So fast-box messages and packets keep the order in which they
// were sent. The calls for sending count as Send and those for receiving as Recv, for the
// rule about concurrent calls.
type FastBoxLink interface {
	Memory

	// TakeFastBoxes announces that this side takes fast-box messages. It is called once,
	// before the link is used. It returns false if the link has no fast boxes.
	TakeFastBoxes() bool

	// FastBoxRoom returns the place of the next fast-box message, which comes after
	// everything that was sent before; PostFastBox sends it. It returns nil if there is no
	// room, if something reserved is not committed, or if the other side takes no fast-box
	// messages. Then a packet has to be sent.
	FastBoxRoom() *EagerMessage

	// PostFastBox sends the message in the place that FastBoxRoom returned.
	PostFastBox()

	// NextFastBox returns the fast-box message that comes before any other byte, or nil.
	// The other side can still change it, so each field must be read only once.
	NextFastBox() *EagerMessage

	// FastBoxesAt returns the positions in the two streams of the next fast-box messages,
	// and whether code with direct access to the boxes could send and take some now.
	FastBoxesAt() (out, in uint64, sends, takes bool)

	// MoveFastBoxes moves this side's state of the fast boxes to other memory, so that C
	// code can use it, too, while no goroutine calls the link.
	MoveFastBoxes(to *FastBoxes)

	// FastBoxesAgreed reports whether the other side takes fast-box messages.
	FastBoxesAgreed() bool

	// FastBoxesSent returns how many fast-box messages were sent, FastBoxesTaken how many
	// were taken.
	FastBoxesSent() uint64
	FastBoxesTaken() uint64

	// LimitFastBoxes stops sending fast-box messages once sent of them were sent. At first
	// there is no limit.
	LimitFastBoxes(sent uint64)

	// WakeForFastBox wakes the other side if it sleeps. Code with direct access to the
	// boxes calls it after it has sent a message.
	WakeForFastBox()

	// FastBoxTaken says that the message of NextFastBox is not needed any more.
	FastBoxTaken()
}

const (
	// FastBoxCount is how many fast-box messages one direction holds.
	FastBoxCount = 64
	// MaxFastBox is the longest data of a fast-box message, in bytes. The first 32 bytes
	// are in the line that the receiver polls.
	MaxFastBox = 96
	// fastBoxLag is how many messages a reader takes before it publishes that it has taken
	// them.
	fastBoxLag = FastBoxCount / 4
)

// EagerMessage is a message in standard mode from one proc of a link to the other, in a fast box.
type EagerMessage struct {
	Context uint64
	Rank    int32 // of the sender in the communicator
	Tag     int32
	Len     uint32 // bytes of Data that are valid
	Kind    uint32 // kind of the data, for information
	Data    [MaxFastBox]byte
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

// FastBoxPageSize is the size of a FastBoxPage.
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
	Limit uint64 // most messages to send
}

// Room returns the place of the next fast-box message, to be filled in and posted, or nil.
func (l *FastBoxes) Room() *EagerMessage {
	if l.Sent == l.Limit {
		return nil
	}
	if l.Sent-l.Seen >= FastBoxCount {
		seen := l.Read.Load()
		if l.Sent-seen >= FastBoxCount { // or Read has an impossible number
			return nil
		}
		l.Seen = seen
	}
	return &l.Out[l.Sent%FastBoxCount].message
}

// Post sends the message in the place of Room; at is its position in the stream. The caller
// then checks whether the other side sleeps; the store is not reordered with that check.
func (l *FastBoxes) Post(at uint64) {
	p := &l.Out[l.Sent%FastBoxCount]
	l.Sent++
	p.mark.Swap(l.Sent<<32 | at&math.MaxUint32)
}

// Next returns the fast-box message whose position is at, or nil if there is none yet.
func (l *FastBoxes) Next(at uint64) *EagerMessage {
	p := &l.In[l.Taken%FastBoxCount]
	if p.mark.Load() != (l.Taken+1)<<32|at&math.MaxUint32 {
		return nil
	}
	return &p.message
}

// Take says that the message of Next is not needed any more.
func (l *FastBoxes) Take() {
	l.Taken++
	if l.Taken%fastBoxLag == 0 {
		l.Told.Store(l.Taken)
	}
}

// Ahead returns how many bytes after position at come before the next fast-box message; ok
// is false if there is none. If the other side writes nonsense the number is nonsense.
func (l *FastBoxes) Ahead(at uint64) (n uint32, ok bool) {
	mark := l.In[l.Taken%FastBoxCount].mark.Load()
	return uint32(mark) - uint32(at), uint32(mark>>32) == uint32(l.Taken+1)
}
