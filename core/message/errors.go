package message

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// The errors of requests.
var (
	// ErrTruncate: the message was longer than the receive's buffer. The part that fits was stored;
	// the sender does not notice (MPI-4.1, 3.2.4, MPI_ERR_TRUNCATE; IMPI has no packet that refuses
	// a message).
	ErrTruncate = errors.New("message: longer than the receive buffer")
	// ErrPeerDown: the other proc, or the link to it, is gone.
	ErrPeerDown = errors.New("message: peer is down")
	// ErrMemory: the receive's buffer cannot be written. The message was received and
	// dropped.
	ErrMemory = errors.New("message: the buffer of the receive is not writable memory")
	// ErrBuffer: a buffered send does not fit into the attached buffer, or the buffer cannot be
	// attached or detached (MPI-4.1, 3.6, MPI_ERR_BUFFER).
	ErrBuffer = errors.New("message: attached buffer")
)

// ErrProtocol is wrapped by every *ProtocolError.
var ErrProtocol = errors.New("message: peer breaks the IMPI protocol")

// ErrConfig is wrapped by the errors of New and AddWorld.
var ErrConfig = errors.New("message: configuration")

var errForgotten = errors.New("its world is not connected any more")

// ProtocolError describes how a peer has broken the protocol. The link that it came from cannot be
// used any more.
type ProtocolError struct {
	Link   LinkID
	Peer   Peer      // sender of the packet; NoPeer if the sender is what is wrong
	Proc   wire.Proc // sender in the packet's pk_src
	Type   wire.PacketType
	Field  string // pk_ name of the offending field
	Value  string
	Reason string
}

// Error returns a text with link, peer, packet type, field and value.
func (e *ProtocolError) Error() string {
	who := "unknown proc " + e.Proc.String()
	if e.Peer != NoPeer {
		who = fmt.Sprintf("peer %d (%s)", e.Peer, e.Proc)
	}
	return fmt.Sprintf("%s: link %d, %s, %s packet: %s = %s: %s", ErrProtocol, e.Link, who, e.Type, e.Field, e.Value, e.Reason)
}

func (e *ProtocolError) Unwrap() error { return ErrProtocol }
