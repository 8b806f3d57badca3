package protocol

const refCancel = "ch. 3, Message Cancellation"

func init() {
	register("cancel",
		Case{ID: "IMPI-3-CANCEL-01", Level: Must, Needs: Program, Reference: refCancel, Run: cancelAnswered,
			Expect: "CANCEL of a message that nobody has received gets one answer with its pk_srqid; after CANCELYES the message is gone, after CANCELNO it is received."},
		Case{ID: "IMPI-3-CANCEL-02", Level: Should, Needs: Program, Reference: refCancel, Run: cancelGranted,
			Expect: "CANCEL of a message that nobody has received is answered with CANCELYES."},
		Case{ID: "IMPI-3-CANCEL-03", Level: Must, Needs: Program, Reference: refCancel, Run: cancelTooLate,
			Expect: "CANCEL of a message that a receive has matched is answered with CANCELNO, and its rest is received."},
		Case{ID: "IMPI-3-CANCEL-04", Level: Must, Needs: Program, Reference: refCancel, Run: cancelUnknown,
			Expect: "CANCEL of a message that is not known, or that came from another proc, is answered with CANCELNO."},
		Case{ID: "IMPI-3-CANCEL-05", Level: Must, Needs: Program, Reference: refCancel, Run: cancelYoungest,
			Expect: "Of several messages with one pk_srqid CANCEL means the one that came last."},
		Case{ID: "IMPI-3-CANCEL-06", Level: Must, Needs: Program, Reference: refCancel, Run: cancelSends,
			Expect: "A send that is cancelled while its SYNCACK is outstanding asks once, with its pk_srqid; after CANCELYES it is cancelled and nothing of it follows."},
		Case{ID: "IMPI-3-CANCEL-07", Level: Must, Needs: Program, Reference: refCancel, Run: cancelRefused,
			Expect: "After CANCELNO the send goes on as if nothing had been asked, and is not cancelled."},
		Case{ID: "IMPI-3-CANCEL-08", Level: Must, Needs: Program, Reference: refCancel, Run: cancelCrosses,
			Expect: "A SYNCACK that crosses the CANCEL completes the send; the CANCELNO that follows is taken."},
		Case{ID: "IMPI-3-CANCEL-09", Level: Must, Needs: Program, Reference: refCancel, Run: cancelDone,
			Expect: "For a send that is complete no CANCEL is sent."},
	)
}

// cancels gives a CANCEL for a message and takes the answer.
func (k *talk) cancels(srqid uint64) pkType {
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
	k := t.talk(setup{datalen: 100})
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

func cancelGranted(t *T) {
	k := t.talk(setup{})
	p := k.out(pkDataSync, 5, bytesOf(1, 3))
	p.srqid = 77
	k.give(p)
	equal(t, "the answer to CANCEL", k.cancels(77), pkCancelYes)
	k.finish()
}

func cancelTooLate(t *T) {
	k := t.talk(setup{datalen: 100})
	p := k.out(pkDataSync, 5, bytesOf(1, 3))
	p.srqid = 77
	k.give(p)
	k.tell("recv src=0 tag=5 n=3").received(k.p, 5, 1, 3)
	k.syncAcked(p, "the message")
	equal(t, "the answer to CANCEL", k.cancels(77), pkCancelNo)

	k.tell("irecv src=0 tag=6 n=250 req=1")
	data := bytesOf(2, 250)
	first := k.long(6, 78, data)
	ack := k.syncAcked(first, "the long message")
	equal(t, "the answer to CANCEL", k.cancels(78), pkCancelNo)
	k.rest(first, ack.drqid, data)
	k.tell("wait req=1").received(k.p, 6, 2, 250)
	k.finish()
}

func cancelUnknown(t *T) {
	j := t.join(setup{others: [][]int{{3}}})
	a, b := j.talkOf(j.iut(0), j.peer(0)), j.talkOf(j.iut(0), j.peer(1))
	equal(t, "the answer to CANCEL", a.cancels(77), pkCancelNo)
	p := a.out(pkDataSync, 5, bytesOf(1, 3))
	p.srqid = 77
	a.give(p)
	equal(t, "the answer to another proc's CANCEL", b.cancels(77), pkCancelNo)
	equal(t, "the answer to CANCEL of another message", a.cancels(78), pkCancelNo)
	a.tell("recv src=0 tag=5 n=3").received(a.p, 5, 1, 3)
	a.syncAcked(p, "the message")
	j.finish()
}

func cancelYoungest(t *T) {
	k := t.talk(setup{})
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
func (k *talk) asked(first packet, req int) {
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

func cancelSends(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{3, 250} {
		k.tell("issend dst=0 tag=5 n=%d seed=1 req=%d", n, i)
		first := k.take(pkDataSync, "the first packet")
		k.asked(first, i)
		k.tell("test req=%d", i).is("done", 0)
		k.send(k.answer(pkCancelYes, first.srqid, 0))
		k.tell("wait req=%d", i).is("cancelled", 1)
		k.idle("the message was cancelled")
	}
	k.finish()
}

func cancelRefused(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{3, 250} {
		k.tell("issend dst=0 tag=5 n=%d seed=%d req=%d", n, i, i)
		first := k.take(pkDataSync, "the first packet")
		k.asked(first, i)
		k.send(k.answer(pkCancelNo, first.srqid, 0))
		k.tell("test req=%d", i).is("done", 0)
		k.send(k.answer(pkSyncAck, first.srqid, 9))
		k.rests(first, 9, bytesOf(i, n), "the message")
		k.tell("wait req=%d", i).is("cancelled", 0)
	}
	k.finish()
}

func cancelCrosses(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range []int{3, 250} {
		k.tell("issend dst=0 tag=5 n=%d seed=%d req=%d", n, i, i)
		first := k.take(pkDataSync, "the first packet")
		k.asked(first, i)
		k.send(k.answer(pkSyncAck, first.srqid, 9))
		k.send(k.answer(pkCancelNo, first.srqid, 0))
		k.rests(first, 9, bytesOf(i, n), "the message")
		k.tell("wait req=%d", i).is("cancelled", 0)
	}
	k.tell("send dst=0 tag=6 n=2 seed=1")
	k.whole(pkData, 6, bytesOf(1, 2), "the next message")
	k.finish()
}

func cancelDone(t *T) {
	k := t.talk(setup{})
	k.tell("issend dst=0 tag=%d n=3 seed=1 req=1", ackTag)
	p := k.whole(pkDataSync, ackTag, bytesOf(1, 3), "the message")
	k.send(k.answer(pkSyncAck, p.srqid, 0))
	k.tell("isend dst=0 tag=6 n=3 seed=1 req=2")
	k.whole(pkData, 6, bytesOf(1, 3), "the message")
	for i := 1; i <= 2; i++ {
		k.tell("cancel req=%d", i)
		k.tell("wait req=%d", i).is("cancelled", 0)
	}
	k.idle("complete sends are not cancelled")
	k.finish()
}
