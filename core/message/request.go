package message

import (
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// AnySource and AnyTag are the wildcards of a receive's or a probe's Envelope: MPI_ANY_SOURCE and
// MPI_ANY_TAG (MPI-4.1, 3.2.4).
const (
	AnySource = match.AnySource
	AnyTag    = match.AnyTag
)

// Envelope is the part of a message by which it is matched (MPI-4.1, 3.2.3).
type Envelope struct {
	Context wire.ContextID
	Rank    wire.CommRank // rank of the sender in the communicator; AnySource to receive from any
	Tag     wire.Tag      // AnyTag to receive every tag
}

// Mode determines when a send completes (MPI-4.1, 3.4).
type Mode uint8

// The modes of MPI.
const (
	Standard    Mode = iota // when the buffer can be reused
	Synchronous             // like Standard, but not before the matching receive has started
	Buffered                // at once; the data is copied, within the limit of a BufferSpace
	Ready                   // as Standard; the caller guarantees that the receive is posted
)

// Status describes a finished receive or a probed message (MPI-4.1, 3.2.5).
type Status struct {
	Source    wire.CommRank // sender's rank in the communicator
	Peer      Peer          // the sender
	Tag       wire.Tag
	Cancelled bool
	Len       int64 // bytes of the message, or of the part that was stored
	Err       error // the reason of a failure, such as ErrTruncate or ErrPeerDown, or nil
}

// Request is a send or a receive under way (MPI-4.1, 3.7.1). It belongs to the engine: it may be
// used until Release, and not afterwards.
type Request struct {
	// User is for the driver; the engine only clears it in Release.
	User any

	course
	gen   uint32
	freed bool                  // Release was called before the request was done
	entry match.Entry[*Request] // queue entry of a posted receive
	prev  *Request              // neighbours in a peer's queue
	next  *Request
}

// course is the state of one use of a request, which is cleared for the next use. The other
// fields of Request need no clearing: a request that leaves a queue resets its links.
type course struct {
	status    Status
	kind      requestKind
	state     requestState
	mode      Mode
	done      bool // complete for the user
	busy      bool // the engine still holds references
	needAck   bool // sends: SYNCACK has not come yet
	cancel    cancelState
	pooled    bool  // data is from the engine's buffers
	peer      *peer // sends: destination; receives: source, once matched
	from      Peer  // receives: the only possible source, or NoPeer
	flights   int32 // parts of data that the link has not taken yet
	env       Envelope
	room      int64        // sends: taken in the attached buffer, returned at the end; receives: bytes of the message that fit
	taken     *BufferSpace // sends: BufferSpace of room
	id        wire.RequestID
	remote    wire.RequestID // the other side's ID for the message
	data      []byte         // sends: the whole message; receives: the user's buffer
	scattered *scattered     // used instead of data, if the data is not contiguous
	pos       int64          // bytes committed to the link, or received
	total     int64          // bytes of the message
	count     int64          // informational: number of items and their type, of this send or from the sender of the received message
	dtype     uint64
	seq       uint64
	msg       *Message // sends to self: the message that waits for a receive; receives: the message that is still arriving
}

type requestKind uint8

const (
	kindSend requestKind = iota
	kindRecv
)

type requestState uint8

const (
	stateQueued  requestState = iota // sends: first packet is not committed; receives: not posted yet
	statePosted                      // receives: not matched
	stateFirst                       // receives: matched, first packet is arriving
	stateWaiting                     // sends: first packet is committed, SYNCACK outstanding
	stateRest                        // continuation packets are still to be sent or received
	stateSent                        // sends: all packets are committed
	stateEnded                       // the engine does not use it any more
)

// Done reports whether the request is finished: the buffer of a send is the caller's again, the
// Status of a receive is filled in (MPI-4.1, 3.7.3).
func (r *Request) Done() bool { return r.done }

// Posted reports whether the request is a receive that has not been matched.
func (r *Request) Posted() bool { return r.state == statePosted }

// Side reports whether the request is a receive, and returns the other side, which is NoPeer for a
// receive from any source.
func (r *Request) Side() (receives bool, peer Peer) {
	if peer = r.from; r.peer != nil {
		peer = r.peer.index
	} else if r.kind == kindSend {
		peer = NoPeer
	}
	return r.kind == kindRecv, peer
}

// Context returns the context in which the request sends, or receives.
func (r *Request) Context() wire.ContextID { return r.env.Context }

// Status returns the description of the received message, once the request is done. For a send only
// Cancelled and Err have a meaning.
func (r *Request) Status() Status { return r.status }

// Result returns a pointer to the Status, which is valid until Release.
func (r *Request) Result() *Status { return &r.status }

// Sent returns information from the sender of a received message: the number of items, and their
// type. Fast-box messages have neither.
func (r *Request) Sent() (count int64, dtype uint64) { return r.count, r.dtype }

// Err returns why the request failed, once it is done.
func (r *Request) Err() error { return r.status.Err }

// Generation returns a number that changes with every Release, so that the owner of a handle can
// find out that its request has been reused.
func (r *Request) Generation() uint32 { return r.gen }
