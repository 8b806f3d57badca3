package main

import "encoding/binary"

// Each message of the protocol has a head of 24 bytes, little endian:
//
//	0  kind
//	1  version, 1
//	2  flags: 1, of connect and accept: a link of messages
//	3  zero
//	4  length of what follows the head
//	8  number of the link at the receiver, which nobody else knows; 0 with connect
//	16 a value whose meaning the kind says
//
// A dialler sends connect until it is answered; a listener answers accept or refuse; the dialler
// confirms. Only then is there a link: the address in a connect may be anybody's, and nothing but
// the answer's number, which comes back with the confirmation, shows that it is the sender's.
const (
	kindConnect  = 1 + iota // value: the dialler's number; then 4 bytes window and its address
	kindAccept              // value: the listener's number; then 4 bytes window
	kindRefuse              // value: why
	kindConfirm             // the link exists
	kindData                // value: position of its first byte in the stream
	kindCredit              // value: position up to which the receiver has room
	kindFin                 // value: length of the stream, which ends
	kindClose               // as kindFin, and the sender takes no more bytes
	kindCloseAck            // kindClose has come
	kindReset               // the link is broken
	kindPing                // the sender lives
)

// flagMessages in a connect says that the dialler's links carry messages whose memory can be read, for
// data plane "rdma"; in an accept, that this one does. It is not accepted unless it was offered.
const flagMessages = 1

const (
	headSize    = 24
	wireVersion = 1
	maxBlob     = 128 // bytes of an address
	smallRoom   = headSize + 4 + maxBlob

	leastWindow = 64 << 10
	mostWindow  = 64 << 20
)

// Why a connect is refused.
const (
	refusedClosed = 1 // no listener
	refusedFull   = 2 // there are too many links
)

type head struct {
	kind  byte
	size  int
	to    uint64
	value uint64
	flags byte
}

func (h head) put(b []byte) {
	b[0], b[1], b[2], b[3] = h.kind, wireVersion, h.flags, 0
	binary.LittleEndian.PutUint32(b[4:], uint32(h.size))
	binary.LittleEndian.PutUint64(b[8:], h.to)
	binary.LittleEndian.PutUint64(b[16:], h.value)
}

func parse(b []byte) (head, []byte, bool) {
	if len(b) < headSize || b[1] != wireVersion || b[2]&^flagMessages != 0 || b[3] != 0 {
		return head{}, nil, false
	}
	h := head{b[0], int(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), b[2]}
	return h, b[headSize:], h.size == len(b)-headSize && (h.flags == 0 || h.kind == kindConnect || h.kind == kindAccept)
}

func window(b []byte) (uint64, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(b)
	return uint64(n), n >= leastWindow && n <= mostWindow
}
