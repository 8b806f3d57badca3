package protocol

import (
	"fmt"
	"math"
)

const refLong = "ch. 3, Long Messages"

func init() {
	register("long",
		Case{ID: "IMPI-3-LONG-01", Level: Must, Needs: Program, Reference: refLong, Run: longFirst,
			Expect: "A message longer than the data length begins with a full DATASYNC packet; nothing of its rest leaves before the SYNCACK, while later short messages do."},
		Case{ID: "IMPI-3-LONG-02", Level: Must, Needs: Program, Reference: refLong, Run: longRest,
			Expect: "After the SYNCACK the rest follows in order as DATA packets, all but the last one full, with the SYNCACK's pk_drqid and the other fields of the first packet."},
		Case{ID: "IMPI-3-LONG-03", Level: Must, Needs: Program, Reference: refLong, Run: longAnswer,
			Expect: "The receiver of a long message sends one SYNCACK when a receive has matched it, not before, and takes the rest by its pk_drqid."},
		Case{ID: "IMPI-3-LONG-04", Level: Must, Needs: Program, Reference: refLong, Run: longPosted,
			Expect: "If the receive is there already, the SYNCACK follows the first packet at once."},
		Case{ID: "IMPI-3-LONG-05", Level: Must, Needs: Program, Reference: refLong, Run: longTwoOut,
			Expect: "Of two long messages each goes on when its own SYNCACK comes, found by pk_srqid, in whatever order."},
		Case{ID: "IMPI-3-LONG-06", Level: Must, Needs: Program, Reference: refLong, Run: longTwoIn,
			Expect: "Two long messages whose rests come in turns, and short ones between, are put together as pk_drqid says."},
		Case{ID: "IMPI-3-LONG-07", Level: Must, Needs: Program, Reference: refFormat + "; " + refLong, Run: requestIDs,
			Expect: "Unfinished messages of a proc have different pk_srqid."},
		Case{ID: "IMPI-3-LONG-08", Level: Must, Needs: Program, Reference: refLong, Run: longModes,
			Expect: "Ssend, Bsend and Rsend of a long message look as Send does."},
		Case{ID: "IMPI-3-LONG-09", Level: Should, Needs: Program, Reference: refLong, Run: longShortPackets,
			Expect: "A long message whose first or middle packets are shorter than the data length is received."},
		Case{ID: "IMPI-3-LONG-10", Level: Should, Needs: Program, Reference: refLong + "; MPI-1, 3.2.5", Run: longTruncated,
			Expect: "A long message that does not fit into the receive is answered and taken to its end; the receiver has an error, and the next message arrives."},
		Case{ID: "IMPI-3-LONG-11", Level: Must, Needs: Program, Slow: true, Reference: refLong, Run: longBig,
			Expect: "Messages of a megabyte arrive both ways at the same time."},
	)
}

func longFirst(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(5, 101)
	k.tell("isend dst=0 tag=1 n=101 seed=5 req=1")
	k.tell("send dst=0 tag=2 n=3 seed=6")
	first := k.take(pkDataSync, "the first packet of the long message")
	k.isFirst(&first, 1, 101, "the first packet of the long message")
	k.hasData(&first, data[:100], "the first packet of the long message")
	equal(t, "pk_drqid of the first packet", first.drqid, 0)
	k.whole(pkData, 2, bytesOf(6, 3), "the short message")
	k.idle("SYNCACK was not sent yet")
	k.send(k.answer(pkSyncAck, first.srqid, 33))
	k.rests(first, 33, data, "the long message")
	k.tell("wait req=1").is("cancelled", 0)
	k.finish()
}

func longRest(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{101, 199, 200, 201, 1003} {
		drqid := []uint64{0, math.MaxUint64, 1, 1 << 63, 0x123456789ABCDEF0}[i]
		what := fmt.Sprintf("the message of %d bytes", n)
		k.tell("isend dst=0 tag=%d n=%d seed=%d req=1", i, n, i)
		first := k.take(pkDataSync, "the first packet of "+what)
		k.isFirst(&first, int32(i), n, "the first packet of "+what)
		k.send(k.answer(pkSyncAck, first.srqid, drqid))
		k.rests(first, drqid, bytesOf(i, n), what)
		k.tell("wait req=1").is("cancelled", 0)
	}
	k.idle("the messages are complete")
	k.finish()
}

func longAnswer(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{101, 200, 1003} {
		data := bytesOf(i, n)
		first := k.long(7, 0xF000000000000001+uint64(i), data)
		k.idle("no receive has matched the long message yet")
		got := k.begin("recv src=0 tag=7 n=2000")
		ack := k.syncAcked(first, "the long message")
		k.rest(first, ack.drqid, data)
		got.ok().received(k.p, 7, i, n)
		k.idle("the message is complete")
	}
	k.finish()
}

