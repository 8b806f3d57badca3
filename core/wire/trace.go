package wire

import (
	"fmt"
	"strconv"
)

// String gives the packet as one line for traces: its type, who sends it to
// whom, and those fields that the type uses.
func (p *Packet) String() string { return string(p.AppendText(nil)) }

// AppendText appends what String gives to b.
func (p *Packet) AppendText(b []byte) []byte {
	b = append(b, p.Type.String()...)
	if p.Type == PkFini {
		return b
	}
	b = fmt.Appendf(b, " %v->%v", p.Src, p.Dest)
	switch p.Type {
	case PkData, PkDataSync:
		b = appendField(b, "srqid", uint64(p.SrcReq))
		if p.DestReq != 0 {
			b = appendField(b, "drqid", uint64(p.DestReq))
		}
		b = appendField(b, "msglen", p.MsgLen)
		b = appendField(b, "len", uint64(p.Len))
		return fmt.Appendf(b, " lsrank=%d tag=%d cid=%d", p.LSRank, p.Tag, p.Context)
	case PkSyncAck:
		b = appendField(b, "srqid", uint64(p.SrcReq))
		return appendField(b, "drqid", uint64(p.DestReq))
	case PkCancel, PkCancelYes, PkCancelNo:
		return appendField(b, "srqid", uint64(p.SrcReq))
	}
	return b
}

func appendField(b []byte, name string, v uint64) []byte {
	b = append(append(append(b, ' '), name...), '=')
	return strconv.AppendUint(b, v, 10)
}
