package check

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// HeaderSize is the size of a packet's header in bytes.
const HeaderSize = 128

// IdentitySize is the size of a proc's identity in a packet, in bytes: 16 of its
// host id, 8 of its pid.
const IdentitySize = 24

// Packet types. IMPI ch.3, Packet Format; 7 is of the published text only.
const (
	pkData      = 0
	pkDataSync  = 1
	pkProtoAck  = 2
	pkSyncAck   = 3
	pkCancel    = 4
	pkCancelYes = 5
	pkCancelNo  = 6
	pkFini      = 7
)

// pkFail is our own, between hosts: see docs/wire.md.
const pkFail = 0x10001

var typeNames = [...]string{"DATA", "DATASYNC", "PROTOACK", "SYNCACK", "CANCEL", "CANCELYES", "CANCELNO", "FINI"}

// Offsets of the header's fields, big-endian.
const (
	offType     = 0
	offLen      = 4
	offSrc      = 8
	offDest     = 32
	offSrqid    = 56
	offDrqid    = 64
	offMsglen   = 72
	offLsrank   = 80
	offTag      = 84
	offCid      = 88
	offSeqnum   = 96
	offCount    = 104
	offDtype    = 112
	offReserved = 120
)

// packet is what is kept of a packet: everything but its data, identities and informational fields.
type packet struct {
	typ, length          uint32
	lsrank, tag          int32
	srqid, drqid         uint64
	msglen, cid          uint64
	pair                 *pair // nil for FINI
	at                   int64 // where it begins in its stream
	crc                  uint32
	headerRead, complete bool
}

func (p *packet) hasData() bool { return p.typ <= pkDataSync }
func (p *packet) counted() bool { return p.typ != pkProtoAck && p.typ != pkFini && p.typ != pkFail }

// size returns the number of bytes of the packet. IMPI ch.3, Packet Protocol: data follow two types
// only, whatever pk_len is.
func (p *packet) size() int64 {
	if p.hasData() || p.typ == pkFail {
		return HeaderSize + int64(p.length)
	}
	return HeaderSize
}

// continues reports whether it is a part of a long message other than the first.
func (p *packet) continues() bool { return p.typ == pkData && uint64(p.length) < p.msglen }

func word(h []byte, off int) uint32 { return binary.BigEndian.Uint32(h[off:]) }
func long(h []byte, off int) uint64 { return binary.BigEndian.Uint64(h[off:]) }

// decode decodes h[:HeaderSize], except for the identities.
func decode(h []byte) packet {
	return packet{
		typ: word(h, offType), length: word(h, offLen),
		srqid: long(h, offSrqid), drqid: long(h, offDrqid), msglen: long(h, offMsglen),
		lsrank: int32(word(h, offLsrank)), tag: int32(word(h, offTag)), cid: long(h, offCid),
	}
}

// fields describes the packet without its procs.
func (p *packet) fields() string {
	switch p.typ {
	case pkData, pkDataSync:
		s := fmt.Sprintf(" len=%d srqid=%d", p.length, p.srqid)
		if p.drqid != 0 {
			s += fmt.Sprintf(" drqid=%d", p.drqid)
		}
		return s + fmt.Sprintf(" msglen=%d lsrank=%d tag=%d cid=%d", p.msglen, p.lsrank, p.tag, p.cid)
	case pkSyncAck:
		return fmt.Sprintf(" srqid=%d drqid=%d", p.srqid, p.drqid)
	case pkCancel, pkCancelYes, pkCancelNo:
		return fmt.Sprintf(" srqid=%d", p.srqid)
	}
	return ""
}

func typeName(t uint32) string {
	switch {
	case int(t) < len(typeNames):
		return typeNames[t]
	case t == pkFail:
		return "FAIL"
	}
	return fmt.Sprintf("TYPE(%d)", t)
}

func (p *packet) line() string {
	if p.pair == nil {
		return typeName(p.typ) + p.fields()
	}
	return fmt.Sprintf("%d->%d %s%s", p.pair.src, p.pair.dest, typeName(p.typ), p.fields())
}

func who(b []byte) string {
	host := netip.AddrFrom16([16]byte(b))
	return fmt.Sprintf("%v/%d", host, int64(long(b, 16)))
}
