package play

import (
	"bytes"
	"cmp"
	"net"
	"time"
)

// procPair is what a case is about, as a rule: one proc of the IUT, one of the tester's,
// and the channel between them.
type procPair struct {
	*job
	u  *proc // the IUT's proc
	p  *proc // the tester's proc
	ch *channel
}

func (j *job) pairOf(u, p *proc) *procPair { return &procPair{j, u, p, j.channelOf(u, p)} }

// tell sends the IUT's proc a command and waits until it is done; begin does not wait.
func (k *procPair) tell(format string, args ...any) answers { return k.do(k.u, format, args...) }
func (k *procPair) begin(format string, args ...any) *call  { return k.start(k.u, format, args...) }

func (k *procPair) out(tag int32, data []byte) packet {
	return k.packet(pkData, k.p, k.u, tag, data)
}

func (k *procPair) answer(typ pkType, srqid, drqid uint64) packet {
	return packet{typ: typ, src: k.p.id, dest: k.u.id, srqid: srqid, drqid: drqid}
}

// give sends a packet once the window is open for it. In a case that handles PROTOACKs itself, a
// PROTOACK that it gives counts as one of those that are due.
func (k *procPair) give(p packet) {
	switch {
	case p.typ == pkProtoAck:
		k.ch.mu.Lock()
		k.ch.window(k.p.id, k.u.id).told++
		k.ch.mu.Unlock()
	case p.typ.counted() && !k.ch.open(p.src, p.dest):
		k.ch.shut(&p, "the window stays closed")
	}
	k.ch.send(p)
}

func (k *procPair) acks() { k.give(k.answer(pkProtoAck, 0, 0)) }

// finish has channels acknowledge by themselves again, and ends the job.
func (k *procPair) finish() {
	k.release()
	k.job.finish()
}

// release undoes handle on all channels: it sends the PROTOACKs that are due, and channels send
// them by themselves from then on.
func (j *job) release() {
	for _, ch := range j.channels {
		for _, p := range ch.due() {
			ch.send(p)
		}
	}
}

// due returns the PROTOACKs that release sends.
func (ch *channel) due() (all []packet) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.manual = false
	for x, w := range ch.flow {
		for w.got-w.told*int(ch.j.ackmark) >= int(ch.j.ackmark) {
			w.told++
			all = append(all, packet{typ: pkProtoAck, src: x.from, dest: x.to})
		}
	}
	return all
}

func (k *procPair) take(typ pkType, what string) packet { return k.next(k.u, k.p, typ, what) }

// isMessage checks what all packets of a message have in common.
func (j *job) isMessage(p *packet, tag int32, cid uint64, lsrank, msglen int, what string) {
	equal(j.t, "pk_msglen of "+what, p.msglen, uint64(msglen))
	equal(j.t, "pk_tag of "+what, p.tag, tag)
	equal(j.t, "pk_cid of "+what, p.cid, cid)
	equal(j.t, "pk_lsrank of "+what, int(p.lsrank), lsrank)
}

func (j *job) hasData(p *packet, data []byte, what string) {
	if !bytes.Equal(p.data, data) {
		j.t.Fatalf("the data of %s is %s, not %s", what, shortHex(p.data), shortHex(data))
	}
}

// rest gives the part of data that does not fit into the first packet of its message.
func (k *procPair) rest(first packet, drqid uint64, data []byte) {
	for at := int(k.datalen); at < len(data); at += int(k.datalen) {
		k.give(piece(first, drqid, data[at:min(at+int(k.datalen), len(data))]))
	}
}

func piece(first packet, drqid uint64, data []byte) packet {
	first.typ, first.drqid, first.data, first.len = pkData, drqid, data, uint32(len(data))
	return first
}

// crossing is rest, but sends the packets while meanwhile runs, which receives.
func (k *procPair) crossing(first packet, drqid uint64, data []byte, meanwhile func()) {
	done := make(chan struct{})
	var stuck *packet
	go func() {
		defer close(done)
		for at := int(k.datalen); at < len(data); at += int(k.datalen) {
			p := piece(first, drqid, data[at:min(at+int(k.datalen), len(data))])
			if !k.ch.open(p.src, p.dest) {
				stuck = &p
				return
			}
			if k.ch.write(&p) != nil {
				return // the channel's reader has noticed
			}
		}
	}()
	meanwhile()
	<-done
	if stuck != nil {
		k.ch.shut(stuck, "the rest of a long message cannot go on")
	}
}

func (k *procPair) syncAcked(first packet, what string) packet {
	p := k.take(pkSyncAck, "the SYNCACK of "+what)
	equal(k.t, "pk_srqid of the SYNCACK of "+what, p.srqid, first.srqid)
	return p
}

// rests takes the continuation packets of a message of the IUT after its SYNCACK, and
// checks all their fields. data is the whole message.
func (k *procPair) rests(first packet, drqid uint64, data []byte, what string) {
	for at := len(first.data); at < len(data); {
		p := k.take(pkData, "a continuation of "+what)
		k.continues(&p, &first, drqid, what)
		n := min(int(k.datalen), len(data)-at)
		equal(k.t, "pk_len of a continuation of "+what, int(p.len), n)
		k.hasData(&p, data[at:at+n], "a continuation of "+what)
		at += n
	}
}

func (k *procPair) continues(p, first *packet, drqid uint64, what string) {
	equal(k.t, "pk_drqid of a continuation of "+what, p.drqid, drqid)
	equal(k.t, "pk_srqid of a continuation of "+what, p.srqid, first.srqid)
	k.isMessage(p, first.tag, first.cid, int(first.lsrank), int(first.msglen), "a continuation of "+what)
}

