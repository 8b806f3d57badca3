package protocol

import (
	"fmt"
	"math"
)

const refFormat = "ch. 3, Packet Format"

func init() {
	register("packets",
		Case{ID: "IMPI-3-PACKET-01", Level: Must, Needs: Program, Reference: refFormat, Run: dataHeader,
			Expect: "A short message on MPI_COMM_WORLD is one DATA packet: pk_len and pk_msglen are its length, pk_cid is 0, pk_lsrank the sender's rank, pk_tag the tag."},
		Case{ID: "IMPI-3-PACKET-02", Level: Must, Needs: Program, Reference: refFormat + "; ch. 2, P_IPV6 and P_PID", Run: identities,
			Expect: "pk_src and pk_dest are sender and receiver exactly as they were submitted at startup, for every pair of procs."},
		Case{ID: "IMPI-3-PACKET-03", Level: Must, Needs: Program, Reference: refFormat, Run: syncAckHeader,
			Expect: "A SYNCACK goes from the message's receiver to its sender and returns all 64 bits of pk_srqid."},
		Case{ID: "IMPI-3-PACKET-04", Level: Must, Needs: Program, Reference: refFormat, Run: protoAckHeader,
			Expect: "A PROTOACK goes from the receiver of the packets to their sender."},
		Case{ID: "IMPI-3-PACKET-05", Level: Must, Needs: Program, Reference: refFormat, Run: rubbish,
			Expect: "Only DATA and DATASYNC are followed by data, and fields that a type does not use are not looked at, whatever is in them."},
		Case{ID: "IMPI-3-PACKET-06", Level: Must, Needs: Program, Reference: refFormat, Run: informational,
			Expect: "pk_seqnum, pk_count, pk_dtype and pk_reserved of a message may have any value."},
		Case{ID: "IMPI-3-PACKET-07", Level: Must, Needs: Program, Reference: "ch. 3, Channels", Run: streamOfBytes,
			Expect: "The channel is a stream of bytes: packets are understood however they are cut or joined on their way."},
		Case{ID: "IMPI-3-PACKET-08", Level: Must, Needs: Program, Reference: "ch. 2, C_TAGUB; " + refFormat, Run: tagEdges,
			Expect: "Tags from 0 to the least C_TAGUB of all clients are sent and received."},
		Case{ID: "IMPI-3-PACKET-09", Level: Should, Needs: Program, Reference: refFormat, Run: zeroFields,
			Expect: "Fields that a packet's type does not use, and pk_reserved, are sent as 0."},
	)
}

func dataHeader(t *T) {
	k := t.talk(setup{})
	for _, n := range []int{10, 0} {
		k.tell("send dst=0 tag=%d n=%d seed=3", 70+n, n)
		k.whole(pkData, int32(70+n), bytesOf(3, n), "the message")
	}
	k.finish()
}

// identities has two procs of the IUT and two of the tester, all of which talk to each
// other.
func identities(t *T) {
	j := t.join(setup{iutHosts: []int{2}, others: [][]int{{3}}})
	for u := range 2 {
		for p := range 2 {
			k := j.talkOf(j.iut(u), j.peer(p))
			tag := int32(10*u + p)
			k.tell("send dst=%d tag=%d n=4 seed=%d", k.p.rank, tag, tag)
			k.whole(pkData, tag, bytesOf(int(tag), 4), fmt.Sprintf("the message of rank %d", k.u.rank))
			k.give(k.out(pkData, tag, bytesOf(int(tag)+1, 5)))
			k.tell("recv src=%d tag=%d n=5", k.p.rank, tag).received(k.p, tag, int(tag)+1, 5)
		}
	}
	j.finish()
}

func syncAckHeader(t *T) {
	k := t.talk(setup{})
	for _, srqid := range []uint64{0xFEDCBA9876543210, 1, 1 << 63} {
		p := k.out(pkDataSync, 5, bytesOf(1, 3))
		p.srqid = srqid
		k.give(p)
		k.tell("recv src=0 tag=5 n=3").received(k.p, 5, 1, 3)
		k.syncAcked(p, "the message") // next has looked at source and destination
	}
	k.finish()
}

func protoAckHeader(t *T) {
	j := t.join(setup{others: [][]int{{3}}, ackmark: 2, hiwater: 4})
	k := j.talkOf(j.iut(0), j.peer(1))
	k.ch.handle()
	for range 2 {
		k.give(k.out(pkData, 5, nil))
	}
	k.take(pkProtoAck, "the PROTOACK for two packets")
	for range 2 {
		k.tell("recv src=1 tag=5 n=0").received(k.p, 5, 0, 0)
	}
	k.finish()
}

