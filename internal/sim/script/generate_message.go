package script

import "time"

// message draws a message between members of a communicator, with a tag that others have too.
func (g *generator) message(c *group) Message {
	m := Message{From: Pick(g.Draws, c.all()...), Comm: c.name}
	m.To, m.Tag, m.Kind = Pick(g.Draws, c.partners(m.From)...), g.IntN(sharedTags), g.kind()
	m.Len = g.length(m.Kind, 1)
	m.Cap = m.Len
	switch {
	case g.OneIn(12):
		m.Cap = g.IntN(m.Len + 1)
	case g.OneIn(6):
		m.Cap += 1 + g.IntN(20)
	}
	m.Mode = g.mode(&m)
	if g.OneIn(4) {
		m.By = ReceiveBy(g.IntN(len(byNames)))
	}
	return m
}

func (g *generator) plain() {
	m := g.message(g.comm(false))
	if g.OneIn(6) {
		g.series(m)
		return
	}
	f := g.add(m)
	switch {
	case m.From != m.To && g.OneIn(3) && f.maySend() && f.mayPost():
		g.emit(Exchange{Msgs: []int{f.m.ID}})
		f.sending, f.sent, f.posting, f.received = true, true, true, true
		g.sweep()
	case g.OneIn(2) && f.maySend():
		g.begin(f, SendSide, false)
	case m.By == ByRecv && f.mayPost():
		g.begin(f, RecvSide, false)
	}
}

func (g *generator) series(m Message) {
	m.Tag, m.By = g.fresh(), ByRecv
	sides := 1 + g.IntN(3)
	g.slots++
	if sides&1 != 0 {
		m.SendSlot = g.slots
	}
	if sides&2 != 0 {
		m.RecvSlot = g.slots
	}
	for range 1 + g.IntN(4) {
		if m.Mode == Buffered && g.memory[m.From] < m.buffered() {
			return
		}
		g.add(m)
	}
}

func (g *generator) ring() {
	c := g.comm(false)
	if c.inter() {
		return
	}
	at := g.Perm(len(c.members))[:1+g.IntN(len(c.members))]
	chain := len(at) > 1 && g.OneIn(3)
	k, tag, replace := g.kind(), g.fresh(), g.OneIn(3)
	var flights []*flight
	for i, from := range at {
		if chain && i == len(at)-1 {
			break
		}
		m := Message{From: c.members[from], To: c.members[at[(i+1)%len(at)]], Comm: c.name, Tag: tag, Kind: k}
		m.Len = g.length(k, 1)
		m.Cap = m.Len
		flights = append(flights, g.add(m))
	}
	s := Exchange{Replace: replace}
	for i, f := range flights {
		s.Msgs = append(s.Msgs, f.m.ID)
		f.sending, f.sent, f.posting, f.received = true, true, true, true
		if replace && (!chain || i+1 < len(flights)) {
			f.m.Cap = flights[(i+1)%len(flights)].m.Len
		}
	}
	g.emit(s)
	g.sweep()
}

func (g *generator) burst() {
	c := g.comm(false)
	anyTag := g.OneIn(2)
	if anyTag {
		if c = g.comm(true); c == nil {
			g.dup(g.comm(false), true)
			return
		}
	}
	to := Pick(g.Draws, c.all()...)
	if anyTag && g.wild[c.name][to] {
		g.epoch(c)
		return
	}
	if anyTag && g.OneIn(2) {
		g.wild[c.name][to] = true
		g.mixture(c, to)
		return
	}
	m := Message{To: to, Comm: c.name, Tag: g.fresh(), Kind: g.kind(), AnySource: !anyTag || g.OneIn(2), AnyTag: anyTag, From: Pick(g.Draws, c.partners(to)...)}
	if g.OneIn(3) {
		m.By = ReceiveBy(g.IntN(len(byNames)))
	} else if g.OneIn(5) {
		g.slots++
		m.RecvSlot = g.slots
	}
	if anyTag {
		g.wild[c.name][to] = true
	}
	b := &burst{}
	longest := 0
	for range 2 + g.IntN(8) {
		m.Len = g.length(m.Kind, 2)
		longest = max(longest, m.Len)
		if m.AnySource {
			m.From = Pick(g.Draws, c.partners(to)...)
		}
		if anyTag {
			m.Tag = g.IntN(sharedTags)
		}
		m.Mode = g.mode(&m)
		f := g.add(m)
		if m.AnySource {
			f.burst = b
		}
		f.earlier = nil
		for _, o := range b.flights {
			if o.m.From == m.From {
				f.earlier = append(f.earlier, o)
			}
		}
		f.queue = f.earlier
		b.flights = append(b.flights, f)
	}
	for _, f := range b.flights {
		f.m.Cap = longest + b.flights[0].m.ID%2
		if g.OneIn(2) && f.maySend() {
			g.begin(f, SendSide, false)
		}
	}
}

