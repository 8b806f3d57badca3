package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// What the two sides of a Conn send each other: messages with a header, followed by data or a key.
const (
	headerSize  = 32
	maxKey      = 256
	wireVersion = 1

	// LeastMessage is the least that Limits.Message can be.
	LeastMessage = 2048
)

type kind uint8

const (
	hello kind = 1 // number: messages that the sender has room for; length: bytes of each; offset: bits of what it can do; the first message
	eager kind = 2 // a message; its data follow
	offer kind = 3 // a message of length bytes at offset of memory, whose key follows: number
	taken kind = 4 // the message that was offered by this number was read
	ended kind = 5 // the last message was sent
	more  kind = 6 // nothing but the allowance in its header
	asks  kind = 7 // length bytes at offset of the message that was offered by this number are wanted
	piece kind = 8 // they follow; each is the answer to one asks, in order
)

// answersFetch is a bit of a hello's offset: the sender answers asks.
const answersFetch = 1

// header is the head of a message on a Conn.
type header struct {
	kind    kind
	key     uint16 // bytes of the key
	allowed uint32 // further messages that may be sent to the sender of this
	number  uint64
	length  uint64
	offset  uint64
}

func (h *header) hasData() bool { return h.kind == eager || h.kind == piece }

var errWire = errors.New("the other side has broken the protocol of package fabric")

func (h *header) put(b []byte) []byte {
	b = b[:headerSize]
	b[0], b[1] = byte(h.kind), wireVersion
	binary.BigEndian.PutUint16(b[2:], h.key)
	binary.BigEndian.PutUint32(b[4:], h.allowed)
	binary.BigEndian.PutUint64(b[8:], h.number)
	binary.BigEndian.PutUint64(b[16:], h.length)
	binary.BigEndian.PutUint64(b[24:], h.offset)
	return b
}

// parseHeader reads the header of a message of n bytes in all.
func parseHeader(b []byte, n int) (h header, err error) {
	if n < headerSize {
		return h, fmt.Errorf("%w: a message of %d bytes, the header has %d", errWire, n, headerSize)
	}
	h = header{
		kind: kind(b[0]), key: binary.BigEndian.Uint16(b[2:]), allowed: binary.BigEndian.Uint32(b[4:]),
		number: binary.BigEndian.Uint64(b[8:]), length: binary.BigEndian.Uint64(b[16:]), offset: binary.BigEndian.Uint64(b[24:]),
	}
	rest := n - headerSize
	switch {
	case b[1] != wireVersion:
		return h, fmt.Errorf("%w: it speaks version %d, this side %d", errWire, b[1], wireVersion)
	case h.kind < hello || h.kind > piece:
		return h, fmt.Errorf("%w: a message of kind %d", errWire, h.kind)
	case h.hasData() && (rest == 0 || uint64(rest) != h.length), !h.hasData() && rest != int(h.key), h.key > maxKey:
		return h, fmt.Errorf("%w: a message of kind %d has %d bytes behind its header, which says %d and a key of %d", errWire, h.kind, rest, h.length, h.key)
	}
	return h, nil
}
