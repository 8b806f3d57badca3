package wire

import "encoding/binary"

// HeaderSize is the size of a packet header in both dialects.
const HeaderSize = 128

// Packet is a packet header (IMPI ch.3, Packet Protocol). The fields are named after the
// standard's pk_ names; the table in docs/wire.md says which of them each type uses.
type Packet struct {
	Type     PacketType
	Len      uint32 // bytes of user data after this header (PkData, PkDataSync only)
	Src      Proc   // proc that sends this packet
	Dest     Proc   // proc that receives it
	SrcReq   RequestID
	DestReq  RequestID
	MsgLen   uint64   // bytes of the whole message
	LSRank   CommRank // sender's rank in the communicator
	Tag      Tag
	Context  ContextID
	Seq      uint64 // informational
	Count    int64  // informational: the send call's count
	Datatype uint64 // informational: the sender's datatype
	Reserved uint64
}

// Dialect is one of the two byte layouts that implementations use.
type Dialect uint8

// The dialects of IMPI. Jobs use Published unless their job file says otherwise; Draft is
// for peers that follow the text of March 1999.
const (
	Published Dialect = iota // pk_lsrank and pk_tag of 4 bytes each, pids of 8 bytes
	Draft                    // pk_tag of 8 bytes, no pk_lsrank, pids of 4 bytes at startup
)

// PutHeader writes p into b[:HeaderSize]. It panics if b is shorter.
func (d Dialect) PutHeader(b []byte, p *Packet) {
	_ = b[HeaderSize-1]
	be := binary.BigEndian
	be.PutUint32(b[0:], uint32(p.Type))
	be.PutUint32(b[4:], p.Len)
	putProc(b[8:], &p.Src)
	putProc(b[32:], &p.Dest)
	be.PutUint64(b[56:], uint64(p.SrcReq))
	be.PutUint64(b[64:], uint64(p.DestReq))
	be.PutUint64(b[72:], p.MsgLen)
	if d == Draft {
		be.PutUint64(b[80:], uint64(int64(p.Tag)))
	} else {
		be.PutUint32(b[80:], uint32(p.LSRank))
		be.PutUint32(b[84:], uint32(p.Tag))
	}
	be.PutUint64(b[88:], uint64(p.Context))
	be.PutUint64(b[96:], p.Seq)
	be.PutUint64(b[104:], uint64(p.Count))
	be.PutUint64(b[112:], p.Datatype)
	be.PutUint64(b[120:], p.Reserved)
}

// Header reads p from b[:HeaderSize]. It accepts any 128 bytes; the receiver, who knows the
// job, must check the values. It panics if b is shorter.
func (d Dialect) Header(b []byte, p *Packet) {
	_ = b[HeaderSize-1]
	be := binary.BigEndian
	p.Type = PacketType(be.Uint32(b[0:]))
	p.Len = be.Uint32(b[4:])
	proc(b[8:], &p.Src)
	proc(b[32:], &p.Dest)
	p.SrcReq = RequestID(be.Uint64(b[56:]))
	p.DestReq = RequestID(be.Uint64(b[64:]))
	p.MsgLen = be.Uint64(b[72:])
	p.Tag = Tag(be.Uint32(b[84:])) // these are the low four bytes of the draft's Int8 tag
	if d == Draft {
		p.LSRank = 0
		if int64(be.Uint64(b[80:])) != int64(p.Tag) {
			p.Tag = TagOutOfRange
		}
	} else {
		p.LSRank = CommRank(be.Uint32(b[80:]))
	}
	p.Context = ContextID(be.Uint64(b[88:]))
	p.Seq = be.Uint64(b[96:])
	p.Count = int64(be.Uint64(b[104:]))
	p.Datatype = be.Uint64(b[112:])
	p.Reserved = be.Uint64(b[120:])
}

func putProc(b []byte, p *Proc) {
	copy(b[:16], p.Host[:])
	binary.BigEndian.PutUint64(b[16:], uint64(p.PID))
}

func proc(b []byte, p *Proc) {
	copy(p.Host[:], b[:16])
	p.PID = int64(binary.BigEndian.Uint64(b[16:]))
}
