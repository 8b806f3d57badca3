package protocol

const refMatch = "ch. 3, Message Matching"

func init() {
	register("order",
		Case{ID: "IMPI-3-ORDER-01", Level: Must, Needs: Program, Reference: refMatch, Run: orderMixed,
			Expect: "A short message does not overtake an unfinished long one of the same signature: receives match in the order of the first packets."},
		Case{ID: "IMPI-3-ORDER-02", Level: Must, Needs: Program, Reference: refMatch, Run: orderOut,
			Expect: "First packets to one proc leave in the order of the sends, short, long or synchronous."},
		Case{ID: "IMPI-3-ORDER-03", Level: Must, Needs: Program, Reference: refMatch, Run: orderSignature,
			Expect: "Messages are received by source and tag, whatever the order in which they came."},
		Case{ID: "IMPI-3-ORDER-04", Level: Must, Needs: Program, Reference: refMatch + "; MPI-1, 3.5", Run: orderPosted,
			Expect: "Of several receives that fit, the one that was posted first gets the message."},
		Case{ID: "IMPI-3-ORDER-05", Level: Must, Needs: Program, Reference: refMatch, Run: orderWildcards,
			Expect: "A receive with wildcards gets the message that came first, and its status tells pk_lsrank, pk_tag and the length."},
		Case{ID: "IMPI-3-ORDER-06", Level: Must, Needs: Program, Reference: refMatch + "; ch. 4, Context IDs", Run: orderContexts,
			Expect: "A receive does not get messages of another context, wildcards or not."},
		Case{ID: "IMPI-3-ORDER-07", Level: Must, Needs: Program, Reference: refMatch, Run: orderSame,
			Expect: "Messages of one signature are received in the order in which they came, waiting or not."},
		Case{ID: "IMPI-3-ORDER-08", Level: Should, Needs: Program, Reference: refMatch + "; MPI-1, 3.5", Run: orderUnfinished,
			Expect: "A receive whose message has come is complete, though an earlier one waits for the rest of a long message."},
	)
}

func orderMixed(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(1, 250)
	first := k.long(5, 31, data)
	k.give(k.out(pkData, 5, bytesOf(2, 10)))
	got := k.begin("recv src=0 tag=5 n=300")
	ack := k.syncAcked(first, "the long message")
	k.give(k.out(pkData, 5, bytesOf(3, 11)))
	k.rest(first, ack.drqid, data)
	got.ok().received(k.p, 5, 1, 250)
	k.tell("recv src=0 tag=5 n=300").received(k.p, 5, 2, 10)
	k.tell("recv src=0 tag=5 n=300").received(k.p, 5, 3, 11)

	for i := range 2 { // the same with the receives posted before
		k.tell("irecv src=0 tag=6 n=300 req=%d", i)
	}
	first = k.long(6, 31, data)
	k.give(k.out(pkData, 6, bytesOf(2, 10)))
	ack = k.syncAcked(first, "the long message")
	k.rest(first, ack.drqid, data)
	k.tell("wait req=1").received(k.p, 6, 2, 10)
	k.tell("wait req=0").received(k.p, 6, 1, 250)
	k.finish()
}

func orderUnfinished(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(1, 250)
	for i := range 2 {
		k.tell("irecv src=0 tag=6 n=300 req=%d", i)
	}
	first := k.long(6, 31, data)
	k.give(k.out(pkData, 6, bytesOf(2, 10)))
	ack := k.syncAcked(first, "the long message")
	k.tell("wait req=1").received(k.p, 6, 2, 10)
	k.rest(first, ack.drqid, data)
	k.tell("wait req=0").received(k.p, 6, 1, 250)
	k.finish()
}

