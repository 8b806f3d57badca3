package check

import "time"

// pair is the state of the packets from one proc to another.
type pair struct {
	c         *Checker
	src, dest int32
	back      *pair
	route     *link    // link by which its packets leave
	rerouted  bool     // because the link before was cut
	held      [2]*hold // at the source's agent, and at the destination's if that is another

	sent      int64 // counted packets that the source wrote
	rcvd      int64 // counted packets that the destination read
	acks      int64 // PROTOACKs for them that the destination wrote
	acksTaken int64 // and that the source read

	readAt time.Duration // when the destination read last
	before int64         // the part of rcvd that it had read before readAt

	parted  bool  // the source has ended a direct link to the destination
	dueThen int64 // PROTOACKs that were due at readAt
}

// aTurn is how long a proc takes at most from reading a packet to writing its PROTOACK.
const aTurn = 50 * time.Microsecond

// part records that the source of the packets has finished and so ended a direct link. The reader
// of that end need not send more PROTOACKs: those that are not due yet, for which the link may have
// no room now, or for what it has read just now are excused.
func (q *pair) part() {
	if q.parted {
		return
	}
	answered := q.rcvd
	if q.c.now-q.readAt < aTurn {
		answered = q.before
	}
	q.parted, q.dueThen = true, answered/q.c.ackMark
	if back := q.back.route; back != nil {
		if s := back.stream(back.a.from == ProcEnd(int(q.dest))); s.sent > s.read {
			q.dueThen = q.acks
		}
	}
}

// between returns a pair. It is created together with the pair of the other direction.
func (c *Checker) between(src, dest int) *pair {
	key := [2]int32{int32(src), int32(dest)}
	if p := c.pairs[key]; p != nil {
		return p
	}
	p := &pair{c: c, src: key[0], dest: key[1]}
	p.back = &pair{c: c, src: key[1], dest: key[0], back: p}
	c.pairs[key] = p
	c.pairs[[2]int32{key[1], key[0]}] = p.back
	c.made = append(c.made, p, p.back)
	return p
}

func (s *stream) leaves(p *packet) error {
	q := p.pair
	if q.route != s.link {
		if q.route != nil && !q.route.cut {
			return s.wrong(RuleRoute, p, "packets of this pair leave by link %d", q.route.id)
		}
		q.route, q.rerouted = s.link, q.route != nil
		s.c.countThrough(q)
	}
	if p.typ == pkProtoAck {
		return s.acknowledges(p)
	}
	// IMPI ch.3, Packet Protocol: the source stops at hiwater.
	q.sent++
	if out := q.sent - q.acksTaken*s.c.ackMark; out > int64(s.c.job.HiWater) {
		return s.wrong(RuleWindow, p, "%d packets are not acknowledged, hiwater is %d", out, s.c.job.HiWater)
	}
	return s.converse(p)
}

// acknowledges judges a PROTOACK when it is written. IMPI ch.3, Packet Protocol: it stands for
// exactly ackmark counted packets.
func (s *stream) acknowledges(p *packet) error {
	q := p.pair.back
	q.acks++
	if due := q.rcvd / s.c.ackMark; q.acks > due {
		return s.wrong(RuleAck, p, "it is PROTOACK %d for %d packets that were read, and ackmark is %d", q.acks, q.rcvd, s.c.ackMark)
	}
	return nil
}

func (s *stream) arrived(p *packet) {
	if p.typ == pkProtoAck {
		p.pair.back.acksTaken++
		return
	}
	if q := p.pair; s.c.now > q.readAt {
		q.readAt, q.before = s.c.now, q.rcvd
	}
	p.pair.rcvd++
	s.heard(p)
}
