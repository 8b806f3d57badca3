// Package handover is the descriptor channel between a plugin and its node: fd 3 of the
// plugin, one end of a SOCK_SEQPACKET socket pair. Each message is one record that names a
// link and carries the link's descriptors (SCM_RIGHTS). The end of the channel means that
// the process at its other end has died. The channel exists because gRPC passes no
// descriptors.
package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes of a record in bytes, and limits of what it carries.
const (
	HeaderLen      = 32
	MaxPreread     = 64 << 10
	MaxRecord      = HeaderLen + MaxPreread
	MaxDescriptors = 8
)

// The header's constants.
const (
	magic   = 0x494d5046 // "IMPF"
	version = 1
)

// Kind is what a record carries. There is one kind so far.
type Kind uint16

// The kinds.
const (
	KindLink Kind = 1 // the descriptors of a link, from the plugin
)

// Mode is the number of a data plane.
type Mode uint16

// The modes. ModeFD has one descriptor; ModePeerSHM and ModeRing have two, of the memory
// and the socket; ModeStream has two, of the socket and a pipe; ModeRDMA has
// three, of the memory, the socket and the region channel.
const (
	ModeFD      Mode = 1
	ModePeerSHM Mode = 2
	ModeRing    Mode = 3
	ModeStream  Mode = 4
	ModeRDMA    Mode = 5
)

// Record is one message on the descriptor channel.
type Record struct {
	Kind    Kind
	Link    uint64 // the link's number, as in the gRPC service
	Mode    Mode
	Side    uint32 // of the memory; ModePeerSHM and ModeRing only
	Preread []byte // bytes of the peer that the plugin has read already
	FDs     []int  // owned by the holder of the record
}

// ErrRecord is wrapped by the error of a record that breaks the format.
var ErrRecord = errors.New("bad record on the descriptor channel")

// AppendRecord appends r's bytes, without the descriptors, to b. It fails if r has more
// bytes or descriptors than a record can carry.
func AppendRecord(b []byte, r *Record) ([]byte, error) {
	if len(r.Preread) > MaxPreread {
		return b, fmt.Errorf("%w: %d bytes were read ahead, %d can be handed over", ErrRecord, len(r.Preread), MaxPreread)
	}
	if len(r.FDs) > MaxDescriptors {
		return b, fmt.Errorf("%w: %d descriptors, at most %d", ErrRecord, len(r.FDs), MaxDescriptors)
	}
	b = binary.BigEndian.AppendUint32(b, magic)
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint16(b, uint16(r.Kind))
	b = binary.BigEndian.AppendUint64(b, r.Link)
	b = binary.BigEndian.AppendUint16(b, uint16(r.Mode))
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.FDs)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Preread)))
	b = binary.BigEndian.AppendUint32(b, r.Side)
	b = binary.BigEndian.AppendUint32(b, 0) // reserved
	return append(b, r.Preread...), nil
}

// ParseRecord reads a record and the number of descriptors that it announces. Preread
// refers to b.
func ParseRecord(b []byte) (r Record, fds int, err error) {
	if len(b) < HeaderLen {
		return r, 0, fmt.Errorf("%w: %d bytes, the header alone has %d", ErrRecord, len(b), HeaderLen)
	}
	if m := binary.BigEndian.Uint32(b); m != magic {
		return r, 0, fmt.Errorf("%w: magic %#08x, want %#08x", ErrRecord, m, uint32(magic))
	}
	if v := binary.BigEndian.Uint16(b[4:]); v != version {
		return r, 0, fmt.Errorf("%w: version %d, want %d", ErrRecord, v, version)
	}
	r.Kind = Kind(binary.BigEndian.Uint16(b[6:]))
	r.Link = binary.BigEndian.Uint64(b[8:])
	r.Mode = Mode(binary.BigEndian.Uint16(b[16:]))
	fds = int(binary.BigEndian.Uint16(b[18:]))
	n := binary.BigEndian.Uint32(b[20:])
	r.Side = binary.BigEndian.Uint32(b[24:])
	switch {
	case fds > MaxDescriptors:
		return r, 0, fmt.Errorf("%w: link %d announces %d descriptors, at most %d", ErrRecord, r.Link, fds, MaxDescriptors)
	case n > MaxPreread:
		return r, 0, fmt.Errorf("%w: link %d announces %d bytes read ahead, at most %d", ErrRecord, r.Link, n, MaxPreread)
	case int(n) != len(b)-HeaderLen:
		return r, 0, fmt.Errorf("%w: link %d announces %d bytes read ahead and brings %d", ErrRecord, r.Link, n, len(b)-HeaderLen)
	}
	if n > 0 {
		r.Preread = b[HeaderLen:]
	}
	return r, fds, nil
}
