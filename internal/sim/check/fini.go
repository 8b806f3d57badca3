package check

import "slices"

// takeFini judges a FINI whose header is just complete.
//
// IMPI ch.3, Finalization: a host sends one by each channel, after all its procs
// have passed the barrier of MPI_Finalize.
func (s *stream) takeFini(p *packet, h []byte) error {
	if s.from.Kind != KindAgent || s.to.Kind != KindAgent {
		return s.wrong(RuleFini, p, "only hosts send it, to hosts")
	}
	if s.fini {
		return s.wrong(RuleFini, p, "it was sent before")
	}
	from := &s.c.hosts[s.from.Number]
	for _, r := range from.procs {
		q := &s.c.procs[r]
		if !from.Whole && !q.finished && !q.left && (q.link == nil || !q.link.cut) {
			return s.wrong(RuleFini, p, "proc %d of this host has not finished", r)
		}
	}
	if !from.Foreign && !zero(h[offLen:]) {
		return s.wrong(RuleFields, p, "something is not zero: %x", h[offLen:])
	}
	s.fini = true
	s.moved(s.from, HeaderSize)
	return s.append(p, h)
}

// takeFail judges a FAIL whose header is just complete. A host sends one by each channel to hosts
// of ours, whenever its job fails.
func (s *stream) takeFail(p *packet, h []byte) error {
	switch {
	case s.from.Kind != KindAgent || s.to.Kind != KindAgent || s.foreignWriter() || s.c.hosts[s.to.Number].Foreign:
		return s.wrong(RuleFraming, p, "only hosts of ours send it, to such hosts")
	case p.length > maxFail:
		return s.wrong(RuleFraming, p, "pk_len is above %d", maxFail)
	case !zero(h[offSrc:]):
		return s.wrong(RuleFields, p, "something is not zero: %x", h[offSrc:])
	}
	s.moved(s.from, p.size())
	return s.append(p, h)
}

func zero(b []byte) bool {
	return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}
