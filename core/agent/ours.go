package agent

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/wire"
)

// ofOurs returns how many bytes of data a packet may have whose type IMPI does not have (IMPI ch.3,
// Packet Protocol). ok is false if p may not send such a packet.
func ofOurs(a *Agent, p *endpoint) (most uint32, ok bool) {
	if p.isProc() {
		return 0, false
	}
	h := &a.hosts[p.peer.Host]
	switch p.in.kind {
	case wire.PkFail:
		return wire.MaxFail, h.Fails
	case wire.PkLost:
		return wire.MaxLost, h.Survives
	case wire.PkAsk:
		return wire.MaxQuestion, h.Asks && !p.done
	case wire.PkTell:
		return wire.MaxAnswerPart, h.Asks && !p.done
	case wire.PkTold:
		return 0, h.Asks && !p.done
	default:
		return 0, false
	}
}

// takeOurs takes a complete packet of such a type, which does not end the channel.
func (p *endpoint) takeOurs(a *Agent) *ProtocolError {
	defer p.dropSpecial()
	switch p.in.kind {
	case wire.PkLost:
		return takeLost(a, p)
	case wire.PkAsk:
		takeAsk(a, p)
	case wire.PkTell:
		takeTell(a, p)
	default:
		takeTold(a, p)
	}
	return nil
}

// keptSpecial is the most memory that is kept for the next packet.
const keptSpecial = 2 << 10

func (p *endpoint) dropSpecial() {
	if p.inquiry.special = p.inquiry.special[:0]; cap(p.inquiry.special) > keptSpecial {
		p.inquiry.special = nil
	}
}

// said returns the question that a packet of an inquiry is about, a length and the data.
func (p *endpoint) said() (number, length uint64, data []byte) {
	h := p.inquiry.special
	p.inquiries().receivedBytes += uint64(len(h))
	return binary.BigEndian.Uint64(h[atSrcRequest:]), binary.BigEndian.Uint64(h[atMsgLen:]), h[wire.HeaderSize:]
}

// takeAsk takes a question of the node at the other end. More of them than there may be get an
// empty answer, and none while the other host does not read what is queued for it.
func takeAsk(a *Agent, p *endpoint) {
	number, _, data := p.said()
	switch t := p.inquiry; {
	case p.ended || t.answer(number) != nil || t.bytes >= maxQueued:
	case len(t.answers) >= maxAsked:
		refuse(a, p, number)
	default:
		t.answers = append(t.answers, &answer{number: number})
		a.emit(Event{Kind: Asked, Peer: p.peer, Link: p.link, Number: number, Data: append([]byte(nil), data...)})
	}
}

// takeTell takes a part of an answer, which are in order as all packets of a channel are (IMPI
// ch.3, Packet Protocol). Parts that nobody waits for any more are dropped.
func takeTell(a *Agent, p *endpoint) {
	number, size, data := p.said()
	t := p.inquiry
	q := t.question(number)
	if q == nil {
		return
	}
	if q.got == nil {
		q.size = size
	}
	left := q.size - uint64(len(q.got))
	if size != q.size || size > wire.MaxAnswer || uint64(len(data)) > left || len(data) == 0 && left > 0 {
		size, q.got = 0, nil // an answer of no use is none
	}
	q.got = append(q.got, data...)
	if size > uint64(len(q.got)) {
		if len(q.got)-q.told >= wire.AnswerWindow/2 && !p.ended {
			q.told = len(q.got)
			say(a, p, wire.PkTold, number, uint64(q.told), nil)
		}
		return
	}
	if size == 0 {
		q.got = nil
	}
	t.forget(number)
	a.emit(Event{Kind: Answered, Peer: p.peer, Link: p.link, Number: number, Data: q.got})
}

// takeTold takes how much of an answer has come.
func takeTold(a *Agent, p *endpoint) {
	number, taken, _ := p.said()
	if x := p.inquiry.answer(number); x != nil && taken > uint64(x.taken) && taken <= uint64(x.sent) {
		x.taken = int(taken)
		answerOn(a, p, x)
	}
}

// answerOn queues as much of an answer as may be on its way.
func answerOn(a *Agent, p *endpoint, x *answer) {
	for x.end == 0 && x.sent < len(x.data) && x.sent-x.taken+wire.MaxAnswerPart <= wire.AnswerWindow && !p.ended {
		part := x.data[x.sent:min(len(x.data), x.sent+wire.MaxAnswerPart)]
		say(a, p, wire.PkTell, x.number, uint64(len(x.data)), part)
		x.sent += len(part)
	}
	if t := p.inquiry; x.end == 0 && x.sent == len(x.data) {
		x.data, x.end = nil, t.sentBytes+uint64(t.bytes)
	}
}

func refuse(a *Agent, p *endpoint, number uint64) {
	p.inquiry.withdraw(number)
	if !p.ended && p.inquiry.bytes < wire.AnswerWindow { // the other host may not read
		say(a, p, wire.PkTell, number, 0, nil)
	}
}

// say queues a packet of an inquiry. None may come after this host's FINI.
func say(a *Agent, p *endpoint, kind wire.PacketType, number, length uint64, data []byte) {
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(data))
	wire.Published.PutHeader(b, &wire.Packet{Type: kind, Len: uint32(len(data)), SrcReq: wire.RequestID(number), MsgLen: length})
	t := p.inquiries()
	t.out = append(t.out, append(b, data...))
	t.bytes += len(b) + len(data)
	a.touch(p)
}

// endInquiry tells the driver that nothing is answered any more.
func endInquiry(a *Agent, p *endpoint) {
	if p.inquiry == nil {
		return
	}
	for _, q := range p.inquiry.asked {
		a.emit(Event{Kind: Answered, Peer: p.peer, Link: NoLink, Number: q.number})
	}
	p.inquiry.asked, p.inquiry.answers = nil, nil
}
