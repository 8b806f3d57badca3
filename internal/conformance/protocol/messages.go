package protocol

// channelOf finds the channel between two procs, one of which is the tester's.
func (j *job) channelOf(a, b *proc) *channel { return j.between(a.host, b.host) }

// packet gives a packet from one proc to another with the fields of a message on
// MPI_COMM_WORLD filled in: pk_len and pk_msglen for data, pk_lsrank, pk_cid.
func (j *job) packet(k pkType, from, to *proc, tag int32, data []byte) packet {
	p := packet{typ: k, src: from.id, dest: to.id}
	if k.hasData() {
		p.len, p.msglen, p.count = uint32(len(data)), uint64(len(data)), int64(len(data))
		p.lsrank, p.tag, p.cid, p.data = int32(from.rank), tag, worldCID, data
	}
	return p
}

// send sends a packet over the channel of the procs that it names.
func (j *job) send(p packet) {
	for _, ch := range j.channels {
		if ch.local.proc(p.src) != nil && ch.remote.proc(p.dest) != nil {
			ch.send(p)
			return
		}
	}
	panic("protocol: no channel for this packet")
}

// next gives the next packet of a proc of the IUT to one of the tester's, which must
// be of that type. what says what it should be.
func (j *job) next(from, to *proc, k pkType, what string) packet {
	p := j.channelOf(from, to).expect(k, what)
	if p.src != from.id || p.dest != to.id {
		j.t.Fatalf("%s should go from rank %d (%v) to rank %d (%v): %v", what, from.rank, from.id, to.rank, to.id, &p)
	}
	return p
}

// short sends a short message in one DATA packet.
func (j *job) short(from, to *proc, tag int32, data []byte) {
	j.send(j.packet(pkData, from, to, tag, data))
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