func longPosted(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(3, 250)
	k.tell("irecv src=0 tag=7 n=250 req=1")
	first := k.long(7, 12, data)
	ack := k.syncAcked(first, "the long message")
	k.rest(first, ack.drqid, data)
	k.tell("wait req=1").received(k.p, 7, 3, 250)
	k.idle("the message is complete")
	k.finish()
}

func longTwoOut(t *T) {
	k := t.talk(setup{datalen: 100})
	var first [2]packet
	for i := range first {
		k.tell("isend dst=0 tag=%d n=%d seed=%d req=%d", i, 250+i, i, i)
		first[i] = k.take(pkDataSync, "the first packet")
		k.isFirst(&first[i], int32(i), 250+i, "the first packet")
	}
	for i := 1; i >= 0; i-- {
		k.send(k.answer(pkSyncAck, first[i].srqid, uint64(40+i)))
		k.rests(first[i], uint64(40+i), bytesOf(i, 250+i), fmt.Sprintf("long message %d", i))
		k.tell("wait req=%d", i).is("cancelled", 0)
	}
	k.finish()
}

func longTwoIn(t *T) {
	k := t.talk(setup{datalen: 100})
	const n = 350
	data := [2][]byte{bytesOf(1, n), bytesOf(2, n)}
	var first, ack [2]packet
	for i := range 2 {
		k.tell("irecv src=0 tag=%d n=%d req=%d", i, n, i)
		first[i] = k.long(int32(i), uint64(20+i), data[i])
		ack[i] = k.syncAcked(first[i], "a long message")
	}
	for at := 100; at < n; at += 100 {
		for i := 1; i >= 0; i-- {
			k.give(piece(first[i], ack[i].drqid, data[i][at:min(at+100, n)]))
			k.give(k.out(pkData, 9, bytesOf(at, i)))
		}
	}
	for i := range 2 {
		k.tell("wait req=%d", i).received(k.p, int32(i), i+1, n)
	}
	for at := 100; at < n; at += 100 {
		for i := 1; i >= 0; i-- {
			k.tell("recv src=0 tag=9 n=1").received(k.p, 9, at, i)
		}
	}
	k.finish()
}

func requestIDs(t *T) {
	j := t.join(setup{others: [][]int{{3}}, datalen: 100})
	ids := map[uint64]bool{}
	var all []packet
	for i := range 6 {
		k := j.talkOf(j.iut(0), j.peer(i%2))
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
		k := j.talkOf(j.iut(0), j.peer(i%2))
		k.send(k.answer(pkSyncAck, p.srqid, uint64(i)))
		k.rests(p, uint64(i), bytesOf(1, int(p.msglen)), "the message")
		k.tell("wait req=%d", i)
	}
	j.finish()
}

func longModes(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, mode := range []string{"issend", "ibsend", "irsend"} {
		what := "the message of " + mode
		k.tell("%s dst=0 tag=%d n=130 seed=%d req=1", mode, i, i)
		first := k.take(pkDataSync, "the first packet of "+what)
		k.isFirst(&first, int32(i), 130, "the first packet of "+what)
		k.idle("SYNCACK was not sent yet")
		k.send(k.answer(pkSyncAck, first.srqid, 8))
		k.rests(first, 8, bytesOf(i, 130), what)
		k.tell("wait req=1").is("cancelled", 0)
	}
	k.finish()
}

func longShortPackets(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(4, 300)
	first := k.out(pkDataSync, 7, data[:30])
	first.msglen, first.srqid = 300, 5
	k.give(first)
	got := k.begin("recv src=0 tag=7 n=300")
	ack := k.syncAcked(first, "the long message")
	for at, n := range map[int]int{30: 1} {
		k.give(piece(first, ack.drqid, data[at:at+n]))
	}
	for at := 31; at < 300; at += 50 {
		k.give(piece(first, ack.drqid, data[at:min(at+50, 300)]))
	}
	got.ok().received(k.p, 7, 4, 300)
	k.finish()
}

func longTruncated(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(4, 350)
	first := k.long(7, 5, data)
	got := k.begin("recv src=0 tag=7 n=120")
	ack := k.syncAcked(first, "the long message")
	k.rest(first, ack.drqid, data)
	if _, err := got.wait(); err == nil {
		t.Fatalf("the program received 350 bytes into a buffer of 120 without an error")
	}
	k.give(k.out(pkData, 7, bytesOf(9, 10)))
	k.tell("recv src=0 tag=7 n=120").received(k.p, 7, 9, 10)
	k.finish()
}

func longBig(t *T) {
	k := t.talk(setup{})
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
