package protocol

const refFlow = "ch. 3, Packet Protocol"

func init() {
	register("flow control",
		Case{ID: "IMPI-3-FLOW-01", Level: Must, Needs: Program, Reference: refFlow, Run: flowStops,
			Expect: "A proc sends at most hiwater counted packets to another that are not acknowledged; each PROTOACK stands for ackmark of them."},
		Case{ID: "IMPI-3-FLOW-02", Level: Must, Needs: Program, Reference: refFlow, Run: flowAll,
			Expect: "With ackmark equal to hiwater the whole window is used before a PROTOACK comes, as none can come before."},
		Case{ID: "IMPI-3-FLOW-03", Level: Should, Needs: Program, Reference: refFlow, Run: flowFull,
			Expect: "A proc sends hiwater packets before it waits for a PROTOACK, not fewer."},
		Case{ID: "IMPI-3-FLOW-04", Level: Must, Needs: Program, Reference: refFlow, Run: flowAcks,
			Expect: "A proc sends a PROTOACK for every ackmark counted packets of another, as soon as they are there, and no other."},
		Case{ID: "IMPI-3-FLOW-05", Level: Must, Needs: Program, Reference: refFlow, Run: flowUnexpected,
			Expect: "Packets of messages that nobody receives are acknowledged like all others."},
		Case{ID: "IMPI-3-FLOW-06", Level: Must, Needs: Program, Reference: refFlow, Run: flowCountsControl,
			Expect: "SYNCACK, CANCEL, CANCELYES and CANCELNO are counted as they come."},
		Case{ID: "IMPI-3-FLOW-07", Level: Must, Needs: Program, Reference: refFlow, Run: flowOwnControl,
			Expect: "SYNCACK and CANCELNO are counted as they leave: they wait for the window."},
		Case{ID: "IMPI-3-FLOW-08", Level: Must, Needs: Program, Reference: refFlow, Run: flowAckFree,
			Expect: "PROTOACKs are not counted: not when they come, and not when they leave."},
		Case{ID: "IMPI-3-FLOW-09", Level: Must, Needs: Program, Reference: refFlow, Run: flowAckNow,
			Expect: "A PROTOACK leaves at once, also while its sender's own window to that proc is closed."},
		Case{ID: "IMPI-3-FLOW-10", Level: Should, Needs: Program, Reference: refFlow, Run: flowPairs,
			Expect: "A closed window to one proc stops no packets to others."},
		Case{ID: "IMPI-3-FLOW-11", Level: Should, Needs: Program, Reference: refFlow, Run: flowEarly,
			Expect: "A PROTOACK that comes before ackmark packets were sent does no harm."},
		Case{ID: "IMPI-3-FLOW-12", Level: Must, Needs: Program, Reference: refFlow, Run: flowLong,
			Expect: "Continuation packets of long messages wait for the window, too."},
		Case{ID: "IMPI-3-FLOW-13", Level: Must, Needs: Program, Reference: refFlow, Run: flowOne,
			Expect: "A job with ackmark 1 and hiwater 1 works."},
		Case{ID: "IMPI-3-FLOW-14", Level: Must, Needs: Program, Reference: refFlow + "; ch. 2, H_ACKMARK and H_HIWATER; errata", Run: flowLeast,
			Expect: "The least ackmark and the least hiwater of all hosts hold between any two procs of the job."},
		Case{ID: "IMPI-3-FLOW-15", Level: Must, Needs: Program, Slow: true, Reference: refFlow, Run: flowStream,
			Expect: "Thousands of packets go both ways at the same time without one too many in any window."},
		Case{ID: "IMPI-3-FLOW-16", Level: Must, Needs: Program, Reference: refFlow + "; MPI-1, 3.4", Run: flowBuffered,
			Expect: "Hundreds of short messages that nobody receives are taken, acknowledged and kept in order."},
	)
}

// flood has the program begin n sends, none of which is waited for; the replies may
// come when the window is open again.
func (k *talk) flood(n int) (begun []*call) {
	for i := range n {
		begun = append(begun, k.begin("isend dst=%d tag=4 n=1 seed=%d req=%d", k.p.rank, i, i))
	}
	return begun
}

// drowned waits until all of a flood's sends are complete.
func (k *talk) drowned(begun []*call) {
	for i, c := range begun {
		c.ok()
		k.tell("wait req=%d", i)
	}
}

