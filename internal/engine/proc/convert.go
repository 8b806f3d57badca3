package proc

import (
	"fmt"
	"runtime/debug"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// Type is the constraint of Go types of message elements: numbers, bool, types derived from them,
// and Pair.
type Type = datatype.Element

// Pair is the element that MinLoc and MaxLoc reduce (MPI-4.1, 6.9.4): a value and its index.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// Data is sent to a peer in the representation that the peer's site accepts. Among our own procs on
// machines of one byte order that is memory as it is, which one comparison finds out. Other data,
// and items with gaps, are packed and unpacked by a Stream when their bytes leave and arrive.

// Payload is the data of a message on one side of it.
type Payload struct {
	Mem   []byte  // in the form in which it is sent
	Items *Stream // instead of Mem, if items are packed or unpacked
	Count int64   // number of items and a Kind, or the Bits of a signature, for pk_count and pk_dtype
	Dtype uint64
}

// Stream moves the items of a Buffer between memory and messages.
type Stream struct {
	cv    *conversion
	Buf   Buffer
	Rep   datatype.Representation // the representation in which the message is sent
	exact bool                    // no numbers are rounded
	carry datatype.Carry
	fault error // memory fault that moving the items has caused
}

// Pack implements message.Source.
func (s *Stream) Pack(dst []byte, off int64) {
	if s.cv.guarded {
		s.packGuarded(dst, off)
		return
	}
	s.Buf.typ.Encode(s.Rep, dst, s.Buf.mem, s.Buf.count, off)
}

// Matched implements message.Sink.
func (s *Stream) Matched(from message.Peer, _ int64) (room int64) {
	if s.Rep = s.cv.messagesOf(from); s.exact {
		s.Rep = s.Rep.Exact()
	}
	return s.Buf.Size(s.Rep)
}

// Unpack implements message.Sink.
func (s *Stream) Unpack(src []byte, off int64) {
	if s.cv.guarded {
		s.unpackGuarded(src, off)
		return
	}
	s.Buf.typ.Decode(s.Rep, s.Buf.mem, s.Buf.count, off, src, &s.carry)
}

// receivedSize returns the size of n received bytes for the status, and the representation that it
// is in: memory, unless they end within an element.
func (s *Stream) receivedSize(n int64) (int64, datatype.Representation) {
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

type sites interface {
	Foreign(peer message.Peer) bool
	ForeignClient(client wire.ClientRank) bool
	Clients() *comm.Clients
}

type conversion struct {
	sites       sites
	check       bool                      // messages carry signatures of their elements
	data        *reps                     // the representation of each rank's user data
	Kinds       []datatype.Representation // the different representations in data
	Homogeneous bool                      // all procs have the representation Native
	plain       uint64                    // bit k: elements of kind k need no conversion, whoever the peer is
	guarded     bool                      // accesses to the program's buffers may fault
	streams     []*Stream                 // for reuse
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

const keptStreams = 64

// Retire takes back a stream that no message uses any more. s may be nil.
func (cv *conversion) Retire(s *Stream) {
	if s == nil || len(cv.streams) == keptStreams {
		return
	}
	*s = Stream{}
	cv.streams = append(cv.streams, s)
}

// unconverted reports whether elements of k need no conversion with any proc.
func (cv *conversion) unconverted(k datatype.Kind) bool { return cv.plain>>k&1 != 0 }

// foreign reports whether elements of k need conversion between memory and messages of peer, which
// may be any peer. If messages carry signatures, all elements do.
func (cv *conversion) foreign(peer message.Peer, k datatype.Kind) bool {
	if cv.unconverted(k) {
		return false
	}
	return cv.check || peer < 0 || !cv.messagesOf(peer).Identity(k)
}

// foreignItems reports whether items of t need conversion between memory and messages of peer,
// which may be any peer. exact is set for data whose numbers must not be rounded.
func (cv *conversion) foreignItems(peer message.Peer, t *Datatype, exact bool) bool {
	switch {
	case cv.Homogeneous:
		return false
	case peer >= 0 && exact:
		return !t.Identity(cv.DataOf(peer))
	case peer >= 0:
		return !t.Identity(cv.messagesOf(peer))
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

// Items returns the Payload of a Buffer, which has been checked.
func (cv *conversion) Items(peer message.Peer, b Buffer) Payload { return cv.items(peer, b, false) }

// Exactly is Items for data that is no message of the program: no numbers are rounded.
func (cv *conversion) Exactly(peer message.Peer, b Buffer) Payload { return cv.items(peer, b, true) }

func (cv *conversion) items(peer message.Peer, b Buffer, exact bool) Payload {
	k, _ := b.typ.Kind()
	x := Payload{Count: int64(b.count), Dtype: uint64(k)}
	foreign := cv.foreignItems(peer, b.typ, exact)
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
		if rep = cv.messagesOf(peer); exact {
			rep = rep.Exact()
		}
	}
	x.Items = cv.stream(b, rep)
	x.Items.exact = exact
	return x
}

// With CheckVariable the packets of messages between procs of this library describe the elements
// sent: pk_count is their number, pk_dtype a hash of their sequence. The receive compares that with
// the beginning of its own sequence. So every message of the program has a stream then, which has
// its signature, and none is a fast-box message, which has no room for it.

// sign returns pk_count and pk_dtype for the packets of a message with b to peer.
func (cv *conversion) sign(peer message.Peer, b *Buffer) (count int64, dtype uint64) {
	if !cv.kin(peer) {
		k, _ := b.typ.Kind()
		return int64(b.count), uint64(k)
	}
	s := b.typ.Signature(b.count)
	return s.Len, s.Bits()
}

// kin reports whether a peer runs this library.
func (cv *conversion) kin(peer message.Peer) bool {
	return peer >= 0 && (cv.sites.Foreign(peer) || !cv.sites.ForeignClient(cv.sites.Clients().Of(comm.Proc(peer))))
}

// compared returns an error if r has received other elements than those of items, as far as its
// sender has sent a signature.
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
		p.Boards.CanWrite = there
	}
}

// packGuarded is Pack where accesses to the program's buffers may fault. What cannot be read of a
// message that has begun is sent as zeros, so that the link stays usable.
func (s *Stream) packGuarded(dst []byte, off int64) {
	if s.fault != nil {
		clear(dst)
		return
	}
	defer s.rescue(debug.SetPanicOnFault(true), dst)
	s.Buf.typ.Encode(s.Rep, dst, s.Buf.mem, s.Buf.count, off)
}

// unpackGuarded is Unpack where accesses to the program's buffers may fault. What cannot be written
// is dropped.
func (s *Stream) unpackGuarded(src []byte, off int64) {
	if s.fault != nil {
		return
	}
	defer s.rescue(debug.SetPanicOnFault(true), nil)
	s.Buf.typ.Decode(s.Rep, s.Buf.mem, s.Buf.count, off, src, &s.carry)
}

func (s *Stream) rescue(before bool, dst []byte) {
	debug.SetPanicOnFault(before)
	if err := faulted(recover()); err != nil {
		s.fault = err
		clear(dst)
	}
}

// faulted returns the error of a panic that a fault of memory has caused, and goes on panicking
// with others.
func faulted(r any) error {
	if r == nil {
		return nil
	}
	at, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	return fmt.Errorf("%w: there is no memory at %#x", ErrBuffer, at.Addr())
}

// Touch calls f, which reads or writes the program's buffers. If they may be no valid memory, a
// fault is returned as the error, and f has done a part of its work.
func (cv *conversion) Touch(f func()) (err error) {
	if cv.guarded {
		defer func(before bool) {
			debug.SetPanicOnFault(before)
			err = faulted(recover())
		}(debug.SetPanicOnFault(true))
	}
	f()
	return nil
}

// Guarded reports whether accesses to the program's buffers may fault, so that they need Touch.
func (cv *conversion) Guarded() bool { return cv.guarded }

// Signs reports whether messages carry signatures of their elements.
func (cv *conversion) Signs() bool { return cv.check }

// Fault returns the memory fault that moving the items of s has caused, or nil. s may be nil.
func (s *Stream) Fault() error { return s.verdict(nil) }

// verdict returns the error of a message: that of s, which may be nil, or else err.
func (s *Stream) verdict(err error) error {
	if s != nil && s.fault != nil {
		return s.fault
	}
	return err
}
