package message

import "github.com/openimpi/impi/core/wire"

// longPiece is the data length of packets that continue a message between procs that both use
// fast-box messages: their memory is lent as it lies, and each packet costs as much as 30 KiB of a copy.
const longPiece = 1 << 20

// shortPiece is that of the first packet of a message which others follow between such procs: little
// enough to be copied, and to be kept if nobody has asked for the message yet.
const shortPiece = defaultStageLimit

// piece is how much of r the next packet may have.
func (p *peer) piece(r *Request) int64 {
	if r.total <= p.as.maxData || r.apart != nil || p.link.boxes == nil || !p.link.boxes.FastBoxesAgreed() {
		return p.as.maxData
	}
	if r.state != stateRest {
		return min(p.as.maxData, shortPiece)
	}
	return max(p.as.maxData, longPiece)
}

// longest is how much data the packet may have that p sends.
func (p *peer) longest(in *wire.Packet) int64 {
	if p.fastBoxes != nil && in.Type == wire.PkData && uint64(in.Len) < in.MsgLen {
		return max(p.as.maxData, longPiece)
	}
	return p.as.maxData
}
