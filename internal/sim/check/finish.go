package check

import "slices"

// Finish checks the final state when nothing happens any more. clean means that the job ended in
// order: then everything that was sent and could arrive must have arrived, and every request must
// be answered. For a job that ended by a fault Finish only repeats what was found before.
func (c *Checker) Finish(clean bool) error {
	if c.err != nil || !clean {
		return c.err
	}
	if c.failed != nil {
		return c.end(c.failed)
	}
	for _, l := range c.order {
		for _, s := range []*stream{l.a, l.b} {
			if l.cut {
				continue
			}
			if err := s.over(); err != nil {
				return c.end(err)
			}
		}
	}
	for h := range c.hosts {
		if n := c.hosts[h].queued; n > 0 {
			return c.end(c.fault(RuleMemory, "agent %d has %d bytes queued still", h, n))
		}
	}
	for _, q := range c.made {
		if err := c.delivered(q); err != nil {
			return c.end(err)
		}
	}
	for r := range c.procs {
		if err := c.answered(&c.procs[r]); err != nil {
			return c.end(err)
		}
	}
	return nil
}

func (s *stream) over() error {
	if s.commands != nil {
		return s.commands.over(s)
	}
	if s.left > 0 {
		return s.wrong(RuleFraming, s.packets.back(), "%d bytes of it are missing", s.left)
	}
	if s.have > 0 && !s.back.ended {
		return s.fault(RuleFraming, s.sent-int64(s.have), "%d bytes of a header, and no more", s.have)
	}
	for i := range s.packets.n {
		if p := s.packets.at(i); p.typ != pkProtoAck || !s.back.ended {
			return s.wrong(RuleConservation, p, "%v has not read it", s.to)
		}
	}
	if s.from.Kind == KindAgent && s.to.Kind == KindAgent && !s.fini {
		return s.fault(RuleFini, s.sent, "there was no FINI")
	}
	return nil
}

func (t *commandStream) over(s *stream) error {
	k := t.client
	switch {
	case t.have > 0 || t.left > 0:
		return t.wrong(s, "it is not complete")
	case t.up && !k.fini:
		return s.fault(RuleStartup, s.sent, "the server has read no FINI")
	case !t.up && !k.running && !k.foreign:
		return s.fault(RuleStartup, s.sent, "the client has read no DONE")
	}
	return nil
}

// hurt reports whether a link that the pair's packets need was cut.
func (c *Checker) hurt(q *pair) bool {
	if q.route == nil {
		return false
	}
	if q.route.cut || q.rerouted {
		return true
	}
	g, h := c.procs[q.src].host, c.procs[q.dest].host
	if q.route.a.from.Kind == KindProc && q.route.b.from.Kind == KindProc {
		return false
	}
	return slices.ContainsFunc([]*link{c.hosts[g].channels[h], c.procs[q.dest].link}, func(l *link) bool { return l != nil && l.cut })
}

func (c *Checker) delivered(q *pair) error {
	if c.hurt(q) || c.hurt(q.back) {
		return nil
	}
	for i, h := range q.held {
		if h == nil {
			continue
		}
		host := c.procs[[...]int32{q.src, q.dest}[i]].host
		if h.packets.n > 0 && !(c.procs[q.dest].left && onlyLateAnswers(&h.packets)) {
			return c.fault(RuleConservation, "agent %d has not passed on %s", host, h.packets.front().line())
		}
		if h.acks.n > 0 && !c.procs[q.dest].left {
			return c.fault(RuleConservation, "agent %d has not passed on %s", host, h.acks.front().line())
		}
	}
	// IMPI ch.3, Packet Protocol: what is left of a window is not acknowledged.
	due := q.rcvd / c.ackMark
	if q.parted && q.acks < due {
		due = max(q.acks, q.dueThen)
	}
	if q.acks != due {
		return c.fault(RuleAck, "proc %d read %d packets of proc %d and wrote %d PROTOACKs, not %d", q.dest, q.rcvd, q.src, q.acks, due)
	}
	return nil
}

// onlyLateAnswers reports whether all packets say that it was too late to cancel. A send whose
// SYNCACK came while its CANCEL left is complete, so its proc may have left MPI by then.
func onlyLateAnswers(q *queue[packet]) bool {
	for i := range q.n {
		if q.at(i).typ != pkCancelNo {
			return false
		}
	}
	return true
}

// answered judges a proc's requests. If several have no answer, the error names the lowest number,
// so that a seed always reports the same one.
func (c *Checker) answered(p *proc) error {
	var r *request
	for _, x := range p.requests {
		tooLate := x.over && x.ackTaken && x.answered && !x.yes && p.left // see onlyLateAnswers
		if x.over && !x.undecided() || tooLate || c.hurt(x.pair) || c.hurt(x.pair.back) {
			continue
		}
		if r == nil || x.srqid < r.srqid {
			r = x
		}
	}
	switch {
	case r == nil:
		return nil
	case r.undecided():
		return c.fault(RuleCancel, "CANCEL of proc %d to proc %d, srqid=%d, has no answer", r.pair.src, r.pair.dest, r.srqid)
	case r.acked && !r.yes:
		return c.fault(RuleMessage, "message of proc %d to proc %d, srqid=%d, has come to %d of %d bytes", r.pair.src, r.pair.dest, r.srqid, r.sent, r.msglen)
	}
	return c.fault(RuleSync, "message of proc %d to proc %d, srqid=%d, has no SYNCACK", r.pair.src, r.pair.dest, r.srqid)
}
