package trace

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Capture writes the packets of links to a pcapng file, which Wireshark opens with the
// dissector in the folder wireshark beside this file (docs/tracing.md). Every link is an
// interface of the file. A packet is written by one Write when its last byte has passed,
// without buffering, so after a crash the file has everything up to it.
//
// Errors of w are ignored, but after one nothing more is written: the file ends there.
type Capture struct {
	mu         sync.Mutex
	w          io.Writer
	interfaces uint32
	steps      *records // nil: none yet
	broken     bool
}

// NewCapture begins a section of a pcapng file on w, which may have other sections before. about is
// a comment that describes whose packets these are.
func NewCapture(w io.Writer, about string) *Capture {
	c := &Capture{w: w}
	c.put(sectionBlock("impi", about))
	return c
}

// Link captures the packets that l sends and receives, on an interface called name.
func (c *Capture) Link(l link.Link, name string, opts ...Option) link.Link {
	return c.link(l, name, collect(opts))
}

func (c *Capture) link(l link.Link, name string, o options) link.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(interfaceBlock(name, describe(name, o), recordHead+max(wire.HeaderSize+o.snap, o.sent, o.received, maxText)))
	out := &records{c: c, o: o, network: c.interfaces, direction: outbound, from: o.local, to: o.peer}
	in := &records{c: c, o: o, network: c.interfaces, direction: inbound, from: o.peer, to: o.local}
	c.interfaces++
	return newLink(l, o, out, in)
}

func describe(name string, o options) string {
	if o.local == NoRank {
		return "IMPI link " + name
	}
	return fmt.Sprintf("IMPI link of rank %d, %s", o.local, name)
}

// put writes a block. The caller has mu, or is the only user.
func (c *Capture) put(block []byte) {
	if c.broken {
		return
	}
	_, err := c.w.Write(block)
	c.broken = err != nil
}

// A record of a capture has a head of its own before the packet's bytes, big-endian like
// IMPI:
//
//	 0  4  "IMPI" with the bits of each letter inverted
//	 4  1  version of this head: 1
//	 5  1  kind
//	 6  1  dialect: 0 published, 1 draft
//	 7  1  0
//	 8  4  rank of the sender; -1 if it has none or it is not known
//	12  4  rank of the receiver
//	16  8  offset of the bytes in their direction of the link
const (
	recordHead    = 24
	recordMagic   = ^uint32('I'<<24 | 'M'<<16 | 'P'<<8 | 'I')
	recordVersion = 1

	recordPacket   = 0 // header and data
	recordGreeting = 1 // bytes before the first packet
	recordNotice   = 2 // text: how the direction has ended
	recordStep     = 3 // a Step
)

type records struct {
	c         *Capture
	o         options
	network   uint32
	direction uint32
	from, to  int

	block  []byte // of the present packet
	open   bool
	left   uint64 // bytes of its data still to come
	cut    uint64 // bytes of its data that have passed and were not kept
	room   int    // bytes of data that may still be kept
	offset uint64
}

func (r *records) begin(kind byte, from, to int) {
	b := openPacket(r.block)
	b = binary.BigEndian.AppendUint32(b, recordMagic)
	b = append(b, recordVersion, kind, byte(r.o.dialect), 0)
	b = binary.BigEndian.AppendUint32(b, uint32(int32(from)))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(to)))
	r.block = binary.BigEndian.AppendUint64(b, r.offset)
	r.cut, r.open = 0, true
}

func (r *records) finish() {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.write()
}

// write is finish for a caller that has the capture's mu.
func (r *records) write() {
	r.block = closePacket(r.block, r.network, time.Now(), r.cut, r.direction)
	r.c.put(r.block)
	r.open = false
}

func (r *records) greeting(b []byte) {
	r.begin(recordGreeting, r.from, r.to)
	r.block = append(r.block, b...)
	r.offset += uint64(len(b))
	r.finish()
}

func (r *records) header(p *wire.Packet, raw []byte, left uint64) {
	from, to := r.from, r.to
	if p.Type != wire.PkFini { // FINI has no sender and receiver
		from, to = r.rank(p.Src), r.rank(p.Dest)
	}
	r.begin(recordPacket, from, to)
	r.block = append(r.block, raw...)
	r.offset += uint64(len(raw))
	if r.left, r.room = left, r.o.snap; left == 0 {
		r.finish()
	}
}

func (r *records) rank(p wire.Proc) int {
	if rank, known := r.o.rank(p); known {
		return rank
	}
	return NoRank
}

func (r *records) data(b []byte) {
	keep := b[:min(len(b), r.room)]
	r.block = append(r.block, keep...)
	r.room -= len(keep)
	r.cut += uint64(len(b) - len(keep))
	r.offset += uint64(len(b))
	if r.left -= uint64(len(b)); r.left == 0 {
		r.finish()
	}
}

func (r *records) notice(text string) {
	if r.open { // data that has not come counts as cut
		r.cut += r.left
		r.finish()
	}
	r.begin(recordNotice, r.from, r.to)
	r.block = append(r.block, text[:min(len(text), maxText)]...)
	r.finish()
}
