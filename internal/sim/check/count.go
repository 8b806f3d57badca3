package check

// count counts a packet when its source begins it.
func (s *stream) count(p *packet) {
	if p.typ == pkFail || !s.source && p.typ != pkFini {
		return
	}
	s.c.counts[p.typ]++
	if p.continues() {
		s.c.longs++
	}
}

// Counts returns how many packets of each type were sent, by the name of the type, including those
// that did not arrive. CONTINUATION counts the DATA packets that continue a message.
func (c *Checker) Counts() map[string]int64 {
	counts := map[string]int64{"CONTINUATION": c.longs}
	for t, n := range c.counts {
		counts[typeNames[t]] = n
	}
	return counts
}

// Trace makes the checker call f for each packet when its writer begins it, with the writer, the
// reader and a description.
func (c *Checker) Trace(f func(from, to Endpoint, packet string)) { c.trace = f }
