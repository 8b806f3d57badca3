package check

// request is a message that began with a DATASYNC, by its pk_srqid.
type request struct {
	pair         *pair
	srqid, drqid uint64
	msglen, cid  uint64
	lsrank, tag  int32
	sent         uint64 // bytes of it that the source wrote

	seen     bool // the destination has read the first header
	acked    bool // the destination wrote SYNCACK
	ackTaken bool // the source read it
	over     bool // the source does not need it any more

	cancel      bool // the source wrote CANCEL
	cancelTaken bool // the destination read it
	answered    bool // the destination wrote CANCELYES or CANCELNO
	yes         bool // and that was CANCELYES
	answerTaken bool // the source read it
}

// maxEnded is how many requests of a proc are remembered after their end: a CANCEL that had to wait
// for room on its link may come that late.
const maxEnded = 4096

func (r *request) undecided() bool { return r.cancel && !r.answerTaken }

func (q *pair) request(c *Checker, srqid uint64) *request {
	if r := c.procs[q.src].requests[srqid]; r != nil && r.pair == q {
		return r
	}
	return nil
}

// converse judges a counted packet, when it is written, by what was sent about its message before.
func (s *stream) converse(p *packet) error {
	if p.hasData() && uint64(p.length) > p.msglen {
		return s.wrong(RuleMessage, p, "pk_len is more than the message has")
	}
	switch {
	case p.typ == pkDataSync:
		return s.opens(p)
	case p.continues():
		return s.goesOn(p)
	case p.typ == pkSyncAck:
		return s.syncAcks(p)
	case p.typ == pkCancel:
		return s.cancels(p)
	case p.typ == pkCancelYes || p.typ == pkCancelNo:
		return s.answers(p)
	}
	return nil
}

// opens begins a request. IMPI ch.3, Packet Format: pk_srqid is unique among the
// source's active requests.
func (s *stream) opens(p *packet) error {
	from := &s.c.procs[p.pair.src]
	if r := from.requests[p.srqid]; r != nil && (!r.over || r.undecided()) {
		return s.wrong(RuleMessage, p, "its pk_srqid is that of a message to proc %d which is not over", r.pair.dest)
	}
	if from.requests == nil {
		from.requests = make(map[uint64]*request)
	}
	from.requests[p.srqid] = &request{
		pair: p.pair, srqid: p.srqid, msglen: p.msglen, cid: p.cid, lsrank: p.lsrank, tag: p.tag,
		sent: uint64(p.length),
	}
	return nil
}

// goesOn judges a continuation packet.
//
// IMPI ch.3, Long Messages: after SYNCACK, with its pk_drqid and the fields of the
// first packet, until all pk_msglen bytes are sent.
func (s *stream) goesOn(p *packet) error {
	r := p.pair.request(s.c, p.srqid)
	switch {
	case r == nil || r.over:
		return s.wrong(RuleMessage, p, "no message with this pk_srqid is to be continued")
	case r.yes:
		return s.wrong(RuleCancel, p, "the message is cancelled")
	case !r.ackTaken:
		return s.wrong(RuleMessage, p, "its SYNCACK has not come")
	case p.drqid != r.drqid:
		return s.wrong(RuleMessage, p, "the SYNCACK's pk_drqid is %d", r.drqid)
	case p.msglen != r.msglen || p.cid != r.cid || p.lsrank != r.lsrank || p.tag != r.tag:
		return s.wrong(RuleMessage, p, "the first packet said msglen=%d lsrank=%d tag=%d cid=%d", r.msglen, r.lsrank, r.tag, r.cid)
	}
	rest := r.msglen - r.sent
	if uint64(p.length) > rest {
		return s.wrong(RuleMessage, p, "only %d bytes of the message are left", rest)
	}
	if full := min(rest, uint64(s.c.job.Datalen)); uint64(p.length) != full && !s.foreignWriter() && !s.link.boxed {
		return s.wrong(RuleFields, p, "a continuation packet is as full as it can be, %d bytes here", full)
	}
	r.sent += uint64(p.length)
	s.c.settle(r)
	return nil
}

// syncAcks judges a SYNCACK. IMPI ch.3, Message Passing Protocols: one for each
// DATASYNC, when its message is matched.
func (s *stream) syncAcks(p *packet) error {
	r := p.pair.back.request(s.c, p.srqid)
	switch {
	case r == nil:
		return s.wrong(RuleSync, p, "no message with this pk_srqid came from proc %d", p.pair.dest)
	case r.acked:
		return s.wrong(RuleSync, p, "the message has its SYNCACK")
	case r.yes:
		return s.wrong(RuleCancel, p, "the message is cancelled")
	case !r.seen:
		return s.wrong(RuleSync, p, "proc %d has not read the message's first header", p.pair.src)
	}
	r.acked, r.drqid = true, p.drqid
	return nil
}

// cancels judges a CANCEL. It may come late, when the SYNCACK passed it.
// IMPI ch.3, Cancel.
func (s *stream) cancels(p *packet) error {
	r := p.pair.request(s.c, p.srqid)
	switch {
	case r == nil:
		return s.wrong(RuleCancel, p, "no synchronous or long message has this pk_srqid")
	case r.cancel:
		return s.wrong(RuleCancel, p, "it was asked before")
	}
	r.cancel = true
	return nil
}

func (s *stream) answers(p *packet) error {
	r := p.pair.back.request(s.c, p.srqid)
	switch {
	case r == nil || !r.cancelTaken:
		return s.wrong(RuleCancel, p, "proc %d has read no CANCEL of it", p.pair.src)
	case r.answered:
		return s.wrong(RuleCancel, p, "the CANCEL has its answer")
	case p.typ == pkCancelYes && r.acked:
		return s.wrong(RuleCancel, p, "the message has its SYNCACK")
	case p.typ == pkCancelNo && !r.acked && s.c.job.PlainReceives && !s.foreignWriter():
		return s.wrong(RuleCancel, p, "nobody has received the message, which has no SYNCACK")
	}
	r.answered, r.yes = true, p.typ == pkCancelYes
	return nil
}

func (s *stream) announced(p *packet) {
	if p.typ == pkDataSync {
		if r := p.pair.request(s.c, p.srqid); r != nil {
			r.seen = true
		}
	}
}

func (s *stream) heard(p *packet) {
	var r *request
	switch p.typ {
	case pkCancel:
		r = p.pair.request(s.c, p.srqid)
	case pkSyncAck, pkCancelYes, pkCancelNo:
		r = p.pair.back.request(s.c, p.srqid)
	}
	if r == nil {
		return
	}
	switch p.typ {
	case pkCancel:
		r.cancelTaken = true
	case pkSyncAck:
		r.ackTaken = true
	default:
		r.answerTaken = true
	}
	s.c.settle(r)
}

// settle ends a request when its source does not need it any more, and forgets old ones.
func (c *Checker) settle(r *request) {
	if r.over || !(r.ackTaken && r.sent == r.msglen) && !(r.yes && r.answerTaken) {
		return
	}
	r.over = true
	from := &c.procs[r.pair.src]
	from.ended.push(r)
	if from.ended.n <= maxEnded {
		return
	}
	if old := from.ended.pop(); from.requests[old.srqid] == old && !old.undecided() {
		delete(from.requests, old.srqid)
	}
}
