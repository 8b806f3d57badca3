package check

import "time"

type link struct {
	id    int
	a     *stream // what the first endpoint writes
	b     *stream
	cut   bool
	boxed bool // its procs may use fast boxes beside it
}

type stream struct {
	c        *Checker
	link     *link
	from, to Endpoint
	back     *stream // the other direction

	sent, read int64
	ended      bool // the writer has ended it
	endSeen    bool // the reader has seen it

	// The state of a stream of packets.
	greeting []byte // what is left of the greeting, which comes before the packets
	base     int64  // size of the greeting
	head     [HeaderSize]byte
	have     int
	left     uint32        // bytes of the last packet's data that have yet to come
	late     bool          // the packet began after its writer knew that the reader has finished
	packets  queue[packet] // packets whose header was written and that were not read
	readCRC  uint32        // for Read: the checksum so far of the packet that is being read
	fini     bool          // PK_FINI was written
	finiRead bool
	ids      [2 * IdentitySize]byte // the identities in the last packet
	pair     *pair                  // the pair of the last packet
	source   bool                   // packets come from their source by this stream
	last     bool                   // packets reach their destination by this stream

	commands *commandStream // of a link to the server; else the stream is packets
}

func (l *link) stream(fromA bool) *stream {
	if fromA {
		return l.a
	}
	return l.b
}

// Link announces a link before its first byte. id is the caller's number for it.
// Between agents and between agents and procs there is one link each; between
// two procs there may be several, announced when the node's greeting is over and
// the procs get them. A channel is announced when it is connected, its dance
// included. A link that takes the place of one that was cut has an id of its own.
func (c *Checker) Link(id int, a, b Endpoint) error {
	if c.err != nil {
		return c.err
	}
	if _, ok := c.links[id]; ok {
		return c.end(c.fault(RuleWiring, "link %d is announced twice", id))
	}
	l := &link{id: id}
	l.a = &stream{c: c, link: l, from: a, to: b}
	l.b = &stream{c: c, link: l, from: b, to: a, back: l.a}
	l.a.back = l.b
	if why := c.place(l); why != "" {
		return c.end(c.fault(RuleWiring, "link %d, %v to %v: %s", id, a, b, why))
	}
	c.links[id] = l
	c.order = append(c.order, l)
	return nil
}

// Boxed records that the two procs of a link may use fast boxes beside it, which the checker does
// not see. Messages of several packets are then divided differently.
func (c *Checker) Boxed(id int) {
	if l := c.links[id]; l != nil {
		l.boxed = true
	}
}

// place determines what a link is for. It returns why it may not exist, or "".
func (c *Checker) place(l *link) (why string) {
	a, b := l.a.from, l.b.from
	if !c.exists(a) || !c.exists(b) {
		return "no such endpoint"
	}
	if a.Kind > b.Kind {
		return c.placeOrdered(l, b, a)
	}
	return c.placeOrdered(l, a, b)
}

// placeOrdered is place with a's kind not above b's.
func (c *Checker) placeOrdered(l *link, a, b Endpoint) (why string) {
	switch {
	case a.Kind == KindProc && b.Kind == KindProc:
		return c.placeDirect(l, a.Number, b.Number)
	case a.Kind == KindProc && b.Kind == KindAgent:
		return c.placeLocal(l, a.Number, b.Number)
	case a.Kind == KindAgent && b.Kind == KindAgent:
		return c.placeChannel(l, l.a.from.Number, l.b.from.Number)
	case a.Kind == KindServer && b.Kind == KindClient:
		return c.placeServerLink(l, b.Number)
	}
	return "nothing for these two to say"
}

func (c *Checker) exists(e Endpoint) bool {
	n := e.Number
	switch e.Kind {
	case KindProc:
		return n >= 0 && n < len(c.procs)
	case KindAgent:
		return n >= 0 && n < len(c.hosts)
	case KindServer:
		return n == 0
	case KindClient:
		return n >= 0 && n < len(c.clients)
	}
	return false
}

func (c *Checker) placeDirect(l *link, a, b int) (why string) {
	g, h := &c.hosts[c.procs[a].host], &c.hosts[c.procs[b].host]
	if a == b || !g.Own || !h.Own || g.Whole || h.Whole {
		return "no direct link between these two"
	}
	for _, s := range []*stream{l.a, l.b} {
		s.source, s.last = true, true
	}
	return ""
}