// mixture begins messages of one sender to receives with all kinds of wildcards, such that it is
// determined which receive gets which message.
func (g *generator) mixture(c *group, to int) {
	m := Message{From: Pick(g.Draws, c.partners(to)...), To: to, Comm: c.name}
	messages := make([]Message, 2+g.IntN(20))
	receives := make([]pattern, len(messages))
	for i := range messages {
		m.Tag, m.Kind = g.IntN(sharedTags), g.kind()
		m.Len = g.length(m.Kind, 2)
		m.Cap = m.Len + g.IntN(2)
		messages[i] = m
	}
	for i, n := range g.Perm(len(messages)) {
		r := messages[n]
		r.AnySource, r.AnyTag = g.OneIn(2), g.OneIn(3)
		receives[i] = r.pattern()
	}
	by, ok := pair(messages, receives)
	for i := range messages {
		if ok {
			messages[i].AnySource, messages[i].AnyTag = receives[by[i]].source == anySource, receives[by[i]].tag == anyTag
		}
	}
	queue := make([]*flight, len(messages))
	var earlier []*flight
	for i, m := range messages {
		m.Mode = g.mode(&m)
		f := g.add(m)
		if ok {
			f.earlier, queue[by[i]] = earlier, f
			earlier = append(earlier, f)
		}
	}
	if !ok {
		return
	}
	for i, f := range queue {
		f.queue = queue[:i]
	}
	if g.OneIn(2) { // a long queue of receives before the first message
		for _, f := range queue {
			if f.mayPost() {
				g.begin(f, RecvSide, false)
			}
		}
	}
}

// pair returns the receive of each message, in the order of sending; ok is false if a message finds
// none.
func pair(messages []Message, receives []pattern) (by []int, ok bool) {
	taken := make([]bool, len(receives))
	for i := range messages {
		n := -1
		for r, p := range receives {
			if n < 0 && !taken[r] && p.admits(&messages[i]) {
				n = r
			}
		}
		if n < 0 {
			return nil, false
		}
		taken[n] = true
		by = append(by, n)
	}
	return by, true
}

// epoch makes a communicator for wildcard tags usable again, if nothing is under way on it.
func (g *generator) epoch(c *group) {
	for _, f := range g.open {
		if f.m.Comm == c.name {
			return
		}
	}
	g.emit(Collective{Call: Barrier, Comm: c.name})
	clear(g.wild[c.name])
	for k := range g.byMatch {
		if k.comm == c.name {
			delete(g.byMatch, k)
		}
	}
}

func (g *generator) flood() {
	m := g.message(g.comm(false))
	m.By, m.Len = ByRecv, g.length(m.Kind, 4)
	m.Cap = m.Len
	if g.OneIn(2) {
		m.Tag = g.fresh()
	}
	for range 5 + g.IntN(40) {
		if g.OneIn(3) {
			m.Len = g.IntN(16)
			m.Cap = m.Len
		}
		m.Mode = g.mode(&m)
		if f := g.add(m); f.maySend() {
			g.begin(f, SendSide, m.Mode == Buffered && g.OneIn(2))
		}
	}
}

func token(g *generator) {
	c := g.comm(false)
	if c.inter() || len(c.members) < 2 {
		return
	}
	at := g.Perm(len(c.members))[:2+g.IntN(len(c.members)-1)]
	for hop := range len(at) * g.Between(1, 4) {
		m := Message{From: c.members[at[hop%len(at)]], To: c.members[at[(hop+1)%len(at)]], Comm: c.name, Tag: g.fresh(), Kind: Uint8, AnySource: true, Len: 1, Cap: 1}
		f := g.add(m)
		f.burst = &burst{flights: []*flight{f}}
		g.begin(f, SendSide, false)
		g.begin(f, RecvSide, true)
	}
}

