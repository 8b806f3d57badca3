package message

import (
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// AnySource and AnyTag are the wildcards of a receive's or a probe's Envelope.
const (
	AnySource = match.AnySource
	AnyTag    = match.AnyTag
)

// Envelope is what messages are matched by.
type Envelope struct {
	Context wire.ContextID
	Rank    wire.CommRank // of the sender in the communicator; AnySource to receive from everybody
	Tag     wire.Tag      // AnyTag to receive every tag
}

// Mode is how a send completes.
type Mode uint8

// The modes of MPI.
const (
	Standard    Mode = iota // when the buffer can be used again
	Synchronous             // when, besides, the matching receive has started
	Buffered                // at once, out of a Room
	Ready                   // as Standard; the receive is posted already, says the caller
)

// Status describes a finished receive or a probed message.
type Status struct {
	Source    wire.CommRank // sender's rank in the communicator
	Peer      Peer          // the sender
	Tag       wire.Tag
	Cancelled bool
	Len       int64 // bytes of the message, or what of it was stored
	Err       error // ErrTruncate, ErrPeerDown or nil
}

// Request is a send or a receive under way. It belongs to the engine: use it
// until Release, and not afterwards.
type Request struct {
	// User is the driver's own; the engine only clears it in Release.
	User any

	course
	gen   uint32
	freed bool                  // Release came before the end
	entry match.Entry[*Request] // of a posted receive
	prev  *Request              // in a peer's queue
	next  *Request
}

// course is what one use of a request leaves behind in it, and the next must not
// see. Request keeps the rest: who leaves a queue leaves no trace of it.
type course struct {
	status  Status
	kind    requestKind
	state   requestState
	mode    Mode
	done    bool // as the user sees it
	busy    bool // the engine still holds references
	needAck bool // sends: SYNCACK is outstanding
	cancel  cancelState
	pooled  bool  // data is ours
	peer    *peer // sends: destination; receives: source, once matched
	from    Peer  // receives: the only possible source, or NoPeer
	flights int32 // parts of data that a link has not taken yet
	env     Envelope
	room    int64 // sends: of the attached buffer, given back at the end; receives: bytes of the message that fit
	taken   *Room // sends: what room is of
	id      wire.RequestID
	remote  wire.RequestID // the other side's id for the message
	data    []byte         // sends: the whole message; receives: the user's buffer
	apart   *scattered     // instead of data
	pos     int64          // bytes committed to the link, or received
	total   int64          // bytes of the message
	count   int64          // of items and what they are: of this send, or as the sender of what is received says
	dtype   uint64
	seq     uint64
	msg     *Message // sends to self: what waits for a receive; receives: what is still arriving
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
	stateRest                        // continuation packets are to go or to come
	stateSent                        // sends: all packets are committed
	stateEnded                       // the engine has no interest any more
)

// Done tells whether the request is finished: for a send that the buffer is the
// caller's again, for a receive that Status is filled in.
func (r *Request) Done() bool { return r.done }

// Posted tells whether the request is a receive that no message has come for.
func (r *Request) Posted() bool { return r.state == statePosted }

// Status describes what was received, once the request is done. For a send only
// Cancelled and Err mean anything.
func (r *Request) Status() Status { return r.status }

// Result is Status where it lies: until Release.
func (r *Request) Result() *Status { return &r.status }

// Sent gives what the sender of a received message has said of it for information: how many
// items, and what they are. Fast-box messages say nothing.
func (r *Request) Sent() (count int64, dtype uint64) { return r.count, r.dtype }

// Err tells why the request failed, once it is done.
func (r *Request) Err() error { return r.status.Err }

// Generation changes with every Release, so that a handle which carries it can
// tell that its request is another one by now.
func (r *Request) Generation() uint32 { return r.gen }

// IsRecv tells whether the request is a receive.
func (r *Request) IsRecv() bool { return r.kind == kindRecv }