// drops takes packets of a flood, from number a to before b.
func (k *talk) drops(a, b int) {
	for i := a; i < b; i++ {
		k.whole(pkData, 4, bytesOf(i, 1), "a message of many")
	}
}

// flowStops relies on the channel's own check of every packet: one that is too many
// ends it.
func flowStops(t *T) {
	k := t.talk(setup{ackmark: 3, hiwater: 5})
	k.ch.handle()
	const n = 14
	begun := k.flood(n)
	for got := 0; got < n; {
		next := min(got+3, n)
		k.drops(got, next)
		k.told()
		k.ch.settle()
		if got = next; got%3 == 0 {
			k.acks()
		}
	}
	k.drowned(begun)
	k.finish()
}

// told gives the program time to do all that it was told. A program whose replies wait
// for a window has only a moment.
func (k *talk) told() { k.begin("ping").over(while) }

// settle gives the IUT a moment to send more than it may, which ends the channel.
func (ch *channel) settle() {
	ch.watchFor(glance, func() bool { return ch.err != nil })
	ch.probe()
	if err := ch.failure(); err != nil {
		ch.t.Fatalf("%s: %s", ch.c.name, ending(err))
	}
}

func flowAll(t *T) {
	k := t.talk(setup{ackmark: 4, hiwater: 4})
	k.ch.handle()
	const n = 10
	begun := k.flood(n)
	for got := 0; got+4 <= n; got += 4 {
		k.drops(got, got+4)
		k.told()
		k.ch.still("hiwater packets are not acknowledged")
		k.acks()
	}
	k.drops(8, n)
	k.drowned(begun)
	k.finish()
}

func flowFull(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 5})
	k.ch.handle()
	begun := k.flood(9)
	k.drops(0, 5)
	k.told()
	k.ch.still("hiwater packets are not acknowledged")
	k.acks()
	k.drops(5, 7)
	k.ch.still("the PROTOACK was for two packets")
	k.acks()
	k.drops(7, 9)
	k.drowned(begun)
	k.finish()
}

func flowAcks(t *T) {
	k := t.talk(setup{ackmark: 3, hiwater: 7})
	k.ch.handle()
	for i := 1; i <= 10; i++ {
		k.give(k.out(pkData, 5, bytesOf(i, 2)))
		k.tell("recv src=0 tag=5 n=2").received(k.p, 5, i, 2)
		if i%3 == 0 {
			k.take(pkProtoAck, "the PROTOACK for three packets")
		}
		k.idle("a PROTOACK is for three packets")
	}
	k.finish()
}

func flowUnexpected(t *T) {
	k := t.talk(setup{ackmark: 3, hiwater: 7, datalen: 50})
	k.ch.handle()
	for i := 1; i <= 7; i++ {
		p := k.out(pkData, 5, bytesOf(i, 2))
		if i%2 == 0 {
			p = k.out(pkDataSync, 6, bytesOf(i, 50))
			p.msglen, p.srqid = 80, uint64(i)
		}
		k.give(p)
		if i%3 == 0 {
			k.take(pkProtoAck, "the PROTOACK for three packets")
		}
		k.idle("a PROTOACK is for three packets")
	}
	for i := 1; i <= 7; i += 2 {
		k.tell("recv src=0 tag=5 n=2").received(k.p, 5, i, 2)
	}
	k.finish()
}

func flowCountsControl(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 9})
	k.ch.handle()
	var sent []packet
	for i := range 3 {
		k.tell("issend dst=0 tag=%d n=1 seed=1 req=%d", ackTag, i)
		sent = append(sent, k.whole(pkDataSync, ackTag, bytesOf(1, 1), "a synchronous message"))
		if i == 1 {
			k.acks()
		}
	}
	for i, p := range sent {
		k.send(k.answer(pkSyncAck, p.srqid, 0))
		k.tell("wait req=%d", i)
		if i == 1 {
			k.take(pkProtoAck, "the PROTOACK for two SYNCACKs")
		}
		k.idle("a PROTOACK is for two packets")
	}
	k.send(k.answer(pkCancel, 901, 0))
	k.refused("the PROTOACK for SYNCACK and CANCEL")
	k.acks()
	k.send(k.answer(pkCancel, 902, 0))
	k.take(pkCancelNo, "the answer to CANCEL")
	k.send(k.answer(pkCancel, 903, 0))
	k.refused("the PROTOACK for two CANCELs")
	k.finish()
}

