package message

import "github.com/openimpi/impi/core/wire"

// longPiece is the data length of packets that continue a message between procs that both
// use fast boxes: their memory is lent instead of copied, and a packet costs as much as
// copying 30 KiB.
const longPiece = 1 << 20

// shortPiece is the data length of the first packet of a message of several packets between
// such procs: little enough to be copied, and to be kept if the message is unexpected.
const shortPiece = defaultStageLimit

func (p *peer) piece(r *Request) int64 {
	if r.total <= p.as.maxData || r.scattered != nil || p.link.boxes == nil || !p.link.boxes.FastBoxesAgreed() {
		return p.as.maxData
	}
	if r.state != stateRest {
		return min(p.as.maxData, shortPiece)
	}
	return max(p.as.maxData, longPiece)
}

// longest returns how many data bytes a packet from p may have: C_DATALEN, but for our own procs
// with fast boxes longPiece (IMPI ch.2, Client labels).
func (p *peer) longest(in *wire.Packet) int64 {
	if p.fastBoxes != nil && in.Type == wire.PkData && uint64(in.Len) < in.MsgLen {
		return max(p.as.maxData, longPiece)
	}
	return p.as.maxData
}
