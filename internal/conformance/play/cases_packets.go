package play

import (
	"fmt"
	"math"
)

// spoilt fills all fields that the packet's type has no use for.
func spoilt(p packet) packet {
	p.len, p.msglen, p.lsrank, p.tag = 128, 128, -1, -1
	p.cid, p.seq, p.count, p.dtype, p.reserved = 73<<56, math.MaxUint64, -1, math.MaxUint64, math.MaxUint64
	return p
}

func rubbish(t *T) {
	k := t.joinPair(setup{ackmark: 2, hiwater: 2})
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
func (k *procPair) acked() {
	k.ch.mu.Lock()
	k.ch.window(k.p.id, k.u.id).told++
	k.ch.mu.Unlock()
	k.send(spoilt(k.answer(pkProtoAck, math.MaxUint64, math.MaxUint64)))
}

func streamOfBytes(t *T) {
	k := t.joinPair(setup{datalen: 200, ackmark: 20, hiwater: 40})
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

func zeroFields(t *T) {
	k := t.joinPair(setup{ackmark: 2, hiwater: 4})
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

// packetOf is a message of n bytes.
func packetOf(k *procPair, n int) packet { return k.out(pkData, 5, bytesOf(1, n)) }

// sends sends a packet that may be the last the IUT reads.
func (k *procPair) sends(p packet) { _ = k.ch.write(&p) } // the IUT may have closed the channel

// cut sends the beginning of a packet and closes the channel.
func (ch *channel) cut(p packet, n int) {
	_ = ch.c.trySend("the beginning of "+p.String(), p.bytes()[:n])
	ch.c.close()
}

// tooMany does not wait for PROTOACKs of a proc that sends them; the count is of those
// that it cannot have sent yet.
func tooMany(k *procPair) {
	var all []packet
	for range 500 {
		all = append(all, k.out(pkData, 5, nil))
	}
	k.ch.handle()
	k.ch.chopped(0, all...)
}

// acksAfterFini ends the job as finish does, but for a PROTOACK that comes late.
func acksAfterFini(t *T) {
	k := t.joinPair(setup{ackmark: 2, hiwater: 4})
	k.ch.handle()
	for i := range 2 {
		k.tell("send dst=0 tag=1 n=1 seed=%d", i)
		k.whole(pkData, 1, bytesOf(i, 1), "the message")
	}
	k.finalize()
	k.barrier()
	k.ch.send(packet{typ: pkFini})
	k.acks()
	k.ch.takesFini()
	k.ch.hangUp()
	if err := k.ch.ends("both sides have sent FINI"); ending(err) != "the channel was closed" {
		t.Fatalf("%s: %v", k.ch.c.name, err)
	}
	k.finished()
	k.run.succeeds()
}

func requestIDs(t *T) {
	j := t.join(setup{others: [][]int{{3}}, datalen: 100})
	ids := map[uint64]bool{}
	var all []packet
	for i := range 6 {
		k := j.pairOf(j.iut(0), j.peer(i%2))
		n := []int{3, 150}[i/3]
		k.tell("issend dst=%d tag=%d n=%d seed=1 req=%d", k.p.rank, ackTag, n, i)
		p := k.take(pkDataSync, "the first packet")
		if ids[p.srqid] {
			t.Fatalf("pk_srqid %d is that of another message that is not finished", p.srqid)
		}
		ids[p.srqid] = true
		all = append(all, p)
	}
	for i, p := range all {
		k := j.pairOf(j.iut(0), j.peer(i%2))
		k.send(k.answer(pkSyncAck, p.srqid, uint64(i)))
		k.rests(p, uint64(i), bytesOf(1, int(p.msglen)), "the message")
		k.tell("wait req=%d", i)
	}
	j.finish()
}

func longBig(t *T) {
	k := t.joinPair(setup{})
	const n = 1 << 20
	data := bytesOf(2, n)
	got := k.begin("sendrecv dst=0 stag=1 n=%d seed=1 src=0 rtag=2 rn=%d", n, n)
	theirs := k.take(pkDataSync, "the first packet")
	k.isFirst(&theirs, 1, n, "the first packet")
	first := k.long(2, 5, data)
	ack := k.syncAcked(first, "the long message")
	k.send(k.answer(pkSyncAck, theirs.srqid, 6))
	k.crossing(first, ack.drqid, data, func() { k.rests(theirs, 6, bytesOf(1, n), "the long message") })
	got.ok().received(k.p, 2, 2, n)
	k.finish()
}

// cancels gives a CANCEL for a message and takes the answer.
func (k *procPair) cancels(srqid uint64) pkType {
	k.give(k.answer(pkCancel, srqid, 0))
	p := k.ch.next("the answer to CANCEL")
	if p.typ != pkCancelYes && p.typ != pkCancelNo || p.src != k.u.id || p.dest != k.p.id {
		k.t.Fatalf("%v where the answer to CANCEL should be", &p)
	}
	equal(k.t, "pk_srqid of the answer to CANCEL", p.srqid, srqid)
	k.idle("CANCEL gets one answer")
	return p.typ
}

func cancelAnswered(t *T) {
	k := t.joinPair(setup{datalen: 100})
	for i, n := range []int{3, 250} {
		srqid, data := 1<<63+uint64(i), bytesOf(i, n)
		var first packet
		if n > 100 {
			first = k.long(5, srqid, data)
		} else {
			first = k.out(pkDataSync, 5, data)
			first.srqid = srqid
			k.give(first)
		}
		if k.cancels(srqid) == pkCancelNo {
			got := k.begin("recv src=0 tag=5 n=300")
			k.rest(first, k.syncAcked(first, "the message").drqid, data)
			got.ok().received(k.p, 5, i, n)
			continue
		}
		k.tell("iprobe src=0 tag=5").is("found", 0)
		k.give(k.out(pkData, 5, bytesOf(9, 7)))
		k.tell("recv src=0 tag=5 n=300").received(k.p, 5, 9, 7)
		k.idle("the message was cancelled")
	}
	k.finish()
}

func cancelYoungest(t *T) {
	k := t.joinPair(setup{})
	for i := range 2 {
		p := k.out([]pkType{pkData, pkDataSync}[i], int32(5+i), bytesOf(i, 3))
		p.srqid = 77
		k.give(p)
	}
	k.give(k.out(pkData, 8, bytesOf(8, 3)))
	if k.cancels(77) == pkCancelYes {
		k.tell("iprobe src=0 tag=6").is("found", 0)
	}
	k.tell("recv src=0 tag=5 n=3").received(k.p, 5, 0, 3)
	k.tell("recv src=0 tag=8 n=3").received(k.p, 8, 8, 3)
	k.finish()
}

// asked has the program cancel a send whose first packet has come, and takes the
// CANCEL. An IUT need not ask.
func (k *procPair) asked(first packet, req int) {
	k.tell("cancel req=%d", req)
	k.tell("ping")
	k.ch.mu.Lock()
	none := len(k.ch.queue) == 0
	k.ch.mu.Unlock()
	if none {
		k.send(k.answer(pkSyncAck, first.srqid, 1))
		k.t.Skipf("the IUT does not ask for a send to be cancelled")
	}
	p := k.take(pkCancel, "CANCEL")
	equal(k.t, "pk_srqid of CANCEL", p.srqid, first.srqid)
	k.idle("CANCEL is sent once")
}

// orderOut keeps the window closed while the sends are begun, so that they wait for each
// other. The commands that begin them fit into a window: that they are acknowledged
// meanwhile is another rule.
func orderOut(t *T) {
	const acked, all = 3, 12
	k := t.joinPair(setup{datalen: 100, ackmark: acked, hiwater: all})
	k.ch.handle()
	flood := k.flood(all)
	k.takeFlood(0, all)
	k.floodDone(flood)
	sends := []struct {
		op string
		n  int
	}{{"isend", 1}, {"isend", 250}, {"isend", 3}, {"issend", 4}, {"isend", 101}, {"isend", 0}, {"issend", 300}, {"isend", 100}}
	var begun []*call
	for i, s := range sends {
		begun = append(begun, k.begin("%s dst=0 tag=%d n=%d seed=%d req=%d", s.op, ackTag, s.n, i, i))
	}
	k.ch.still("hiwater packets are not acknowledged")
	var firsts []packet
	for i, s := range sends {
		if i%acked == 0 {
			k.acks()
		}
		p := k.ch.next("a first packet")
		if int(p.msglen) != s.n || p.src != k.u.id {
			t.Fatalf("%v where the message of %d bytes should begin", &p, s.n)
		}
		firsts = append(firsts, p)
	}
	k.release()
	for i, s := range sends {
		if p := firsts[i]; p.typ == pkDataSync {
			k.give(k.answer(pkSyncAck, p.srqid, uint64(i)))
			k.rests(p, uint64(i), bytesOf(i, s.n), "a message")
		}
		begun[i].ok()
		k.tell("wait req=%d", i)
	}
	k.finish()
}

func typed(t *T, e kind) {
	k := t.joinPair(setup{})
	for i, n := range []int{1, 9} {
		k.tell("send dst=0 tag=%d type=%s n=%d seed=%d", i, e.name, n, i+3)
		k.whole(pkData, int32(i), e.pattern(i+3, n), "the message of type "+e.name)
		k.give(k.out(pkData, int32(i), e.pattern(i+5, n)))
		a := k.tell("recv src=0 tag=%d type=%s n=%d", i, e.name, n)
		a.is("count", n)
		a.holds(e.values(i+5, n))
	}
	k.finish()
}