// refused takes CANCELNO and a PROTOACK that is due with it; nothing says which is first.
func (k *talk) refused(ack string) (no packet) {
	rest := map[pkType]string{pkCancelNo: "the answer to CANCEL", pkProtoAck: ack}
	for len(rest) > 0 {
		p := k.ch.next(ack + ", and the answer to CANCEL")
		if rest[p.typ] == "" || p.src != k.u.id || p.dest != k.p.id {
			k.t.Fatalf("%s: %v came where there should be %v", k.ch.c.name, &p, rest)
		}
		delete(rest, p.typ)
		if p.typ == pkCancelNo {
			no = p
		}
	}
	return no
}

// flowOwnControl has the program receive more synchronous messages than it may
// answer before a PROTOACK comes. When the PROTOACKs of the IUT come is another rule.
func flowOwnControl(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 3})
	k.ch.handle()
	acked := 0
	answers := func(n int) {
		for n > 0 {
			switch p := k.ch.next("SYNCACK, CANCELNO or PROTOACK"); p.typ {
			case pkSyncAck, pkCancelNo:
				n--
			case pkProtoAck:
				acked++
			default:
				t.Fatalf("%s: %v came where SYNCACKs, CANCELNOs and PROTOACKs should be", k.ch.c.name, &p)
			}
		}
	}
	var begun []*call
	for i := range 5 {
		p := k.out(pkDataSync, 1, bytesOf(i, 1))
		p.srqid = uint64(10 + i)
		k.give(p)
		begun = append(begun, k.begin("recv src=0 tag=1 n=1"))
	}
	answers(2)
	k.ch.settle()
	k.acks()
	answers(2)
	k.give(k.answer(pkCancel, 99, 0))
	k.ch.settle()
	k.acks()
	answers(2)
	k.acks()
	for ; acked < 3; acked++ {
		k.take(pkProtoAck, "the PROTOACK for two of five messages and CANCEL")
	}
	for _, c := range begun {
		c.ok()
	}
	k.finish()
}

func flowAckFree(t *T) {
	k := t.talk(setup{ackmark: 1, hiwater: 2})
	k.ch.handle()
	for i := range 6 { // a PROTOACK for each, and none comes back
		k.tell("send dst=0 tag=1 n=1 seed=%d", i)
		k.whole(pkData, 1, bytesOf(i, 1), "the message")
		k.acks()
		k.idle("PROTOACKs are not acknowledged")
	}
	for range 6 { // the IUT's PROTOACKs leave its window open
		k.give(k.out(pkData, 2, nil))
		k.take(pkProtoAck, "the PROTOACK for one packet")
	}
	for i := range 2 {
		k.tell("send dst=0 tag=1 n=1 seed=%d", i)
		k.whole(pkData, 1, bytesOf(i, 1), "a message after six PROTOACKs of the IUT")
	}
	k.finish()
}

func flowAckNow(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 2})
	k.ch.handle()
	begun := k.flood(3)
	k.drops(0, 2)
	k.told()
	k.ch.still("hiwater packets are not acknowledged")
	for range 3 {
		k.give(k.out(pkData, 9, nil))
		k.give(k.out(pkData, 9, nil))
		k.take(pkProtoAck, "the PROTOACK, whatever the other direction does,")
	}
	k.acks()
	k.drops(2, 3)
	k.drowned(begun)
	k.finish()
}

func flowPairs(t *T) {
	j := t.join(setup{others: [][]int{{3}}, ackmark: 2, hiwater: 3})
	k, other := j.talkOf(j.iut(0), j.peer(0)), j.talkOf(j.iut(0), j.peer(1))
	k.ch.handle()
	begun := k.flood(4)
	k.drops(0, 3)
	k.told()
	k.ch.still("hiwater packets are not acknowledged")
	c := other.begin("send dst=1 tag=2 n=5 seed=1")
	other.whole(pkData, 2, bytesOf(1, 5), "the message to another proc")
	k.acks()
	k.drops(3, 4)
	k.drowned(begun)
	c.ok()
	k.finish()
}

func flowEarly(t *T) {
	k := t.talk(setup{ackmark: 3, hiwater: 5})
	k.ch.handle()
	for range 2 {
		k.acks()
	}
	k.tell("ping")
	begun := k.flood(5)
	k.drops(0, 5)
	k.drowned(begun)
	k.finish()
}

