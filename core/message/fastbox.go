package message

import (
	"math"

	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// FastBoxes is the part of link.FastBoxLink by which short messages are sent and taken
// beside the link's bytes.
//
// A fast-box message is equivalent to a DATA packet of which only the envelope and the data
// matter: both procs are known by the link, nothing answers it, and the number of fast
// boxes bounds how many are on their way, so that they are not counted for PROTOACKs.
type FastBoxes interface {
	FastBoxRoom(n int) *link.EagerMessage
	PostFastBox(data []byte)
	NextFastBox() *link.EagerMessage
	BegunFastBox() *link.EagerMessage
	FastBoxData(m *link.EagerMessage, n uint32) []byte
	FastBoxTaken(n uint32)
	FastBoxesSent() uint64
	FastBoxesCharged() uint64
	FastBoxesTaken() uint64
	LimitFastBoxes(charge uint64)
	ReviewFastBoxes(taken uint64)
	FastBoxesAgreed() bool
}

// apartBoxes are FastBoxes that have messages whose data come apart, as link.ApartLink does.
type apartBoxes interface {
	FastBoxApart(m *link.EagerMessage) bool
}

// UseFastBoxes lets short messages over l, which must be the direct link of one peer, leave as
// fast-box messages. In the draft dialect they stay packets, since a fast-box message cannot
// express all of their fields.
func (e *linkTable) UseFastBoxes(l LinkID, n FastBoxes) {
	if e.cfg.Dialect == wire.Draft {
		return
	}
	s := e.link(l)
	s.boxes, s.peer.fastBoxes = n, s
	s.apartBoxes, _ = n.(apartBoxes)
	s.peer.limitFastBoxes()
	s.peer.reviewFastBoxes()
}

// fitsFastBox reports whether the engine allows that the next message to p is a fast-box
// message: everything that was to leave before it has left.
func (p *peer) fitsFastBox() bool {
	s := p.link
	return s != nil && s.boxes != nil && p.firsts.head == nil &&
		s.placed == 0 && s.committed == 0 && s.ready.len == 0 && s.err == nil
}

// writeFastBox sends a message as a fast-box message and reports whether it did. It does
// not if dtype needs more than 32 bits.
func (p *peer) writeFastBox(env *Envelope, data []byte, dtype uint64) bool {
	if len(data) > link.MaxFastBox || dtype > math.MaxUint32 || !p.fitsFastBox() {
		return false
	}
	m := p.link.boxes.FastBoxRoom(len(data))
	if m == nil {
		return false
	}
	m.Context, m.Rank, m.Tag = uint64(env.Context), int32(env.Rank), int32(env.Tag)
	m.Kind = uint32(dtype)
	p.link.boxes.PostFastBox(data)
	p.bytes += uint64(len(data))
	return true
}

// TakeFastBoxes takes the fast-box messages that have come by l before the next byte of the stream,
// and reports whether there were any. One call takes at most as many as there are boxes, so that a
// peer that sends without end does not keep the driver from other work. Errors are those of
// Received.
func (e *reader) TakeFastBoxes(l LinkID) (progress bool, err error) {
	s := e.link(l)
	for i := 0; i < link.FastBoxCount && s.err == nil; i++ {
		n := s.boxes.NextFastBox()
		if n == nil {
			break
		}
		progress = true
		size := n.Len // read only once, since the other side can change it
		if s.apartBoxes != nil && s.apartBoxes.FastBoxApart(n) {
			s.err = e.takeApart(s, n, size)
		} else {
			s.err = e.takeFastBox(s, n, size)
		}
		s.boxes.FastBoxTaken(size)
	}
	if progress {
		e.review(s.peer)
	}
	return progress, s.err
}

func keyOf(n *link.EagerMessage) match.Key {
	return match.Key{Context: wire.ContextID(n.Context), Source: wire.CommRank(n.Rank), Tag: wire.Tag(n.Tag)}
}

// takeApart handles a fast-box message whose data come apart, like the header of a packet: the size
// bytes of data are the next that come by the link. Like all fast-box messages, it is not counted
// for PROTOACKs.
func (e *reader) takeApart(s *linkState, n *link.EagerMessage, size uint32) error {
	p, key := s.peer, keyOf(n)
	if size == 0 || key.Tag == wire.TagOutOfRange || s.payload || s.w > 0 || s.fini {
		return e.badFastBox(s, key.Tag, size, size > 0)
	}
	p.from = s
	e.in = wire.Packet{Type: wire.PkData, Src: p.proc, Len: size, MsgLen: uint64(size)}
	s.uncounted = true
	if p.down != nil || e.Failed(key.Context) != nil {
		e.counters.LatePackets++
		e.startPayload(s, p, nil)
		return nil
	}
	if r, ok := e.posted.Match(key); ok {
		e.begin(r, p, key, int64(size))
		r.state = stateFirst
		s.recv = r
		e.startPayload(s, p, r.data)
		return nil
	}
	m := e.newMessage(p, int64(size))
	m.keep(int64(link.FastBoxCost(size)))
	m.buf = e.buffers.get(int(size))
	e.unexpected.Add(&m.entry, key)
	s.msg = m
	e.startPayload(s, p, m.buf)
	return nil
}

// takeFastBox handles a fast-box message of size bytes like a packet that is complete.
func (e *reader) takeFastBox(s *linkState, n *link.EagerMessage, size uint32) error {
	p, data, key := s.peer, s.boxes.FastBoxData(n, size), keyOf(n)
	if data == nil || key.Tag == wire.TagOutOfRange || s.payload || s.w > 0 || s.fini {
		return e.badFastBox(s, key.Tag, size, data != nil)
	}
	p.from = s
	if p.down != nil {
		e.counters.LatePackets++
		return nil
	}
	if e.Failed(key.Context) != nil {
		e.counters.LatePackets++
		return nil
	}
	if r, ok := e.posted.Match(key); ok {
		e.begin(r, p, key, int64(size))
		r.store(data)
		e.recvProgress(r, int64(size))
		return nil
	}
	m := e.newMessage(p, int64(size))
	m.keep(int64(link.FastBoxCost(size)))
	m.buf, m.whole = e.buffers.get(int(size)), true
	copy(m.buf, data)
	e.unexpected.Add(&m.entry, key)
	e.events++
	return nil
}

func (e *reader) badFastBox(s *linkState, tag wire.Tag, size uint32, whole bool) error {
	e.in.Type, e.in.Src = wire.PkData, s.peer.proc
	switch {
	case !whole:
		return e.fault(s, "length", uint64(size), "so many bytes of a fast-box message are not in the memory for them")
	case tag == wire.TagOutOfRange:
		return e.fault(s, "pk_tag", uint64(uint32(tag)), "tags have 31 bits")
	case s.fini:
		return e.fault(s, "place", 0, "it came after FINI")
	default:
		return e.fault(s, "place", 0, "it lies in the middle of a packet")
	}
}

// FastBoxesOpen reports whether code that uses the fast boxes of l directly, such as C code, may
// send and take messages by them. NothingPending must hold, too.
func (e *Engine) FastBoxesOpen(l LinkID) (sends, takes bool) {
	s := e.links[l]
	p := s.peer
	return p.down == nil && p.link == s && p.fitsFastBox(), p.down == nil && !s.payload && s.w == 0 && !s.fini && s.err == nil && !s.busy()
}

// NothingPending reports whether no message waits for a receive, no receive waits for a message,
// except those of the library's own, which match no message of the program's, and nothing is to be
// sent.
func (e *Engine) NothingPending() bool {
	return e.sends == 0 && e.posted.Len() == e.posted.Own() && e.unexpected.Len() == 0
}

// EagerLink returns the link by which a receive from p may take a fast-box message with RecvEager.
// ok is false if the message could match another receive, or the receive another message, if
// something is to be sent that the caller waits for, or if a new allowance is to be sent to the
// peer.
func (e *Engine) EagerLink(p Peer) (l LinkID, ok bool) {
	q := e.peers.find(p)
	if q == nil || q.fastBoxes == nil || !e.NothingPending() || q.fastBoxes.busy() {
		return NoLink, false
	}
	if q.on && q.used() >= q.next { // TakeFastBoxes reviews its allowance
		return NoLink, false
	}
	return q.fastBoxes.id, true
}

// RecvEager is Recv for a fast-box message that has already come by the link that EagerLink
// returned and that fits into buf. If there is no such message ok is false and nothing has
// changed.
func (e *Engine) RecvEager(l LinkID, env *Envelope, buf []byte) (st Status, ok bool) {
	s := e.links[l]
	p := s.peer
	n := s.boxes.BegunFastBox()
	if n == nil || s.payload || s.w > 0 || s.fini || s.err != nil || p.down != nil || e.Failed(env.Context) != nil {
		return st, false
	}
	size, key := n.Len, keyOf(n)
	data := s.boxes.FastBoxData(n, size)
	if data == nil || uint64(size) > uint64(len(buf)) || key.Tag == wire.TagOutOfRange ||
		key.Context != env.Context || key.Source != env.Rank || key.Tag != env.Tag && env.Tag != AnyTag {
		return st, false
	}
	if e.there != nil && size > 0 && !e.there(buf[:size]) {
		return st, false
	}
	if !link.CopyFastBox(buf, data, n) {
		return st, false
	}
	s.boxes.FastBoxTaken(size)
	p.from = s
	return Status{Source: key.Source, Peer: p.index, Tag: key.Tag, Len: int64(size)}, true
}
