package wire

import (
	"fmt"
	"strconv"
)

// String returns the packet as one line for traces: its type, its sender and receiver, and those
// fields that the type uses.
func (p *Packet) String() string {
	if p.Type == PkFini {
		return p.Type.String()
	}
	b := fmt.Appendf(nil, "%v %v->%v", p.Type, p.Src, p.Dest)
	switch p.Type {
	case PkData, PkDataSync:
		b = appendField(b, "srqid", uint64(p.SrcReq))
		if p.DestReq != 0 {
			b = appendField(b, "drqid", uint64(p.DestReq))
		}
		b = appendField(b, "msglen", p.MsgLen)
		b = appendField(b, "len", uint64(p.Len))
		b = fmt.Appendf(b, " lsrank=%d tag=%d cid=%d", p.LSRank, p.Tag, p.Context)
	case PkSyncAck:
		b = appendField(b, "srqid", uint64(p.SrcReq))
		b = appendField(b, "drqid", uint64(p.DestReq))
	case PkCancel, PkCancelYes, PkCancelNo:
		b = appendField(b, "srqid", uint64(p.SrcReq))
	case PkProtoAck, PkFini: // these use no other fields
	}
	return string(b)
}

func appendField(b []byte, name string, v uint64) []byte {
	b = append(append(append(b, ' '), name...), '=')
	return strconv.AppendUint(b, v, 10)
}
