package check

func (s *stream) address(p *packet, h []byte) error {
	ids := h[offSrc : offSrc+2*IdentitySize]
	if s.pair != nil && string(ids) == string(s.ids[:]) {
		p.pair = s.pair
		return nil
	}
	src, ok := s.c.byID[[IdentitySize]byte(ids)]
	if !ok {
		return s.wrong(RuleAddress, p, "pk_src %s is no proc of the job", who(ids))
	}
	dest, ok := s.c.byID[[IdentitySize]byte(ids[IdentitySize:])]
	if !ok {
		return s.wrong(RuleAddress, p, "pk_dest %s is no proc of the job", who(ids[IdentitySize:]))
	}
	switch {
	case src == dest:
		return s.wrong(RuleAddress, p, "proc %d sends to itself", src)
	case !s.c.speaksFor(s.from, src, s.to):
		return s.wrong(RuleAddress, p, "pk_src is proc %d, for whom %v does not send here", src, s.from)
	case !s.c.speaksFor(s.to, dest, s.from):
		return s.wrong(RuleAddress, p, "pk_dest is proc %d, for whom %v does not receive here", dest, s.to)
	}
	p.pair = s.c.between(src, dest)
	s.pair = p.pair
	copy(s.ids[:], ids)
	return nil
}

// speaksFor reports whether packets of proc rank may pass end e of a link to other.
func (c *Checker) speaksFor(e Endpoint, rank int, other Endpoint) bool {
	switch {
	case e.Kind == KindProc:
		return e.Number == rank
	case other.Kind == KindAgent: // a channel
		return c.procs[rank].host == e.Number
	}
	return rank != other.Number // an agent sends its proc only packets of other ranks
}
