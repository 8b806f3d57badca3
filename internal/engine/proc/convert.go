package proc

import (
	"fmt"
	"runtime/debug"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
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

// Payload is the data of a message, on one side of it.
type Payload struct {
	Mem   []byte  // as it travels
	Items *Stream // instead of mem
	Count int64   // of items, and what they are, for information: a Kind, or Bits of a signature
	Dtype uint64
}

// Stream moves the items of a Buffer between memory and messages.
type Stream struct {
	cv    *conversion
	Buf   Buffer
	Rep   datatype.Representation // of the other side
	carry datatype.Carry
	fault error // the items lie where there is no memory
}

// Pack is of message.Source.
func (s *Stream) Pack(dst []byte, off int64) {
	if s.cv.guarded {
		s.packGuarded(dst, off)
		return
	}
	s.Buf.typ.Encode(s.Rep, dst, s.Buf.mem, s.Buf.count, off)
}

// Matched is of message.Sink.
func (s *Stream) Matched(from message.Peer, _ int64) (room int64) {
	s.Rep = s.cv.DataOf(from)
	return s.Buf.Size(s.Rep)
}

// Unpack is of message.Sink.
func (s *Stream) Unpack(src []byte, off int64) {
	if s.cv.guarded {
		s.unpackGuarded(src, off)
		return
	}
	s.Buf.typ.Decode(s.Rep, s.Buf.mem, s.Buf.count, off, src, &s.carry)
}

// came returns the size of n received bytes, and the representation that it counts: that of
// memory, unless they are no whole elements.
func (s *Stream) came(n int64) (int64, datatype.Representation) {
	t := s.Buf.typ
	if s.Rep == datatype.Native || t.Identity(s.Rep) {
		return n, datatype.Native
	}
	if count, whole := t.Elements(s.Rep, n); whole {
		if n, ok := t.Stream(datatype.Native, count); ok {
			return n, datatype.Native
		}
	}
	return n, s.Rep
}

// sites reports which procs run another library.
type sites interface {
	Foreign(peer message.Peer) bool
	ForeignClient(client wire.ClientRank) bool
	Clients() *comm.Clients
}

// conversion is how the elements of messages travel: as the other side has them.
type conversion struct {
	sites       sites
	check       bool                      // messages say what their elements are
	data        *reps                     // of user data
	Kinds       []datatype.Representation // the different ones of data
	Homogeneous bool                      // all of data is Native
	plain       uint64                    // bit k: nobody's elements of kind k need conversion
	guarded     bool                      // memory of messages may not be there
	streams     []*Stream                 // to be used again
}

// stream makes a stream. The process is locked.
func (cv *conversion) stream(b Buffer, rep datatype.Representation) *Stream {
	n := len(cv.streams)
	if n == 0 {
		return &Stream{cv: cv, Buf: b, Rep: rep}
	}
	s := cv.streams[n-1]
	cv.streams = cv.streams[:n-1]
	*s = Stream{cv: cv, Buf: b, Rep: rep}
	return s
}

// keptStreams is how many streams are kept for reuse at most.
const keptStreams = 64

// Retire takes back a stream, or nil, that no message uses any more.
func (cv *conversion) Retire(s *Stream) {
	if s == nil || len(cv.streams) == keptStreams {
		return
	}
	*s = Stream{}
	cv.streams = append(cv.streams, s)
}

// unconverted reports whether elements of k need no conversion with any proc.
func (cv *conversion) unconverted(k datatype.Kind) bool { return cv.plain>>k&1 != 0 }

// foreign reports whether elements of k need conversion between memory and messages of peer,
// which may be any peer. If elements are compared, all of them do.
func (cv *conversion) foreign(peer message.Peer, k datatype.Kind) bool {
	if cv.unconverted(k) {
		return false
	}
	return cv.check || peer < 0 || !cv.DataOf(peer).Identity(k)
}

// foreignItems is foreign for items of a datatype.
func (cv *conversion) foreignItems(peer message.Peer, t *Datatype) bool {
	switch {
	case cv.Homogeneous:
		return false
	case peer >= 0:
		return !t.Identity(cv.DataOf(peer))
	}
	for _, rep := range cv.Kinds {
		if !t.Identity(rep) {
			return true
		}
	}
	return false
}

// payload makes the payload of elements of k in b, to or from peer, which may be any peer for a
// receive. The process is locked.
func (cv *conversion) payload(peer message.Peer, b []byte, k datatype.Kind) Payload {
	if cv.foreign(peer, k) {
		return cv.Items(peer, elements(b, k))
	}
	return Payload{Mem: b, Count: int64(len(b) / k.Size()), Dtype: uint64(k)}
}

// Items is payload for a Buffer, which has been checked.
func (cv *conversion) Items(peer message.Peer, b Buffer) Payload {
	k, _ := b.typ.Kind()
	x := Payload{Count: int64(b.count), Dtype: uint64(k)}
	foreign := cv.foreignItems(peer, b.typ)
	if cv.check {
		x.Count, x.Dtype = cv.sign(peer, &b)
	} else if !foreign {
		if mem, ok := b.Run(); ok {
			x.Mem = mem
			return x
		}
	}
	rep := datatype.Native
	if foreign && peer >= 0 {
		rep = cv.DataOf(peer)
	}
	x.Items = cv.stream(b, rep)
	return x
}

// With CheckVariable the packets of messages between procs of this library say what elements were
// sent: pk_count how many, pk_dtype a hash of their sequence. The receive compares that with the
// beginning of its own sequence. So all messages of programs have streams then, which know it, and
// none is a fast-box message, which has no room.

// sign is what the packets of a message to peer say about b.
func (cv *conversion) sign(peer message.Peer, b *Buffer) (count int64, dtype uint64) {
	if !cv.kin(peer) {
		k, _ := b.typ.Kind()
		return int64(b.count), uint64(k)
	}
	s := b.typ.Signature(b.count)
	return s.Len, s.Bits()
}

// kin reports whether peer runs this library.
func (cv *conversion) kin(peer message.Peer) bool {
	return peer >= 0 && (cv.sites.Foreign(peer) || !cv.sites.ForeignClient(cv.sites.Clients().Of(comm.Proc(peer))))
}

// compared is the error of a message with other elements than items, if its sender has said
// what they are.
func (cv *conversion) compared(r *message.Request, items *Stream) error {
	if !cv.check || items == nil {
		return nil
	}
	n, dtype := r.Sent()
	m := r.Result()
	sent, ok := datatype.SignatureOf(n, dtype)
	if !ok || !cv.kin(m.Peer) {
		return nil
	}
	t, count := items.Buf.typ, items.Buf.count
	switch want, fits := t.Prefix(count, max(n, 0)); {
	case n == 0, n > 0 && fits && sent.Matches(want):
		return nil
	case sent.Any(), t.Signature(count).Any():
		return nil
	}
	return fmt.Errorf("%w: rank %d sent %v with tag %d, and the receive is for %s", ErrSignature, m.Source, sent, m.Tag, t.Sequence(count))
}

func UseMemoryCheck(there func(b []byte) bool) {
	if p, err := Current(); err == nil {
		p.Lock()
		defer p.Unlock()
		p.Data.guarded = true
		p.Eng.CheckMemory(there)
	}
}

// packGuarded is Pack where the items may lie where there is no memory. What is missing of a
// message that has begun travels as zeros, so that the link keeps step.
func (s *Stream) packGuarded(dst []byte, off int64) {
	if s.fault != nil {
		clear(dst)
		return
	}
	defer s.rescue(debug.SetPanicOnFault(true), dst)
	s.Buf.typ.Encode(s.Rep, dst, s.Buf.mem, s.Buf.count, off)
}

// unpackGuarded is Unpack where the items may lie where there is no memory. What comes after is
// dropped.
func (s *Stream) unpackGuarded(src []byte, off int64) {
	if s.fault != nil {
		return
	}
	defer s.rescue(debug.SetPanicOnFault(true), nil)
	s.Buf.typ.Decode(s.Rep, s.Buf.mem, s.Buf.count, off, src, &s.carry)
}

// rescue makes an error of a fault of memory.
func (s *Stream) rescue(before bool, dst []byte) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	at, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	s.fault = fmt.Errorf("%w: there is no memory at %#x", ErrBuffer, at.Addr())
	clear(dst)
}

// verdict is the error of a message: that of s, which may be nil, or else err.
func (s *Stream) verdict(err error) error {
	if s != nil && s.fault != nil {
		return s.fault
	}
	return err
}
