package resume

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Version is the version of the protocol of docs/decisions/0015-link-resume.md that this package
// implements.
const Version = 1

const headerSize = 32

type kind uint8

const (
	kindHello kind = 1 + iota
	kindData
	kindAck
	kindFin
	kindGone
)

// String returns the name in the package's comment.
func (k kind) String() string {
	names := [...]string{"HELLO", "DATA", "ACK", "FIN", "GONE"}
	if k >= kindHello && k <= kindGone {
		return names[k-kindHello]
	}
	return fmt.Sprintf("frame of type %d", uint8(k))
}

// Flags of a frame.
const (
	flagSum     = 1 << 0 // both checksums are present
	flagWantSum = 1 << 1 // HELLO: all frames should have checksums
)

// header is the header of a frame (see Frames in the package comment).
type header struct {
	kind   kind
	flags  uint16
	length uint32
	seq    uint64
	ack    uint64
	sum    uint32 // checksum of the body
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum extends a CRC-32C by b.
func checksum(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// put writes the header to b[:headerSize], with its checksum if flagSum is set.
func (h *header) put(b []byte) {
	_ = b[headerSize-1]
	b[0], b[1] = Version, byte(h.kind)
	binary.BigEndian.PutUint16(b[2:], h.flags)
	binary.BigEndian.PutUint32(b[4:], h.length)
	binary.BigEndian.PutUint64(b[8:], h.seq)
	binary.BigEndian.PutUint64(b[16:], h.ack)
	binary.BigEndian.PutUint32(b[24:], h.sum)
	var own uint32
	if h.flags&flagSum != 0 {
		own = checksum(0, b[:28])
	}
	binary.BigEndian.PutUint32(b[28:], own)
}

// parseHeader reads b[:headerSize]. If the frame must have a checksum it is checked first,
// so that damage on the way is not taken for an error of the peer.
func parseHeader(b []byte, summed bool) (h header, err error) {
	_ = b[headerSize-1]
	h = header{
		kind:   kind(b[1]),
		flags:  binary.BigEndian.Uint16(b[2:]),
		length: binary.BigEndian.Uint32(b[4:]),
		seq:    binary.BigEndian.Uint64(b[8:]),
		ack:    binary.BigEndian.Uint64(b[16:]),
		sum:    binary.BigEndian.Uint32(b[24:]),
	}
	own := binary.BigEndian.Uint32(b[28:])
	has := h.flags&flagSum != 0
	switch {
	case (summed || has) && own != checksum(0, b[:28]):
		return h, fmt.Errorf("%w: header %x", ErrChecksum, b[:headerSize])
	case b[0] != Version:
		return h, fmt.Errorf("%w: %d, not %d", ErrVersion, b[0], Version)
	case h.kind < kindHello || h.kind > kindGone:
		return h, fmt.Errorf("%w: type %d", ErrFrame, b[1])
	case h.flags&^h.kind.flags() != 0:
		return h, fmt.Errorf("%w: %v with flags %#x", ErrFrame, h.kind, h.flags)
	case !has && (summed || h.kind.alwaysSummed()):
		return h, fmt.Errorf("%w: %v without checksum", ErrFrame, h.kind)
	case !has && (own != 0 || h.sum != 0):
		return h, fmt.Errorf("%w: %v with a checksum but no flag that says so", ErrFrame, h.kind)
	}
	return h, h.checkLength()
}

func (k kind) flags() uint16 {
	if k == kindHello {
		return flagSum | flagWantSum
	}
	return flagSum
}

func (k kind) alwaysSummed() bool { return k == kindHello || k == kindGone }

// checkLength checks that a frame of this type may have this length. The length of DATA is limited
// by the window, which is checked elsewhere.
func (h *header) checkLength() error {
	switch {
	case h.kind == kindData && h.length == 0:
		return fmt.Errorf("%w: DATA without any", ErrFrame)
	case h.kind == kindHello && h.length != helloBody:
		return fmt.Errorf("%w: HELLO with %d bytes instead of %d", ErrFrame, h.length, helloBody)
	case h.kind > kindData && h.length != 0:
		return fmt.Errorf("%w: %v with %d bytes", ErrFrame, h.kind, h.length)
	case h.length == 0 && h.sum != 0:
		return fmt.Errorf("%w: %v without bytes, but their checksum is %08x", ErrFrame, h.kind, h.sum)
	}
	return nil
}