func flowLong(t *T) {
	k := t.talk(setup{datalen: 20, ackmark: 2, hiwater: 3})
	k.ch.handle()
	data := bytesOf(1, 200)
	c := k.begin("send dst=0 tag=1 n=200 seed=1")
	first := k.take(pkDataSync, "the first packet")
	k.isFirst(&first, 1, 200, "the first packet")
	k.send(k.answer(pkSyncAck, first.srqid, 9))
	for n := 1; n < 10; n++ {
		p := k.take(pkData, "a continuation")
		k.continues(&p, &first, 9, "the long message")
		k.hasData(&p, data[20*n:20*n+20], "a continuation")
		if n%2 == 1 {
			k.ch.settle()
			k.acks()
		}
	}
	c.ok()
	k.finish()
}

func flowOne(t *T) {
	k := t.talk(setup{datalen: 20, ackmark: 1, hiwater: 1})
	k.ch.handle()
	for i := range 3 {
		c := k.begin("send dst=0 tag=1 n=10 seed=%d", i)
		k.whole(pkData, 1, bytesOf(i, 10), "the message")
		c.ok()
		k.acks()
		k.give(k.out(pkData, 2, bytesOf(i, 4)))
		k.take(pkProtoAck, "the PROTOACK")
		k.tell("recv src=0 tag=2 n=4").received(k.p, 2, i, 4)
	}
	k.finish()
}

// flowLeast has two hosts on the tester's side that want different windows.
func flowLeast(t *T) {
	j := t.newJob(setup{others: [][]int{{1, 1}, {1}}, ackmark: 5, hiwater: 9})
	j.clients[0].values[hAckMark], j.clients[0].values[hHiWater] = u32(5, 7), u32(9, 8)
	j.clients[1].values[hAckMark], j.clients[1].values[hHiWater] = u32(2), u32(3)
	j.launch()
	j.startup()
	j.dance()
	equal(t, "ackmark", j.ackmark, 2)
	equal(t, "hiwater", j.hiwater, 3)
	for i := range 3 {
		k := j.talkOf(j.iut(0), j.procs[i])
		if k.p == j.control.self {
			continue
		}
		k.ch.handle()
		begun := k.flood(5)
		k.drops(0, 3)
		k.told()
		k.ch.still("hiwater packets are not acknowledged")
		k.acks()
		k.drops(3, 5)
		k.acks()
		for range 2 {
			k.give(k.out(pkData, 9, nil))
		}
		k.take(pkProtoAck, "the PROTOACK for two packets")
		k.drowned(begun)
	}
	j.release()
	j.finish()
}

// flowStream lets two streams run as they can, and then two that are held back wherever
// they may be.
func flowStream(t *T) {
	k := t.talk(setup{datalen: 20, ackmark: 3, hiwater: 7})
	const n = 60000
	data := bytesOf(2, n)
	got := k.begin("sendrecv dst=0 stag=1 n=%d seed=1 src=0 rtag=2 rn=%d", n, n)
	theirs := k.take(pkDataSync, "the first packet")
	first := k.long(2, 5, data)
	ack := k.syncAcked(first, "the long message")
	k.send(k.answer(pkSyncAck, theirs.srqid, 6))
	k.crossing(first, ack.drqid, data, func() { k.rests(theirs, 6, bytesOf(1, n), "the long message") })
	got.ok().received(k.p, 2, 2, n)

	const out, in = 12000, 6000
	s := &stream{talk: k, drqid: 8, want: bytesOf(3, out), data: bytesOf(4, in), taken: 20, gone: 20}
	got = k.begin("sendrecv dst=0 stag=3 n=%d seed=3 src=0 rtag=4 rn=%d", out, in)
	s.theirs = k.take(pkDataSync, "the first packet")
	k.isFirst(&s.theirs, 3, out, "the first packet")
	s.ours = k.long(4, 7, s.data)
	s.asked = k.syncAcked(s.ours, "the long message").drqid
	k.ch.handle()
	k.send(k.answer(pkSyncAck, s.theirs.srqid, s.drqid))
	s.run()
	got.ok().received(k.p, 4, 4, in)
	k.finish()
}

func flowBuffered(t *T) {
	k := t.talk(setup{ackmark: 3, hiwater: 4})
	const n = 400
	for i := range n {
		k.give(k.out(pkData, 5, bytesOf(i, i%50)))
	}
	for i := range n {
		k.tell("recv src=0 tag=5 n=50").received(k.p, 5, i, i%50)
	}
	k.finish()
}
