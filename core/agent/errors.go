package agent

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// ErrProtocol is wrapped by every *ProtocolError.
var ErrProtocol = errors.New("IMPI packet protocol violated")

// ErrTruncated is wrapped by the Err of an event when a link ended in the middle of a
// packet, and by the error of a refused greeting that ended early.
var ErrTruncated = errors.New("ended early")

// ErrUnreached is wrapped by the Err of a HostDied event if packets wait for the host, but no
// channel to it can be made on demand.
var ErrUnreached = errors.New("a packet waits for it, but no channel can be made")

// ErrLink is wrapped by the errors of calls with a link, host or proc that is not valid
// there. Such a call changes nothing.
var ErrLink = errors.New("agent: wrong link")

// Peer is the host or proc at the other end of a link.
type Peer struct {
	Host   wire.HostRank
	Client wire.ClientRank
	Rank   wire.WorldRank // of a local proc, or NoRank if the peer is a host
}

// NoRank is the Rank of a peer that is a host.
const NoRank wire.WorldRank = -1

// String returns the name of the peer for a message.
func (p Peer) String() string {
	if p.Rank == NoRank {
		return fmt.Sprintf("host %d (client %d)", p.Host, p.Client)
	}
	return fmt.Sprintf("proc %d (host %d, client %d)", p.Rank, p.Host, p.Client)
}

// ProtocolError describes how a peer broke the packet protocol (IMPI ch.3, Packet Protocol). Its
// link is not read any more.
type ProtocolError struct {
	Peer  Peer
	Field string // name of the packet's field in the standard
	Value string // value of the field
	Rule  string // reason why the value is wrong
}

// Error returns a text with the peer, the field, its value and the rule.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%v sent %s %s: %s", e.Peer, e.Field, e.Value, e.Rule)
}

// Unwrap returns ErrProtocol.
func (e *ProtocolError) Unwrap() error { return ErrProtocol }

func (p *endpoint) violation(field string, value any, rule string, args ...any) *ProtocolError {
	return &ProtocolError{Peer: p.peer, Field: field, Value: fmt.Sprint(value), Rule: fmt.Sprintf(rule, args...)}
}