// shortOnes sends more short messages than a link has fast boxes, or a few, while their receiver
// computes. The receiver then receives them in another order: messages with two tags in any order,
// and after receives that it had begun before.
func shortOnes(g *generator) {
	drained := g.OneIn(2) // receives only look into boxes if nothing else is under way
	if drained {
		g.drain()
	}
	c := g.comm(false)
	m := Message{From: Pick(g.Draws, c.all()...), Comm: c.name, Kind: Uint8}
	if m.To = Pick(g.Draws, c.partners(m.From)...); m.To == m.From {
		return
	}
	for i := range 4 { // until the procs have a link
		m.Tag, m.From, m.To = g.fresh(), m.To, m.From
		f := g.add(m)
		g.begin(f, SendSide, false)
		g.begin(f, RecvSide, i%4 != 3 || g.OneIn(2))
	}
	tags := []int{g.fresh(), g.fresh()}[g.IntN(2):]
	if drained && len(tags) > 1 && g.OneIn(2) {
		for range 2 + g.IntN(4) {
			ask := g.add(Message{From: m.To, To: m.From, Comm: c.name, Tag: g.fresh(), Kind: Uint8})
			g.begin(ask, SendSide, false)
			g.begin(ask, RecvSide, true)
			g.drain()
			shortOf(g, m, tags, 2, 0)
		}
		return
	}
	count := 2 + g.IntN(5)
	if g.OneIn(2) {
		count = 65 + g.IntN(20) // a link has 64 boxes
	}
	shortOf(g, m, tags, count, g.IntN(3))
}

// shortOf sends count short messages like m, with these tags. The first ones, as many as before
// says, go to receives that have begun earlier.
func shortOf(g *generator, m Message, tags []int, count, before int) {
	most := min(96, g.o.MaxBytes/64) // bytes of data in a box
	if g.OneIn(3) {
		most = min(600, g.o.MaxBytes/8) // more data than a box holds
	}
	var flights []*flight
	for range count {
		m.Tag, m.Len = Pick(g.Draws, tags...), 1+g.IntN(most)
		m.Cap = m.Len
		flights = append(flights, g.add(m))
	}
	for _, f := range flights[:before] {
		g.begin(f, RecvSide, false)
	}
	g.emit(Pause{m.To, time.Duration(100+g.IntN(3000)) * time.Microsecond})
	for _, f := range flights {
		g.begin(f, SendSide, false)
	}
	g.Shuffle(len(flights), func(i, j int) { flights[i], flights[j] = flights[j], flights[i] })
	for range flights {
		for _, f := range flights {
			if f.mayPost() {
				g.begin(f, RecvSide, true)
			}
		}
	}
	g.sweep()
}

func (g *generator) ready() {
	c := g.comm(false)
	m := g.message(c)
	if m.Mode == Buffered {
		return
	}
	m.Mode, m.By, m.Tag = Ready, ByRecv, g.fresh()
	f := g.add(m)
	g.begin(f, RecvSide, false)
	f.known = true
	switch {
	case m.From == m.To:
	case g.OneIn(3):
		g.emit(Collective{Call: Barrier, Comm: c.name})
	default:
		token := g.add(Message{From: m.To, To: m.From, Comm: c.name, Tag: g.fresh(), Kind: Uint8})
		token.sending, token.sent, token.posting, token.received = true, true, true, true
		g.emit(Exchange{Msgs: []int{token.m.ID}})
		g.sweep()
	}
}

func (g *generator) cancel() {
	c := g.comm(false)
	if g.OneIn(5) {
		s := Unmatched{Rank: Pick(g.Draws, c.all()...), Comm: c.name, Tag: g.fresh()}
		s.Source = Pick(g.Draws, c.partners(s.Rank)...)
		if g.OneIn(3) {
			s.Source = anySource
		}
		g.emit(s)
		return
	}
	m := g.message(c)
	m.Tag = g.fresh()
	side := Side(g.IntN(2))
	if side == RecvSide {
		m.By = ByRecv
	}
	f := g.add(m)
	f.cancelled = &side
	g.advanceCancel(f)
}