// spoilt fills all fields that the packet's type has no use for.
func spoilt(p packet) packet {
	p.len, p.msglen, p.lsrank, p.tag = 128, 128, -1, -1
	p.cid, p.seq, p.count, p.dtype, p.reserved = 73<<56, math.MaxUint64, -1, math.MaxUint64, math.MaxUint64
	return p
}

func rubbish(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 2})
	k.ch.handle()
	k.tell("issend dst=0 tag=%d n=3 seed=1 req=1", ackTag)
	first := k.whole(pkDataSync, ackTag, bytesOf(1, 3), "the synchronous message")
	k.send(spoilt(k.answer(pkSyncAck, first.srqid, 0)))
	k.tell("wait req=1").is("cancelled", 0)
	k.tell("send dst=0 tag=2 n=1 seed=2")
	k.whole(pkData, 2, bytesOf(2, 1), "the second message")
	k.acked()
	for i := range 2 {
		k.tell("send dst=0 tag=3 n=1 seed=%d", i)
		k.whole(pkData, 3, bytesOf(i, 1), "a message after the PROTOACK")
	}
	k.acked()
	k.send(spoilt(k.answer(pkCancel, 77, 0)))
	equal(t, "pk_srqid of the CANCELNO", k.refused("the PROTOACK for SYNCACK and CANCEL").srqid, 77)
	k.finish()
}

// acked sends a PROTOACK full of rubbish.
func (k *talk) acked() {
	k.ch.mu.Lock()
	k.ch.window(k.p.id, k.u.id).told++
	k.ch.mu.Unlock()
	k.send(spoilt(k.answer(pkProtoAck, math.MaxUint64, math.MaxUint64)))
}

func informational(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, v := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		p := k.out(pkData, 5, bytesOf(i, 20))
		p.seq, p.count, p.dtype, p.reserved = uint64(v), v, uint64(v), uint64(v)
		k.give(p)
		k.tell("recv src=0 tag=5 n=20").received(k.p, 5, i, 20)
	}
	k.finish()
}

func streamOfBytes(t *T) {
	k := t.talk(setup{datalen: 200, ackmark: 20, hiwater: 40})
	sizes := []int{0, 1, 127, 128, 200}
	for _, n := range []int{1, 3, 127, 128, 129, 0} {
		var all []packet
		for i, size := range sizes {
			all = append(all, k.out(pkData, int32(i), bytesOf(n+i, size)))
		}
		k.ch.chopped(n, all...)
		for i, size := range sizes {
			k.tell("recv src=0 tag=%d n=200", i).received(k.p, int32(i), n+i, size)
		}
	}
	k.finish()
}

func tagEdges(t *T) {
	k := t.talk(setup{tagub: 1<<30 + 7})
	for _, tag := range []int32{0, leastTagUB, 1 << 16, k.tagub} {
		k.tell("send dst=0 tag=%d n=4 seed=1", tag)
		k.whole(pkData, tag, bytesOf(1, 4), "the message")
		k.give(k.out(pkData, tag, bytesOf(2, 4)))
		k.tell("recv src=0 tag=%d n=4", tag).received(k.p, tag, 2, 4)
	}
	k.finish()
}

func zeroFields(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 4})
	k.ch.handle()
	k.tell("issend dst=0 tag=%d n=3 seed=1 req=1", ackTag)
	first := k.whole(pkDataSync, ackTag, bytesOf(1, 3), "the synchronous message")
	equal(t, "pk_drqid of a first packet", first.drqid, 0)
	equal(t, "pk_reserved of DATASYNC", first.reserved, 0)
	k.send(k.answer(pkSyncAck, first.srqid, 0))
	k.tell("wait req=1")
	k.tell("send dst=0 tag=1 n=3 seed=1")
	p := k.whole(pkData, 1, bytesOf(1, 3), "the message")
	equal(t, "pk_drqid of a short message", p.drqid, 0)
	equal(t, "pk_reserved of DATA", p.reserved, 0)
	k.acks()
	p = k.out(pkDataSync, 5, bytesOf(1, 3))
	p.srqid = 99
	k.give(p)
	p = k.take(pkProtoAck, "the PROTOACK for two packets")
	equal(t, "PROTOACK apart from type, source and destination", bare(p), bare(packet{}))
	k.tell("recv src=0 tag=5 n=3").received(k.p, 5, 1, 3)
	p = k.take(pkSyncAck, "SYNCACK")
	p.srqid, p.drqid = 0, 0
	equal(t, "SYNCACK apart from type, source, destination and request IDs", bare(p), bare(packet{}))
	k.finish()
}

// bare shows a packet whose type, source and destination are out of the way.
func bare(p packet) string {
	p.typ, p.src, p.dest = 0, procID{}, procID{}
	return fmt.Sprintf("%x", p.header())
}
