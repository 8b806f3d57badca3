package check

// checkFields judges the fields of a packet of one of our own procs that its peers ignore, and
// whether it fills its packets.
func (s *stream) checkFields(p *packet, h []byte) error {
	if !p.hasData() {
		return s.checkUnused(p, h)
	}
	first := !p.continues()
	switch {
	case long(h, offReserved) != 0:
		return s.wrong(RuleFields, p, "pk_reserved is %d", long(h, offReserved))
	case p.tag < 0 || p.lsrank < 0:
		return s.wrong(RuleFields, p, "neither tags nor ranks are negative")
	case first && p.drqid != 0:
		return s.wrong(RuleFields, p, "nobody has given it a pk_drqid")
	case p.typ == pkDataSync && !s.link.boxed && uint64(p.length) != min(p.msglen, uint64(s.c.job.Datalen)):
		return s.wrong(RuleFields, p, "a first packet is as full as it can be")
	}
	return nil
}

// checkUnused is checkFields for packets without data.
func (s *stream) checkUnused(p *packet, h []byte) error {
	ids := [...]uint64{p.srqid, p.drqid}
	unused := ids[:0]
	switch p.typ {
	case pkProtoAck:
		unused = ids[:]
	case pkCancel, pkCancelYes, pkCancelNo:
		unused = ids[1:]
	}
	for _, id := range unused {
		if id != 0 {
			return s.wrong(RuleFields, p, "it has a request id that means nothing, %d", id)
		}
	}
	if p.length != 0 || !zero(h[offMsglen:]) {
		return s.wrong(RuleFields, p, "pk_len is %d, and what should be zero from byte %d on is %x", p.length, offMsglen, h[offMsglen:])
	}
	return nil
}