// orderOut keeps the window closed while the sends are begun, so that they wait for each
// other. The commands that begin them fit into a window: that they are acknowledged
// meanwhile is another rule.
func orderOut(t *T) {
	const acked, all = 3, 12
	k := t.talk(setup{datalen: 100, ackmark: acked, hiwater: all})
	k.ch.handle()
	flood := k.flood(all)
	k.drops(0, all)
	k.drowned(flood)
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

func orderSignature(t *T) {
	j := t.join(setup{others: [][]int{{3}}})
	a, b := j.talkOf(j.iut(0), j.peer(0)), j.talkOf(j.iut(0), j.peer(1))
	a.give(a.out(pkData, 5, bytesOf(1, 3)))
	a.give(a.out(pkData, 6, bytesOf(2, 3)))
	b.give(b.out(pkData, 5, bytesOf(3, 3)))
	b.give(b.out(pkData, 6, bytesOf(4, 3)))
	b.tell("recv src=1 tag=6 n=3").received(b.p, 6, 4, 3)
	a.tell("recv src=0 tag=6 n=3").received(a.p, 6, 2, 3)
	b.tell("recv src=1 tag=5 n=3").received(b.p, 5, 3, 3)
	a.tell("recv src=0 tag=5 n=3").received(a.p, 5, 1, 3)

	for i, sig := range []string{"src=0 tag=6", "src=1 tag=5", "src=1 tag=6", "src=0 tag=5"} {
		a.tell("irecv %s n=3 req=%d", sig, i)
	}
	a.give(a.out(pkData, 5, bytesOf(1, 3)))
	b.give(b.out(pkData, 6, bytesOf(4, 3)))
	b.give(b.out(pkData, 5, bytesOf(3, 3)))
	a.give(a.out(pkData, 6, bytesOf(2, 3)))
	a.tell("wait req=0").received(a.p, 6, 2, 3)
	b.tell("wait req=1").received(b.p, 5, 3, 3)
	b.tell("wait req=2").received(b.p, 6, 4, 3)
	a.tell("wait req=3").received(a.p, 5, 1, 3)
	j.finish()
}

func orderPosted(t *T) {
	k := t.talk(setup{})
	for i, sig := range []string{"src=any tag=5", "src=0 tag=5", "src=0 tag=any", "src=any tag=5"} {
		k.tell("irecv %s n=9 req=%d", sig, i)
	}
	for i := range 4 {
		k.give(k.out(pkData, 5, bytesOf(i, i+1)))
	}
	for i := range 4 {
		k.tell("wait req=%d", i).received(k.p, 5, i, i+1)
	}
	for i := range 20 { // many, so that whoever looks for them in another way does so
		k.tell("irecv src=%s tag=7 n=9 req=%d", []string{"0", "any", "any"}[i%3], i)
	}
	for i := range 20 {
		k.give(k.out(pkData, 7, bytesOf(i, i%9)))
	}
	for i := range 20 {
		k.tell("wait req=%d", i).received(k.p, 7, i, i%9)
	}
	k.finish()
}

func orderWildcards(t *T) {
	j := t.join(setup{others: [][]int{{3}}})
	a, b := j.talkOf(j.iut(0), j.peer(0)), j.talkOf(j.iut(0), j.peer(1))
	b.give(b.out(pkData, 5, bytesOf(1, 3)))
	a.give(a.out(pkData, 5, bytesOf(2, 4)))
	a.give(a.out(pkData, 8, bytesOf(3, 5)))
	b.give(b.out(pkData, 7, bytesOf(4, 6)))
	a.tell("recv src=any tag=5 n=9").received(b.p, 5, 1, 3)
	a.tell("recv src=0 tag=any n=9").received(a.p, 5, 2, 4)
	a.tell("recv src=0 tag=any n=9").received(a.p, 8, 3, 5)
	a.tell("recv src=any tag=any n=9").received(b.p, 7, 4, 6)
	j.finish()
}

// orderContexts gives messages of contexts that nobody receives. They are left over at
// the end.
func orderContexts(t *T) {
	k := t.talk(setup{})
	for _, cid := range []uint64{worldColl, 4711, 1 << 40} {
		p := k.out(pkData, 5, bytesOf(1, 3))
		p.cid = cid
		k.give(p)
	}
	for i, sig := range []string{"src=0 tag=5", "src=0 tag=any", "src=any tag=5"} {
		k.tell("irecv %s n=9 req=%d", sig, i)
	}
	p := k.out(pkData, 5, bytesOf(1, 3))
	p.cid = worldColl
	k.give(p)
	for i := range 3 {
		k.tell("test req=%d", i).is("done", 0)
	}
	for i := range 3 {
		k.give(k.out(pkData, 5, bytesOf(20+i, 4)))
	}
	for i := range 3 {
		k.tell("wait req=%d", i).received(k.p, 5, 20+i, 4)
	}
	k.finish()
}

func orderSame(t *T) {
	k := t.talk(setup{})
	for i := range 12 {
		k.give(k.out(pkData, 5, bytesOf(i, i)))
	}
	for i := range 6 {
		k.tell("recv src=0 tag=5 n=20").received(k.p, 5, i, i)
	}
	for i := 6; i < 12; i++ {
		k.tell("recv src=any tag=5 n=20").received(k.p, 5, i, i)
	}
	k.finish()
}
