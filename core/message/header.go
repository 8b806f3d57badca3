package message

import (
	"fmt"
	"math"
	"strconv"

	"github.com/openimpi/impi/core/wire"
)

// header handles the packet header in e.in, which came by s.
//
// Only data packets have their fields checked. IMPI ch.3, Packet Format, uses few fields of
// the others, and real peers write anything into the rest, even a pk_len into packets
// without data.
func (e *reader) header(s *linkState) error {
	typ := e.in.Type
	if typ == wire.PkFini {
		s.fini = true
		return nil
	}
	if !typ.Known() {
		return e.fault(s, "pk_type", uint64(typ), "no such packet; the stream cannot be followed any further")
	}
	p, err := e.origin(s)
	if err != nil {
		return err
	}
	if s.fini && typ != wire.PkProtoAck {
		return e.fault(s, "pk_type", uint64(typ), "came after FINI")
	}
	p.from = s
	if p.down != nil {
		return e.late(s, p)
	}
	if typ.HasData() {
		return e.dataHeader(s, p)
	}
	if typ.Counted() {
		e.received(p)
	}
	switch typ {
	case wire.PkProtoAck:
		p.allowed(e.in.MsgLen)
		if p.on && e.in.SrcReq == saysMore {
			break
		}
		p.window.Acked()
		e.wake(p)
	case wire.PkSyncAck:
		p.allowed(e.in.MsgLen)
		e.syncAcked(p)
	case wire.PkCancel:
		e.cancelAsked(p)
	case wire.PkCancelNo:
		e.cancelRefused(p)
	case wire.PkCancelYes:
		return e.cancelGranted(s, p)
	case wire.PkData, wire.PkDataSync, wire.PkFini: // handled above
	}
	return nil
}

// late drops a packet of a peer that is down. Such packets come if the peer's packets and
// ours use different links. The message they belong to has failed already, so nothing waits
// for them.
func (e *reader) late(s *linkState, p *peer) error {
	e.counters.LatePackets++
	if !e.in.Type.HasData() {
		return nil
	}
	if !e.plausible(p) {
		return e.implausible(s, p)
	}
	e.startPayload(s, p, nil)
	return nil
}

// origin finds the peer that pk_src names and checks that pk_dest is this proc (IMPI ch.3, Packet
// Format).
func (e *reader) origin(s *linkState) (*peer, error) {
	src := &e.in.Src
	p := s.peer
	switch {
	case p != nil:
		if p.proc != *src {
			return nil, e.faultProc(s, "pk_src", src, fmt.Sprintf("the link belongs to peer %d (%s)", p.index, p.proc))
		}
	case s.last != nil && s.last.proc == *src:
		p = s.last
	default:
		i, ok := e.directory.Find(*src) // procs of other worlds have their own links
		if !ok {
			return nil, e.faultProc(s, "pk_src", src, "no such proc in this job")
		}
		p = e.peer(i)
		s.last = p
	}
	if p == e.self {
		return nil, e.faultProc(s, "pk_src", src, "that is the receiver itself")
	}
	if e.in.Dest != p.as.self {
		return nil, e.faultProc(s, "pk_dest", &e.in.Dest, "this is peer "+strconv.Itoa(int(e.self.index))+" ("+p.as.self.String()+")")
	}
	return p, nil
}

// plausible reports whether the fields of a packet with data can be right: lengths that fit each
// other and the job's C_DATALEN, and a tag of 31 bits (IMPI ch.3, Packet Format).
func (e *reader) plausible(p *peer) bool {
	in := &e.in
	return uint64(in.Len) <= uint64(p.longest(in)) && uint64(in.Len) <= in.MsgLen &&
		in.MsgLen <= math.MaxInt64 && in.Tag != wire.TagOutOfRange
}

func (e *reader) implausible(s *linkState, p *peer) error {
	in := &e.in
	switch {
	case uint64(in.Len) > uint64(p.longest(in)):
		return e.fault(s, "pk_len", uint64(in.Len), fmt.Sprintf("the job's data length is %d", p.as.maxData))
	case uint64(in.Len) > in.MsgLen:
		return e.fault(s, "pk_len", uint64(in.Len), fmt.Sprintf("pk_msglen is %d", in.MsgLen))
	case in.MsgLen > math.MaxInt64:
		return e.fault(s, "pk_msglen", in.MsgLen, "no message is that long")
	default:
		return e.fault(s, "pk_tag", uint64(uint32(in.Tag)), "tags have 31 bits")
	}
}

func (e *reader) dataHeader(s *linkState, p *peer) error {
	if !e.plausible(p) {
		return e.implausible(s, p)
	}
	in := &e.in
	if e.cfg.Dialect == wire.Draft {
		if in.Context > maxDraftContext {
			return e.fault(s, "pk_cid", uint64(in.Context), "context IDs have 63 bits here")
		}
		draftIn(in, p)
	}
	// IMPI ch.3, Long Messages: a DATA that does not have all bytes of its message
	// continues a message that began with a DATASYNC.
	if in.Type == wire.PkData && uint64(in.Len) < in.MsgLen {
		return e.continuation(s, p)
	}
	e.firstPacket(s, p)
	return nil
}

func (e *linkTable) fault(s *linkState, field string, value uint64, reason string) *ProtocolError {
	err := &ProtocolError{
		Link: s.id, Peer: NoPeer, Proc: e.in.Src, Type: e.in.Type,
		Field: field, Value: strconv.FormatUint(value, 10), Reason: reason,
	}
	if p := s.peer; p != nil && p.proc == e.in.Src {
		err.Peer = p.index
	} else if i, ok := e.directory.Find(e.in.Src); ok {
		err.Peer = i
	}
	return err
}

func (e *linkTable) faultProc(s *linkState, field string, proc *wire.Proc, reason string) error {
	err := e.fault(s, field, 0, reason)
	err.Value = proc.String()
	return err
}
