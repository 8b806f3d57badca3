package play

import (
	"encoding/binary"
	"fmt"
	"strings"
)

type procID struct {
	host [16]byte
	pid  int64
}

func (p procID) String() string {
	if p.host == ([16]byte{}) {
		return fmt.Sprintf("-/%d", p.pid)
	}
	return fmt.Sprintf("%v/%d", addressOf(p.host), p.pid)
}

// packet is a packet with its data. It is coded here and not by core/wire: a judge that reads with
// the code that it judges sees no mistake in it.
type packet struct {
	typ          pkType
	len          uint32
	src, dest    procID
	srqid, drqid uint64
	msglen       uint64
	lsrank, tag  int32
	cid          uint64
	seq          uint64
	count        int64
	dtype        uint64
	reserved     uint64
	data         []byte
}

func (p *packet) header() []byte {
	be := binary.BigEndian
	b := make([]byte, 0, headerSize+len(p.data))
	b = be.AppendUint32(b, uint32(p.typ))
	b = be.AppendUint32(b, p.len)
	for _, x := range []procID{p.src, p.dest} {
		b = append(b, x.host[:]...)
		b = be.AppendUint64(b, uint64(x.pid))
	}
	b = be.AppendUint64(b, p.srqid)
	b = be.AppendUint64(b, p.drqid)
	b = be.AppendUint64(b, p.msglen)
	b = be.AppendUint32(b, uint32(p.lsrank))
	b = be.AppendUint32(b, uint32(p.tag))
	b = be.AppendUint64(b, p.cid)
	b = be.AppendUint64(b, p.seq)
	b = be.AppendUint64(b, uint64(p.count))
	b = be.AppendUint64(b, p.dtype)
	return be.AppendUint64(b, p.reserved)
}

func (p *packet) bytes() []byte { return append(p.header(), p.data...) }

func parsePacket(b []byte) (p packet) {
	be := binary.BigEndian
	p.typ, p.len = pkType(be.Uint32(b)), be.Uint32(b[4:])
	copy(p.src.host[:], b[8:])
	p.src.pid = int64(be.Uint64(b[24:]))
	copy(p.dest.host[:], b[32:])
	p.dest.pid = int64(be.Uint64(b[48:]))
	p.srqid, p.drqid, p.msglen = be.Uint64(b[56:]), be.Uint64(b[64:]), be.Uint64(b[72:])
	p.lsrank, p.tag = int32(be.Uint32(b[80:])), int32(be.Uint32(b[84:]))
	p.cid, p.seq = be.Uint64(b[88:]), be.Uint64(b[96:])
	p.count, p.dtype, p.reserved = int64(be.Uint64(b[104:])), be.Uint64(b[112:]), be.Uint64(b[120:])
	return p
}

// String shows the fields that the packet's type uses.
func (p *packet) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", p.typ)
	if p.typ == pkFini {
		return b.String()
	}
	fmt.Fprintf(&b, " %v -> %v", p.src, p.dest)
	if p.typ == pkProtoAck {
		return b.String()
	}
	fmt.Fprintf(&b, " srqid=%d", p.srqid)
	if p.typ == pkData && p.drqid != 0 || p.typ == pkSyncAck {
		fmt.Fprintf(&b, " drqid=%d", p.drqid)
	}
	if p.typ.hasData() {
		fmt.Fprintf(&b, " msglen=%d lsrank=%d tag=%d cid=%d len=%d", p.msglen, p.lsrank, p.tag, p.cid, p.len)
		if n := len(p.data); n > 0 {
			fmt.Fprintf(&b, " data=%s", shortHex(p.data))
		}
	}
	return b.String()
}

func shortHex(b []byte) string {
	const most = 48
	if len(b) <= most {
		return fmt.Sprintf("%x", b)
	}
	return fmt.Sprintf("%x... (%d bytes)", b[:most], len(b))
}
