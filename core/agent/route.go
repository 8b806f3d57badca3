package agent

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/wire"
)

// Offsets in a header of the fields that a packet switch needs (IMPI ch.3, Packet Format;
// docs/wire.md). The two dialects do not differ in them.
const (
	atType = 0
	atLen  = 4
	atSrc  = 8
	atDest = 32
)

// header checks a packet by its header and finds where it goes (IMPI ch.3, Packet Protocol).
func (a *Agent) header(p *endpoint, h []byte) *ProtocolError {
	in := &p.in
	in.kind = wire.PacketType(binary.BigEndian.Uint32(h[atType:]))
	in.size, in.target = wire.HeaderSize, nil
	if in.kind.HasData() {
		// IMPI ch.3, Packet Protocol: pk_len is valid for these two types only. Some peers write a
		// length into packets that no data follows.
		n := binary.BigEndian.Uint32(h[atLen:])
		if n > a.maxData {
			return p.violation("pk_len", n, "the job's maximum data length is %d", a.maxData)
		}
		in.size += int(n)
	}
	if in.kind > wire.PkFini {
		if most, ok := ofOurs(a, p); ok {
			return p.tells(binary.BigEndian.Uint32(h[atLen:]), most)
		}
	}
	in.left = in.size
	if in.kind == wire.PkFini && !a.silent {
		return a.fini(p)
	}
	if !in.kind.Known() || in.kind == wire.PkFini {
		return p.violation("pk_type", uint32(in.kind), "IMPI 0.0 has no such type, so nobody knows where the packet ends")
	}
	if p.done && in.kind != wire.PkProtoAck {
		return p.violation("pk_type", in.kind, "after its end only PROTOACK may come")
	}
	return a.address(p, h)
}

// address finds the packet's source and destination and counts the packet in the pair's
// window.
func (a *Agent) address(p *endpoint, h []byte) *ProtocolError {
	src, err := a.source(p, readIdentity(h[atSrc:]))
	if err != nil {
		return err
	}
	id := readIdentity(h[atDest:])
	dest, host, ok := a.procs.find(id)
	switch {
	case !ok:
		return p.violation("pk_dest", id.proc(), "no such proc in this job")
	case !p.isProc() && host != a.self:
		return p.violation("pk_dest", id.proc(), "it is proc %d of host %d, and this is host %d", dest, host, a.self)
	case host != a.self && a.hosts[host].Unlinked:
		return p.violation("pk_dest", id.proc(), "it is proc %d of host %d, to which there is no channel", dest, host)
	}
	d := a.local(dest)
	if d == nil {
		d = a.host(host)
	}
	if p.peer.Host != host && !(p.own && d.own) {
		if ok, full := a.count(p, src, dest); full {
			return p.violation("pk_type", p.in.kind, "more than %d packets from proc %d to proc %d are not acknowledged",
				a.windows.hiWater, src, dest)
		} else if !ok {
			return nil
		}
	}
	if d.accepts() {
		p.in.target = d
	}
	return nil
}

// source checks that the peer may send packets with this pk_src (IMPI ch.3, Packet
// Protocol), and returns the source's rank.
func (a *Agent) source(p *endpoint, id identity) (wire.WorldRank, *ProtocolError) {
	if p.isProc() {
		if id != p.id {
			return NoRank, p.violation("pk_src", id.proc(), "it is not the identity of that proc, %v", p.id.proc())
		}
		return p.peer.Rank, nil
	}
	src, h, ok := a.procs.find(id)
	if !ok {
		return NoRank, p.violation("pk_src", id.proc(), "no such proc in this job")
	}
	if h != p.peer.Host {
		return NoRank, p.violation("pk_src", id.proc(), "that is proc %d of host %d", src, h)
	}
	return src, nil
}

// count counts the packet in the window of a pair of which one proc is local. If ok is
// false the packet is to be dropped; if full is set the source has broken the protocol by
// sending it.
func (a *Agent) count(p *endpoint, src, dest wire.WorldRank) (ok, full bool) {
	x := pairOf{local: dest, remote: src}
	if p.isProc() {
		x = pairOf{local: src, remote: dest}
	}
	c := a.windows.pair(x)
	packets, acks := &c.in, &c.out
	if p.isProc() {
		packets, acks = &c.out, &c.in
	}
	if !p.in.kind.Counted() {
		return a.windows.ack(acks), false
	}
	ok = a.windows.packet(packets)
	return ok, !ok
}
