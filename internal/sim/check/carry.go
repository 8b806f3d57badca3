package check

import "hash/crc32"

// hold is what an agent has read of a pair's packets and not yet written. PROTOACKs are counted
// separately, because they may overtake other packets.
type hold struct {
	packets, acks queue[packet]
}

func (h *hold) queue(p *packet) *queue[packet] {
	if p.typ == pkProtoAck {
		return &h.acks
	}
	return &h.packets
}

func (q *pair) hold(c *Checker, host int) *hold {
	i := 0
	if host != c.procs[q.src].host {
		i = 1
	}
	if q.held[i] == nil {
		q.held[i] = new(hold)
	}
	return q.held[i]
}

// carried judges a packet that an agent has passed on: it must be the next of the pair's packets
// that the agent has read.
func (s *stream) carried(p *packet) error {
	from := p.pair.hold(s.c, s.from.Number).queue(p)
	if from.n == 0 {
		return s.wrong(RuleConservation, p, "%v has not read such a packet, or has passed it on before", s.from)
	}
	was := from.pop()
	if was.crc == p.crc && was.size() == p.size() {
		return nil
	}
	if was.line() == p.line() {
		return s.wrong(RuleConservation, p, "%v has changed bytes of it", s.from)
	}
	return s.wrong(RuleConservation, p, "the next one of this pair that %v read was %s", s.from, was.line())
}

// compare compares bytes that arrived by a link with those that were written to it. The offsets of
// the writer's packets tell where each begins and ends.
func (s *stream) compare(data []byte) error {
	if s.commands != nil || int64(len(data)) > s.sent-s.read {
		return s.fault(RuleWiring, s.read, "%d bytes were read where %d had been written", len(data), s.sent-s.read)
	}
	at := s.read
	for i := 0; len(data) > 0; {
		if at < s.base {
			if data[0] != greetingOf(s.from.Number)[at] {
				return s.fault(RuleConservation, at, "the link changed the greeting")
			}
			at, data = at+1, data[1:]
			continue
		}
		n := int64(len(data))
		if i < s.packets.n {
			p := s.packets.at(i)
			n = min(n, p.at+p.size()-at)
		}
		s.readCRC = crc32.Update(s.readCRC, table, data[:n])
		at, data = at+n, data[n:]
		if i < s.packets.n && at == s.packets.at(i).at+s.packets.at(i).size() {
			if p := s.packets.at(i); s.readCRC != p.crc {
				return s.wrong(RuleConservation, p, "the link lost, doubled or changed bytes of it")
			}
			s.readCRC = 0
			i++
		}
	}
	return nil
}
