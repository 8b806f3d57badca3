package play

// flood has the program begin n sends, none of which is waited for; the replies may
// come when the window is open again.
func (k *procPair) flood(n int) (begun []*call) {
	for i := range n {
		begun = append(begun, k.begin("isend dst=%d tag=4 n=1 seed=%d req=%d", k.p.rank, i, i))
	}
	return begun
}

// floodDone waits until all of a flood's sends are complete.
func (k *procPair) floodDone(begun []*call) {
	for i, c := range begun {
		c.ok()
		k.tell("wait req=%d", i)
	}
}

// drops takes packets of a flood, from number a to before b.
func (k *procPair) takeFlood(a, b int) {
	for i := a; i < b; i++ {
		k.whole(pkData, 4, bytesOf(i, 1), "a message of many")
	}
}

// told gives the program time to do all that it was told. A program whose replies wait
// for a window has only a moment.
func (k *procPair) told() { k.begin("ping").over(while) }

// settle gives the IUT a moment to send more than it may, which ends the channel.
func (ch *channel) settle() {
	ch.watchFor(glance, func() bool { return ch.err != nil })
	ch.probe()
	if err := ch.failure(); err != nil {
		ch.t.Fatalf("%s: %s", ch.c.name, ending(err))
	}
}

// refused takes CANCELNO and a PROTOACK that is due with it; nothing says which is first.
func (k *procPair) refused(ack string) (no packet) {
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
	k := t.joinPair(setup{ackmark: 2, hiwater: 3})
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
		k := j.pairOf(j.iut(0), j.procs[i])
		if k.p == j.control.self {
			continue
		}
		k.ch.handle()
		begun := k.flood(5)
		k.takeFlood(0, 3)
		k.told()
		k.ch.still("hiwater packets are not acknowledged")
		k.acks()
		k.takeFlood(3, 5)
		k.acks()
		for range 2 {
			k.give(k.out(pkData, 9, nil))
		}
		k.take(pkProtoAck, "the PROTOACK for two packets")
		k.floodDone(begun)
	}
	j.release()
	j.finish()
}

// flowStream lets two streams run as they can, and then two that are held back wherever
// they may be.
func flowStream(t *T) {
	k := t.joinPair(setup{datalen: 20, ackmark: 3, hiwater: 7})
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
	s := &stream{procPair: k, drqid: 8, want: bytesOf(3, out), data: bytesOf(4, in), taken: 20, gone: 20}
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

// stream is a long message of the IUT's proc and one of the tester's that cross. The
// tester acknowledges as late as it can, so that the IUT's window is full most of the
// time, and has the IUT say something while it is: a channel keeps its order, so a
// packet that is one too many has come by then.
type stream struct {
	*procPair
	theirs      packet // the first packet of the IUT's
	ours        packet // the first packet of the tester's
	drqid       uint64 // that the tester has chosen
	asked       uint64 // that the IUT has
	want, data  []byte // theirs and ours
	taken, gone int    // bytes of both
	full        int    // packets without PROTOACK at which the IUT stops
}

// run passes what is left of both messages.
func (s *stream) run() {
	s.full = int(s.hiwater)
	for s.taken < len(s.want) || s.gone < len(s.data) {
		switch {
		case s.taken == len(s.want), s.behind() >= s.full:
			s.provoke()
			for s.behind() >= int(s.ackmark) {
				s.acks()
			}
		case s.stopped():
			s.full = s.behind() // it may stop before it has to
		default:
			s.use(s.ch.next("a packet of the IUT's long message"))
		}
	}
}

// stopped tells whether the IUT has stopped before its window is full, and may be
// acknowledged something.
func (s *stream) stopped() bool {
	s.ch.watch(10 * glance)
	s.ch.mu.Lock()
	nothing := len(s.ch.queue) == 0 && s.ch.err == nil
	s.ch.mu.Unlock()
	return nothing && s.behind() >= int(s.ackmark)
}

// behind counts the packets of the IUT that the tester has not acknowledged, ahead those
// of the tester that the IUT has not.
func (s *stream) behind() int {
	w, a := s.windows()
	return w.got - w.told*a
}

func (s *stream) ahead() int {
	w, a := s.windows()
	return w.sent - w.acked*a
}

func (s *stream) windows() (w window, ackmark int) {
	s.ch.mu.Lock()
	defer s.ch.mu.Unlock()
	return *s.ch.window(s.p.id, s.u.id), int(s.ackmark)
}

// provoke sends as many packets as the IUT must acknowledge, and waits until it does.
func (s *stream) provoke() {
	for s.ahead() < int(s.ackmark) && s.gone < len(s.data) {
		n := min(int(s.datalen), len(s.data)-s.gone)
		s.send(piece(s.ours, s.asked, s.data[s.gone:s.gone+n]))
		s.gone += n
	}
	for s.ahead() >= int(s.ackmark) {
		s.use(s.ch.next("the PROTOACK that is due"))
	}
}

// use takes a packet of the IUT.
func (s *stream) use(p packet) {
	if p.typ == pkProtoAck {
		return // it is counted
	}
	if p.typ != pkData || s.taken == len(s.want) {
		s.t.Fatalf("%s: %v came where PROTOACKs and what is left of a long message should be", s.ch.c.name, &p)
	}
	n := min(int(s.datalen), len(s.want)-s.taken)
	s.continues(&p, &s.theirs, s.drqid, "the long message")
	s.hasData(&p, s.want[s.taken:s.taken+n], "a continuation of the long message")
	s.taken += n
}