// still checks that nothing comes on a channel: it watches it for a moment, and then until the IUT
// has answered on it. Where the IUT's program can be asked, use quiet: it proves this for all
// channels.
func (ch *channel) still(why string) {
	ch.watch(glance)
	ch.probe()
	ch.empty(why)
}

// watch waits for at most d until a packet has come that the script has not taken, or the channel
// has ended.
func (ch *channel) watch(d time.Duration) {
	ch.watchFor(d, func() bool { return len(ch.queue) > 0 || ch.err != nil })
}

// watchFor waits for at most d until over, which is called with mu held, returns true, and reports
// whether it has.
func (ch *channel) watchFor(d time.Duration, over func() bool) bool {
	return ch.watchUntil(time.After(d), over)
}

func (ch *channel) watchUntil(end <-chan time.Time, over func() bool) bool {
	for {
		ch.mu.Lock()
		change, stop := ch.change, over()
		ch.mu.Unlock()
		if stop {
			return true
		}
		select {
		case <-change:
		case <-end:
			return false
		}
	}
}

// idle waits until the program has done all commands, after which nothing may have come.
func (k *procPair) idle(why string) { k.quiet(why) }

// chopped writes packets in pieces of n bytes each, or all in one for 0.
func (ch *channel) chopped(n int, packets ...packet) {
	var all []byte
	ch.wmu.Lock()
	defer ch.wmu.Unlock()
	for i := range packets {
		p := &packets[i]
		ch.t.trace.add("-> %s: in pieces: %v", ch.c.name, p)
		ch.counts(p)
		all = append(all, p.bytes()...)
	}
	n = cmp.Or(n, len(all))
	if err := inPieces(ch.c.tcp, all, n); err != nil {
		ch.t.Fatalf("%s: %v", ch.c.name, err)
	}
}

// pause is the time between pieces that should not be joined on their way. Nothing depends on it:
// joined pieces only prove less.
const pause = 200 * time.Microsecond

func inPieces(c *net.TCPConn, b []byte, n int) error {
	for ; len(b) > 0; b = b[min(n, len(b)):] {
		if _, err := c.Write(b[:min(n, len(b))]); err != nil {
			return err
		}
		if len(b) > n {
			<-time.After(pause)
		}
	}
	return nil
}

func (j *job) channelOf(a, b *proc) *channel { return j.between(a.host, b.host) }

// packet returns a packet from one proc to another with the fields of a message on
// MPI_COMM_WORLD filled in: pk_len and pk_msglen for data, pk_lsrank, pk_cid.
func (j *job) packet(k pkType, from, to *proc, tag int32, data []byte) packet {
	p := packet{typ: k, src: from.id, dest: to.id}
	if k.hasData() {
		p.len, p.msglen, p.count = uint32(len(data)), uint64(len(data)), int64(len(data))
		p.lsrank, p.tag, p.cid, p.data = int32(from.rank), tag, worldCID, data
	}
	return p
}

func (j *job) send(p packet) {
	for _, ch := range j.channels {
		if ch.local.proc(p.src) != nil && ch.remote.proc(p.dest) != nil {
			ch.send(p)
			return
		}
	}
	panic("protocol: no channel for this packet")
}

// next returns the next packet of a proc of the IUT to one of the tester's, which must
// be of that type. what says what it should be.
func (j *job) next(from, to *proc, k pkType, what string) packet {
	p := j.channelOf(from, to).expect(k, what)
	if p.src != from.id || p.dest != to.id {
		j.t.Fatalf("%s should go from rank %d (%v) to rank %d (%v): %v", what, from.rank, from.id, to.rank, to.id, &p)
	}
	return p
}

// message takes a whole message of the IUT, short or long, doing what a receiver does.
// It is checked: the type of each packet, its length, and the fields that all packets
// of a message have in common.
func (j *job) message(from, to *proc, what string) packet {
	ch := j.channelOf(from, to)
	head := ch.next(what)
	if head.src != from.id || head.dest != to.id || !head.typ.hasData() {
		j.t.Fatalf("%s should be a message from rank %d to rank %d: %v", what, from.rank, to.rank, &head)
	}
	whole := head
	if head.typ == pkDataSync {
		ack := packet{typ: pkSyncAck, src: to.id, dest: from.id, srqid: head.srqid, drqid: 0x5E0000 + head.srqid}
		ch.send(ack)
		for uint64(len(whole.data)) < head.msglen {
			p := ch.expect(pkData, "a continuation of "+what)
			if p.drqid != ack.drqid || p.src != head.src || p.srqid != head.srqid || p.msglen != head.msglen {
				j.t.Fatalf("%s: no continuation of %v: %v", ch.c.name, &head, &p)
			}
			whole.data = append(whole.data, p.data...)
		}
	}
	if uint64(len(whole.data)) != head.msglen {
		j.t.Fatalf("%s: %d bytes came of %d: %v", what, len(whole.data), head.msglen, &head)
	}
	return whole
}

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

// sends sends a packet upon which the IUT may close the channel.
func (k *procPair) sends(p packet) { _ = k.ch.write(&p) } // fails if the IUT has closed the channel already

func (ch *channel) cut(p packet, n int) {
	_ = ch.c.trySend("the beginning of "+p.String(), p.bytes()[:n])
	ch.c.close()
}

// cancels sends a CANCEL for a message and returns the type of the answer.
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

// asked makes the program cancel a send whose first packet has come, and takes the CANCEL. It skips
// the case if the IUT sends none, which it may.
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