func (c *Checker) placeLocal(l *link, rank, agent int) (why string) {
	p := &c.procs[rank]
	if p.host != agent || c.hosts[agent].Whole {
		return "not the agent of that proc"
	}
	if p.link != nil {
		return "that proc has its link"
	}
	p.link = l
	c.hosts[agent].links++
	up := l.stream(l.a.from.Kind == KindProc)
	up.source, up.back.last = true, true
	return ""
}

func (c *Checker) placeChannel(l *link, a, b int) (why string) {
	if a == b {
		return "a host needs no channel to itself"
	}
	g, h := &c.hosts[a], &c.hosts[b]
	if old := g.channels[b]; old != nil && !old.cut {
		return "these two have a channel"
	}
	g.channels[b], h.channels[a] = l, l
	g.links++
	h.links++
	l.a.source, l.b.last = g.Whole, g.Whole
	l.b.source, l.a.last = h.Whole, h.Whole
	up := l.stream(a > b)
	up.greeting, up.base = greetingOf(max(a, b)), greetingSize
	return ""
}

func (c *Checker) touch(id int, now time.Duration) (*link, error) {
	if c.err != nil {
		return nil, c.err
	}
	c.now = max(c.now, now)
	l := c.links[id]
	if l == nil {
		return nil, c.end(c.fault(RuleWiring, "link %d was not announced", id))
	}
	return l, nil
}

// end keeps the first error and returns it from then on.
func (c *Checker) end(err error) error {
	if c.err == nil {
		c.err = err
	}
	return c.err
}

// Sent records that an end has written data: the first end if fromA. The checker keeps no reference
// to data.
func (c *Checker) Sent(id int, fromA bool, data []byte, now time.Duration) error {
	l, err := c.touch(id, now)
	if err != nil {
		return err
	}
	return c.end(l.stream(fromA).written(data))
}

// Received records that an end has read the next n bytes: the first end if toA.
func (c *Checker) Received(id int, toA bool, n int, now time.Duration) error {
	l, err := c.touch(id, now)
	if err != nil {
		return err
	}
	return c.end(l.stream(!toA).received(n))
}

// Read is Received for a link that may change its bytes: the received bytes must be those that were
// written. In one direction, a link reports either all its bytes by Read, or none.
func (c *Checker) Read(id int, toA bool, data []byte, now time.Duration) error {
	l, err := c.touch(id, now)
	if err != nil {
		return err
	}
	s := l.stream(!toA)
	if err := s.compare(data); err != nil {
		return c.end(err)
	}
	return c.end(s.received(len(data)))
}

// Ended records that an end writes no more: the first end if fromA.
func (c *Checker) Ended(id int, fromA bool) error {
	l, err := c.touch(id, 0)
	if err != nil {
		return err
	}
	s := l.stream(fromA)
	switch {
	case s.ended || s.from.Kind != KindProc:
	case s.to.Kind == KindAgent:
		c.procs[s.from.Number].left = true
	default:
		c.between(s.from.Number, s.to.Number).part()
	}
	s.ended = true
	return nil
}

// SawEnd records that an end has learned that the other one writes no more: the first end has if
// byA.
func (c *Checker) SawEnd(id int, byA bool) error {
	l, err := c.touch(id, 0)
	if err != nil {
		return err
	}
	s := l.stream(!byA)
	if !s.ended && !l.cut {
		return c.end(s.fault(RuleWiring, s.sent, "its end was seen before it came"))
	}
	s.endSeen = s.endSeen || !l.cut // a cut link ends by itself, not by its writer
	return nil
}

// Finished says that a proc tells its node that it has finished. For others the
// end of its link to its agent says the same.
func (c *Checker) Finished(rank int) error {
	if c.err == nil && !c.exists(ProcEnd(rank)) {
		return c.end(c.fault(RuleWiring, "no proc %d", rank))
	}
	if c.err == nil {
		c.procs[rank].finished = true
	}
	return c.err
}

// Cut records that a link is broken: what was not read may be lost, both ways.
func (c *Checker) Cut(id int) error {
	l, err := c.touch(id, 0)
	if err == nil {
		l.cut = true
	}
	return err
}

// Crashed records that an endpoint is dead. All its links are cut.
func (c *Checker) Crashed(e Endpoint) error {
	if c.err != nil {
		return c.err
	}
	for _, l := range c.order {
		if l.a.from == e || l.b.from == e {
			l.cut = true
		}
	}
	return nil
}
