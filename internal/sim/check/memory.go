package check

import "time"

// moved counts bytes of packets that an agent read (n above 0) or wrote.
func (s *stream) moved(e Endpoint, n int64) {
	if e.Kind == KindAgent && s.commands == nil {
		s.c.hosts[e.Number].held += n
	}
}

func (c *Checker) countThrough(q *pair) {
	if q.route.a.from.Kind == KindProc && q.route.b.from.Kind == KindProc {
		return
	}
	g, h := c.procs[q.src].host, c.procs[q.dest].host
	c.hosts[g].through++
	if h != g {
		c.hosts[h].through++
	}
}

// perPair is the most that an agent can hold of one pair, in bytes: a window of
// packets, and the PROTOACKs that can be on their way, which go back against
// them. There are at most HiWater/AckMark of those: each stands for AckMark
// packets that the source still counts.
func (c *Checker) perPair() int64 {
	h, a := int64(c.job.HiWater), int64(c.job.AckMark)
	return h*(HeaderSize+int64(c.job.Datalen)) + h/a*HeaderSize
}

// Bound returns the maximum number of bytes of packets that the agent of a host may hold now: a
// window for each pair whose packets pass it, and for each of its links a FINI and a header that is
// not complete. The rules window, ack and conservation imply that Held never exceeds it.
func (c *Checker) Bound(host int) int64 {
	h := &c.hosts[host]
	return h.through*c.perPair() + int64(h.links)*2*HeaderSize
}

// Memory checks an agent's report about itself: queued bytes that wait for links, in memory bytes
// of chunks of the given size. It cannot have queued more than it has read, except its FINIs. A
// chunk is kept as long as any part of it is in use, so n bytes keep at most twice as much; in
// addition a link has at most three chunks for each of its two queues, and two chunks and a packet
// for reading. If the job ends in order, the last report of its host must have nothing queued.
func (c *Checker) Memory(host int, queued, memory, chunk int64, now time.Duration) error {
	if c.err != nil {
		return c.err
	}
	c.now = max(c.now, now)
	if host < 0 || host >= len(c.hosts) {
		return c.end(c.fault(RuleWiring, "no host %d", host))
	}
	h := &c.hosts[host]
	h.queued = queued
	if most := min(h.held+int64(len(h.channels))*HeaderSize, c.Bound(host)); queued > most {
		return c.end(c.fault(RuleMemory, "agent %d has %d bytes queued; it has read but %d bytes more than it wrote, and its %d pairs may need %d",
			host, queued, h.held, h.through, c.Bound(host)))
	}
	if most := 2*queued + int64(h.links)*(8*chunk+HeaderSize+int64(c.job.Datalen)); memory > most {
		return c.end(c.fault(RuleMemory, "agent %d uses %d bytes of chunks for %d bytes queued on %d links; it should not need more than %d",
			host, memory, queued, h.links, most))
	}
	return nil
}
