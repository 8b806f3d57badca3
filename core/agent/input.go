package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// maxCarry is the most bytes of an unfinished packet that are copied from one chunk to the
// next. For more than that the old chunk is kept.
const maxCarry = 4096

// input is the reading side of a link: bytes of a chunk, cut into packets, and
// consecutive packets for one destination gathered into runs.
//
//	0 ... run ..... start ........ pos ...... end ...... len(buf)
//	      | packets | this packet, | not seen | free
//	      | to dest | as far as    | yet      |
//	                | it is here
type input struct {
	c               *chunk
	run, start, pos int
	end             int
	lent            bool // Input has returned memory of c, and the driver may be reading into it
	free            [1][]byte

	dest    *endpoint // destination of the run
	packets int       // packets in the run

	kind   wire.PacketType // of this packet
	size   int             // size of this packet; 0: its header is not complete
	left   int             // bytes of this packet that have not come or were not parsed yet
	target *endpoint       // destination of this packet; nil: dropped
	held   []seg           // parts of this packet in earlier chunks
}

// idle reports whether the input can return its chunk to the pool.
func (in *input) idle() bool { return !in.lent && in.run == in.end }

// Input returns the memory for the next bytes of the link; the driver reads into it and
// calls Received. It is nil if the link must not be read: it is closed, or its peer broke
// the protocol.
func (a *Agent) Input(l LinkID) [][]byte {
	p := a.lookup(l)
	if p == nil || p.err != nil {
		return nil
	}
	in := &p.in
	switch {
	case in.c == nil:
		in.take(a.pool.get())
	case len(in.c.buf)-in.end < len(in.c.buf)/8:
		in.turn(&a.pool)
	}
	in.lent = true
	in.free[0] = in.c.buf[in.end:]
	return in.free[:]
}

func (in *input) take(c *chunk) {
	c.reader = in
	in.c = c
	in.run, in.start, in.pos, in.end = 0, 0, 0, 0
}

// turn makes the input go on in another chunk. The part of a packet that has arrived is
// copied there if it is short or ends in the header; otherwise held refers to it where it
// is.
func (in *input) turn(p *pool) {
	old, start, end := in.c, in.start, in.end
	rest := old.buf[start:end]
	old.reader = nil
	in.take(p.get())
	switch {
	case in.size == 0 || len(rest) <= min(maxCarry, p.size/4):
		in.end = copy(in.c.buf, rest)
		if in.size != 0 {
			in.pos = in.end
		}
	case in.target != nil && len(rest) > 0:
		in.held = append(in.held, seg{old, start, end, true})
		return // the held segment takes over the input's reference
	}
	p.put(old)
}

// Received records that n bytes were read into the memory of Input. Packets that they complete are
// now in the Output of their destinations. The error is nil, a *ProtocolError or a *FailedError;
// after an error the driver closes the link and calls Closed.
func (a *Agent) Received(l LinkID, n int) error {
	p := a.lookup(l)
	if p == nil {
		return fmt.Errorf("%w: %d leads nowhere", ErrLink, l)
	}
	if p.err != nil {
		return p.err
	}
	in := &p.in
	if !in.lent || n < 0 || n > len(in.free[0]) {
		panic(fmt.Sprintf("agent: Received(%d, %d)", l, n))
	}
	in.lent = false
	in.end += n
	if err := a.parse(p); err != nil {
		p.err = err
		return err
	}
	if c := in.c; in.idle() && c.refs == 1 {
		c.reader, in.c = nil, nil
		a.pool.put(c)
	}
	return nil
}

func (a *Agent) parse(p *endpoint) (err error) {
	in := &p.in
	for {
		if in.size == 0 {
			if in.end-in.pos < wire.HeaderSize {
				break
			}
			if wrong := a.header(p, in.c.buf[in.pos:in.pos+wire.HeaderSize]); wrong != nil {
				err = wrong
				break
			}
		}
		n := min(in.left, in.end-in.pos)
		if in.kind > wire.PkFini {
			p.inquiry.special = append(p.inquiry.special, in.c.buf[in.pos:in.pos+n]...)
		}
		in.pos += n
		in.left -= n
		if in.left > 0 {
			break
		}
		a.packet(in)
		if in.kind == wire.PkFail {
			err = p.failed()
			break
		}
		if in.kind > wire.PkFini {
			if wrong := p.takeOurs(a); wrong != nil {
				err = wrong
				break
			}
		}
	}
	a.flush(in)
	return err
}

func (a *Agent) packet(in *input) {
	switch {
	case in.kind >= wire.PkFini:
		a.flush(in)
		in.run = in.pos
	case in.kind == wire.PkProtoAck && in.mustPass():
		a.flush(in)
		in.target.urgent.copyIn(&a.pool, in.c.buf[in.start:in.pos], false)
		a.stats.Packets++
		a.stats.Bytes += wire.HeaderSize
		a.touch(in.target)
		in.run = in.pos
	default:
		a.append(in)
	}
	in.start, in.size = in.pos, 0
}

// mustPass reports whether the packet is a PROTOACK that would wait behind other packets, which it
// must not (IMPI ch.3, Packet Protocol).
func (in *input) mustPass() bool {
	t := in.target
	return t != nil && t.accepts() && (t.out.n > 0 || t == in.dest && in.packets > 0)
}

// append adds the packet to the run, or begins another run. A packet of which parts are in earlier
// chunks comes first in its chunk, so the run before it has been flushed already.
func (a *Agent) append(in *input) {
	if in.target != in.dest {
		a.flush(in)
		in.dest = in.target
	}
	for i, s := range in.held {
		if in.dest.accepts() {
			in.dest.out.add(&a.pool, s.c, s.off, s.end, true)
			a.stats.Bytes += uint64(s.end - s.off)
		}
		a.pool.put(s.c)
		in.held[i] = seg{}
	}
	in.held = in.held[:0]
	in.packets++
}

func (a *Agent) flush(in *input) {
	switch {
	case in.run == in.start:
	case in.dest == nil || !in.dest.accepts():
		a.stats.Dropped += uint64(in.packets)
	default:
		in.dest.out.add(&a.pool, in.c, in.run, in.start, false)
		a.stats.Packets += uint64(in.packets)
		a.stats.Bytes += uint64(in.start - in.run)
		a.touch(in.dest)
	}
	in.run, in.packets = in.start, 0
}

func (in *input) abandon(p *pool) {
	for _, s := range in.held {
		p.put(s.c)
	}
	if c := in.c; c != nil {
		c.reader = nil
		p.put(c)
	}
	*in = input{}
}
