package protocol

const refSync = "ch. 3, Synchronous Messages"

func init() {
	register("synchronous",
		Case{ID: "IMPI-3-SYNC-01", Level: Must, Needs: Program, Reference: refSync, Run: syncOut,
			Expect: "Ssend of a message of up to the data length is one DATASYNC packet, and nothing follows the SYNCACK."},
		Case{ID: "IMPI-3-SYNC-02", Level: Must, Needs: Program, Reference: refSync, Run: syncWaits,
			Expect: "A synchronous send is complete when its SYNCACK comes and not before."},
		Case{ID: "IMPI-3-SYNC-03", Level: Must, Needs: Program, Reference: refSync, Run: syncAnswer,
			Expect: "A short DATASYNC that nobody receives yet is answered when a receive matches it, not before, with one SYNCACK."},
		Case{ID: "IMPI-3-SYNC-04", Level: Must, Needs: Program, Reference: refSync, Run: syncPosted,
			Expect: "A short DATASYNC for which a receive waits is answered at once, with one SYNCACK."},
		Case{ID: "IMPI-3-SYNC-05", Level: Must, Needs: Program, Reference: refSync, Run: syncMany,
			Expect: "Of several synchronous sends each SYNCACK completes the one whose pk_srqid it has, in whatever order they come."},
		Case{ID: "IMPI-3-SYNC-06", Level: Must, Needs: Program, Reference: refSync, Run: syncDrqid,
			Expect: "pk_drqid of the SYNCACK of a short message means nothing to its sender."},
		Case{ID: "IMPI-3-SYNC-07", Level: Must, Needs: Program, Reference: refSync + "; " + refLong, Run: syncLong,
			Expect: "A synchronous send of a long message waits for the one SYNCACK that also asks for its rest."},
		Case{ID: "IMPI-3-SYNC-08", Level: Must, Needs: Program, Reference: refSync, Run: syncCalls,
			Expect: "A call of Ssend returns after the SYNCACK."},
	)
}

func syncOut(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range edges(int(k.datalen)) {
		k.tell("issend dst=0 tag=%d n=%d seed=%d req=1", i, n, i)
		p := k.whole(pkDataSync, int32(i), bytesOf(i, n), "the synchronous message")
		k.send(k.answer(pkSyncAck, p.srqid, 0))
		k.tell("wait req=1").is("cancelled", 0)
		k.idle("the message is complete")
	}
	k.finish()
}

func syncWaits(t *T) {
	k := t.talk(setup{datalen: 100})
	for _, n := range []int{0, 5, 100} {
		k.tell("issend dst=0 tag=1 n=%d seed=1 req=1", n)
		p := k.whole(pkDataSync, 1, bytesOf(1, n), "the synchronous message")
		k.tell("test req=1").is("done", 0)
		k.send(k.answer(pkSyncAck, p.srqid, 0))
		k.tell("wait req=1").is("cancelled", 0)
	}
	k.finish()
}

func syncAnswer(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{0, 5, 100} {
		p := k.out(pkDataSync, 1, bytesOf(i, n))
		p.srqid = uint64(50 + i)
		k.give(p)
		k.idle("no receive has matched the message yet")
		k.tell("recv src=0 tag=1 n=100").received(k.p, 1, i, n)
		k.syncAcked(p, "the message")
		k.idle("one SYNCACK answers a message")
	}
	k.finish()
}

func syncPosted(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{0, 5, 100} {
		k.tell("irecv src=0 tag=1 n=100 req=1")
		p := k.out(pkDataSync, 1, bytesOf(i, n))
		p.srqid = uint64(50 + i)
		k.give(p)
		k.syncAcked(p, "the message")
		k.tell("wait req=1").received(k.p, 1, i, n)
		k.idle("one SYNCACK answers a message")
	}
	k.finish()
}

func syncMany(t *T) {
	k := t.talk(setup{})
	var sent []packet
	for i := range 4 {
		k.tell("issend dst=0 tag=1 n=3 seed=%d req=%d", i, i)
		sent = append(sent, k.whole(pkDataSync, 1, bytesOf(i, 3), "a synchronous message"))
	}
	for _, i := range []int{2, 0, 3, 1} {
		k.tell("test req=%d", i).is("done", 0)
		k.send(k.answer(pkSyncAck, sent[i].srqid, 0))
		k.tell("wait req=%d", i).is("cancelled", 0)
	}
	k.finish()
}

func syncDrqid(t *T) {
	k := t.talk(setup{})
	for _, drqid := range []uint64{0, 1, 1 << 63, sameAsOurs} {
		k.tell("issend dst=0 tag=1 n=3 seed=1 req=1")
		p := k.whole(pkDataSync, 1, bytesOf(1, 3), "the synchronous message")
		if drqid == sameAsOurs {
			drqid = p.srqid
		}
		k.send(k.answer(pkSyncAck, p.srqid, drqid))
		k.tell("wait req=1").is("cancelled", 0)
		k.idle("the message is complete")
	}
	k.finish()
}

// sameAsOurs stands for the message's own request ID.
const sameAsOurs = 1<<64 - 1

func syncLong(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(1, 250)
	k.tell("issend dst=0 tag=1 n=250 seed=1 req=1")
	first := k.take(pkDataSync, "the first packet")
	k.isFirst(&first, 1, 250, "the first packet")
	k.tell("test req=1").is("done", 0)
	k.send(k.answer(pkSyncAck, first.srqid, 9))
	k.rests(first, 9, data, "the message")
	k.tell("wait req=1").is("cancelled", 0)
	k.finish()
}

func syncCalls(t *T) {
	k := t.talk(setup{datalen: 100})
	for _, n := range []int{5, 250} {
		c := k.begin("ssend dst=0 tag=1 n=%d seed=1", n)
		first := k.take(pkDataSync, "the first packet")
		k.isFirst(&first, 1, n, "the first packet")
		k.ch.still("SYNCACK was not sent yet")
		if !c.pending() {
			t.Fatalf("Ssend has returned, and the SYNCACK was not sent yet")
		}
		k.send(k.answer(pkSyncAck, first.srqid, 9))
		k.rests(first, 9, bytesOf(1, n), "the message")
		c.ok()
	}
	k.finish()
}
