package trace

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// sink receives what one direction of a link carries. Slices are valid during the call
// only.
type sink interface {
	greeting(b []byte)
	// header begins a packet; left bytes of data follow, in calls of data.
	header(p *wire.Packet, raw []byte, left uint64)
	data(b []byte)
	// notice reports how the stream ended, or that it is not IMPI.
	notice(text string)
}

// decoder follows the packets of one direction of a link. Bytes come in the pieces in which
// the link moves them, so headers and data may be split anywhere.
type decoder struct {
	dialect wire.Dialect
	to      sink

	head   [wire.HeaderSize]byte
	have   int    // bytes of head
	left   uint64 // bytes of user data still to pass
	skip   int    // bytes before the first packet that have not come yet
	early  []byte // bytes before the first packet that have come
	offset uint64 // of the next byte in the stream
	start  uint64 // offset of the present header
	foreign,
	ended bool
}

func (d *decoder) write(b []byte) {
	for len(b) > 0 && !d.foreign {
		b = b[d.step(b):]
	}
	d.offset += uint64(len(b))
}

// step handles the start of b, as far as it belongs to one element, and returns its length.
func (d *decoder) step(b []byte) (n int) {
	defer func() { d.offset += uint64(n) }()
	switch {
	case d.skip > 0:
		n = min(d.skip, len(b))
		d.skip -= n
		if d.early = append(d.early, b[:n]...); d.skip == 0 {
			d.to.greeting(d.early)
		}
	case d.left > 0:
		n = int(min(d.left, uint64(len(b))))
		d.left -= uint64(n)
		d.to.data(b[:n])
	default:
		if d.have == 0 {
			d.start = d.offset
		}
		n = copy(d.head[d.have:], b)
		d.have += n
		if d.have >= 4 && !d.known() {
			return n
		}
		if d.have == wire.HeaderSize {
			d.have = 0
			d.packet()
		}
	}
	return n
}

// known stops decoding if a header begins with a type that IMPI does not have: without its
// length the next header cannot be found.
func (d *decoder) known() bool {
	typ := wire.PacketType(binary.BigEndian.Uint32(d.head[:]))
	if typ.Known() {
		return true
	}
	d.foreign = true
	d.to.notice(fmt.Sprintf("not IMPI at byte %d: % x; nothing more of this direction is shown", d.start, d.head[:4]))
	return false
}

func (d *decoder) packet() {
	var p wire.Packet
	d.dialect.Header(d.head[:], &p)
	if p.Type.HasData() {
		d.left = uint64(p.Len)
	}
	d.to.header(&p, d.head[:], d.left)
}

func (d *decoder) end(why string) {
	if d.ended {
		return
	}
	d.ended = true
	switch {
	case d.foreign:
	case d.skip > 0:
		why += fmt.Sprintf(", inside the greeting %x: %d bytes missing", d.early, d.skip)
	case d.have > 0:
		why += fmt.Sprintf(", inside a header: %d of %d bytes", d.have, wire.HeaderSize)
	case d.left > 0:
		why += fmt.Sprintf(", %d bytes of data missing", d.left)
	}
	d.to.notice(why)
}
