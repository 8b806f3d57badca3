package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Type are the types that messages are made of: Go's numbers, bool, what is made
// from them, and Pair.
type Type = datatype.Element

// Pair is what MinLoc and MaxLoc reduce: a value and where it was found.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// Data goes to a peer as that peer's representation says. Among our own procs
// on machines of one byte order that is memory as it stands, and finding that
// out costs a comparison. All else, and what is not one piece of memory, is
// packed and unpacked by a stream where its bytes leave and arrive.

// cargo is the data of a message, on one side of it.
type cargo struct {
	mem   []byte  // as it travels
	items *stream // instead of mem
	count int64   // of items, and what they are, for information: a Kind, or Bits of a signature
	dtype uint64
}

// stream moves the items of a Buffer between memory and messages.
type stream struct {
	p     *process
	buf   Buffer
	rep   datatype.Representation // of the other side
	carry datatype.Carry
	fault error // the items lie where there is no memory
}

// Pack is of message.Source.
func (s *stream) Pack(dst []byte, off int64) {
	if s.p.guarded {
		s.packGuarded(dst, off)
		return
	}
	s.buf.typ.Encode(s.rep, dst, s.buf.mem, s.buf.count, off)
}

// Matched is of message.Sink.
func (s *stream) Matched(from message.Peer, _ int64) (room int64) {
	s.rep = s.p.dataOf(from)
	return s.buf.size(s.rep)
}

// Unpack is of message.Sink.
func (s *stream) Unpack(src []byte, off int64) {
	if s.p.guarded {
		s.unpackGuarded(src, off)
		return
	}
	s.buf.typ.Decode(s.rep, s.buf.mem, s.buf.count, off, src, &s.carry)
}

// came gives the size of the n bytes that s has taken, and what it counts: bytes
// in memory, unless they are no whole elements.
func (s *stream) came(n int64) (int64, datatype.Representation) {
	t := s.buf.typ
	if s.rep == datatype.Native || t.Identity(s.rep) {
		return n, datatype.Native
	}
	if count, whole := t.Elements(s.rep, n); whole {
		if n, ok := t.Stream(datatype.Native, count); ok {
			return n, datatype.Native
		}
	}
	return n, s.rep
}

// stream makes a stream. The process is locked.
func (p *process) stream(b Buffer, rep datatype.Representation) *stream {
	n := len(p.streams)
	if n == 0 {
		return &stream{p: p, buf: b, rep: rep}
	}
	s := p.streams[n-1]
	p.streams = p.streams[:n-1]
	*s = stream{p: p, buf: b, rep: rep}
	return s
}

// keptStreams is how many streams are kept for reuse at most.
const keptStreams = 64

// retire takes back a stream, or nil, that no message uses any more.
func (p *process) retire(s *stream) {
	if s == nil || len(p.streams) == keptStreams {
		return
	}
	*s = stream{}
	p.streams = append(p.streams, s)
}

// unconverted tells that nobody's elements of k need any conversion.
func (p *process) unconverted(k datatype.Kind) bool { return p.plain>>k&1 != 0 }

// foreign tells whether elements of k travel to and from peer in another way than
// they lie in memory; peer may be anybody. So do all where they are compared.
func (p *process) foreign(peer message.Peer, k datatype.Kind) bool {
	if p.unconverted(k) {
		return false
	}
	return p.check || peer < 0 || !p.dataOf(peer).Identity(k)
}

// foreignItems is foreign for items of a datatype.
func (p *process) foreignItems(peer message.Peer, t *Datatype) bool {
	switch {
	case p.homogeneous:
		return false
	case peer >= 0:
		return !t.Identity(p.dataOf(peer))
	}
	for _, rep := range p.kinds {
		if !t.Identity(rep) {
			return true
		}
	}
	return false
}

// cargo gives elements of k in b as they travel to or from peer, which may be
// anybody for what is received. The process is locked.
func (p *process) cargo(peer message.Peer, b []byte, k datatype.Kind) cargo {
	if p.foreign(peer, k) {
		return p.items(peer, elements(b, k))
	}
	return cargo{mem: b, count: int64(len(b) / k.Size()), dtype: uint64(k)}
}

// items is cargo for a Buffer that has been checked.
func (p *process) items(peer message.Peer, b Buffer) cargo {
	k, _ := b.typ.Kind()
	x := cargo{count: int64(b.count), dtype: uint64(k)}
	foreign := p.foreignItems(peer, b.typ)
	if p.check {
		x.count, x.dtype = p.sign(peer, &b)
	} else if !foreign {
		if mem, ok := b.run(); ok {
			x.mem = mem
			return x
		}
	}
	rep := datatype.Native
	if foreign && peer >= 0 {
		rep = p.dataOf(peer)
	}
	x.items = p.stream(b, rep)
	return x
}
