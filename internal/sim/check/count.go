package check

// count counts a packet where it begins.
func (s *stream) count(p *packet) {
	if !s.source && p.typ != pkFini {
		return
	}
	s.c.counts[p.typ]++
	if p.continues() {
		s.c.longs++
	}
}

// Counts gives how many packets of each type were sent, by the name of the type, also
// those that did not arrive. CONTINUATION counts the DATA packets that continue a message.
func (c *Checker) Counts() map[string]int64 {
	counts := map[string]int64{"CONTINUATION": c.longs}
	for t, n := range c.counts {
		counts[typeNames[t]] = n
	}
	return counts
}

// Trace has f called for each packet that somebody has begun to write, by whom, to
// whom, and what it is.
func (c *Checker) Trace(f func(from, to Endpoint, packet string)) { c.trace = f }
