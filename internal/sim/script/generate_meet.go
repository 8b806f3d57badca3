package script

import (
	"slices"
	"time"
)

type meeting struct{ *generator }

// pick picks a communicator for which ok returns true; nil if there is none.
func (g *meeting) pick(ok func(c *group) bool) *group {
	var list []*group
	for _, c := range g.comms.all {
		if ok(c) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return Pick(g.Draws, list...)
}

func usable(c *group) bool { return c.live }

func intra(c *group) bool { return c.live && !c.inter() }

// disjointFrom returns a condition that intracommunicators without members in common with c meet.
func disjointFrom(c *group) func(d *group) bool {
	return func(d *group) bool { return intra(d) && !slices.ContainsFunc(d.members, c.has) }
}

// meet makes two groups of different worlds, or of worlds that are connected already, meet at a
// port that is open or is opened for them.
func (g *meeting) meet() {
	if g.OneIn(4) && g.again() {
		return
	}
	c := g.pick(intra)
	d := g.pick(disjointFrom(c))
	if d == nil {
		return
	}
	s := Meet{Comm: c.name, With: d.name, New: g.name(), Root: Pick(g.Draws, c.members...), WithRoot: Pick(g.Draws, d.members...)}
	s.Port = 1 + slices.Index(g.ports, s.Root)
	if s.Port == 0 || g.OneIn(2) {
		g.ports = append(g.ports, s.Root)
		s.Port = len(g.ports)
		g.emit(OpenPort{s.Root, s.Port})
	}
	if g.OneIn(2) {
		s.Late = time.Duration(g.IntN(5000)) * time.Microsecond
	}
	g.construct(s, false)
	if g.IntN(3) > 0 {
		g.close(s.Port)
	}
}

// again makes two worlds meet, part and meet once more, while one proc of the first one has another
// communicator with the second. The links of its other procs are given up and needed again at the
// same time. It returns false if there are no such worlds.
func (g *meeting) again() bool {
	world := func(c *group) bool { return c.live && c.fixed && !g.comms.self(c) }
	c := g.pick(func(c *group) bool { return world(c) && len(c.members) > 1 })
	if c == nil {
		return false
	}
	d := g.pick(func(d *group) bool { return world(d) && d != c && !g.connected(c, d) })
	if d == nil {
		return false
	}
	root, with := Pick(g.Draws, c.members...), Pick(g.Draws, d.members...)
	g.ports = append(g.ports, root)
	port := len(g.ports)
	g.emit(OpenPort{root, port})
	meet := func(c string) *group {
		s := Meet{Comm: c, With: d.name, New: g.name(), Root: root, WithRoot: with, Port: port}
		g.construct(s, false)
		return g.comms.byName[s.New]
	}
	first := meet(c.name)
	g.allPairsOf([]*group{first})
	g.drain()
	meet(g.comms.title(root))
	g.construct(Disconnect{first.name}, false)
	g.allPairsOf([]*group{meet(c.name)})
	g.close(port)
	return true
}

func (g *meeting) connected(c, d *group) bool {
	return slices.ContainsFunc(g.comms.all, func(x *group) bool {
		return (x.live || x.of != nil) && slices.ContainsFunc(x.all(), c.has) && slices.ContainsFunc(x.all(), d.has)
	})
}

func (g *meeting) spawn() {
	if len(g.o.Spawns) == 0 {
		return
	}
	s := g.take()
	c := g.pick(intra)
	s.Comm, s.Root = c.name, Pick(g.Draws, c.members...)
	if len(g.o.Spawns) > 0 && s.Fails == Nothing && g.OneIn(2) {
		next := g.take()
		next.Comm, next.Root = s.Comm, s.Root
		g.replace(s, next)
		return
	}
	world, _ := g.comms.worldOf(s.Root)
	hosts := g.o.Hosts(world)
	if len(hosts) > 0 && g.OneIn(2) {
		for range s.Procs {
			s.Hosts = append(s.Hosts, Pick(g.Draws, hosts...))
		}
	}
	switch s.Fails {
	case Nothing:
		s.New = g.name()
	case NoHost:
		s.Hosts = []string{"nowhere"}
	default: // unchanged
	}
	g.construct(s, false)
}

func (g *meeting) take() (s Spawn) {
	s, g.o.Spawns = g.o.Spawns[0], g.o.Spawns[1:]
	return s
}

// replace spawns a world that does nothing and disconnects from it. The same proc then spawns
// another world, or fails to, while the slots of the first are about to be given back.
func (g *meeting) replace(s, next Spawn) {
	s.New = g.name()
	g.construct(s, false)
	for _, c := range g.comms.of(s.World) { // nothing more may happen there
		c.live = false
	}
	g.construct(Disconnect{s.New}, false)
	if members := g.comms.byName[s.World].members; g.OneIn(2) { // it keeps its slots for a while
		g.emit(Pause{Pick(g.Draws, members...), time.Duration(1+g.IntN(4)) * time.Second})
	}
	switch next.Fails {
	case Nothing:
		next.New = g.name()
	case NoHost:
		next.Hosts = []string{"nowhere"}
	default: // unchanged
	}
	g.construct(next, false)
}

func (g *meeting) close(port int) {
	if owner := g.ports[port-1]; owner != never {
		g.emit(ClosePort{owner, port})
		g.ports[port-1] = never
	}
}

// idup begins to duplicate a communicator, or waits for a duplicate that was begun.
func (g *meeting) idup() {
	under := func(c *group) bool { return c.of != nil }
	if c := g.pick(under); c != nil && g.OneIn(2) {
		g.construct(Finish{c.name}, false)
		return
	}
	g.construct(Idup{g.pick(usable).name, g.name()}, false)
}

func (g *meeting) merge() {
	if c := g.pick(func(c *group) bool { return c.live && c.inter() }); c != nil {
		g.construct(Merge{c.name, g.name(), g.OneIn(2)}, false)
	}
}

func (g *meeting) intercomm() {
	busy := g.busy()
	peer := g.pick(func(c *group) bool { return c.live && len(c.all()) > 1 && !busy[c.name] })
	if peer == nil {
		return
	}
	knows := func(c *group) bool { return slices.ContainsFunc(c.members, peer.has) }
	c := g.pick(func(c *group) bool { return intra(c) && knows(c) })
	if c == nil {
		return
	}
	d := g.pick(func(d *group) bool { return disjointFrom(c)(d) && knows(d) })
	if d == nil {
		return
	}
	for _, leader := range c.members {
		for _, with := range d.members {
			if peer.has(leader) && slices.Contains(peer.partners(leader), with) {
				g.construct(Intercomm{Comm: c.name, With: d.name, Peer: peer.name, New: g.name(), Leader: leader, WithLead: with}, false)
				return
			}
		}
	}
}

func (g *meeting) disconnect() { g.end(true) }

func (g *meeting) end(disconnect bool) {
	busy := g.busy()
	c := g.pick(func(c *group) bool { return c.live && !busy[c.name] && g.comms.mayEnd(c, disconnect) == nil })
	switch {
	case c == nil:
	case disconnect:
		g.construct(Disconnect{c.name}, false)
	default:
		g.construct(Free{c.name}, false)
	}
}

func (g *meeting) busy() map[string]bool {
	busy := map[string]bool{}
	for _, f := range g.open {
		busy[f.m.Comm] = true
	}
	return busy
}

// allPairs sends from each proc to each other one on some communicators at the same time, with the
// same tag everywhere, so that only contexts keep the messages apart.
func (g *meeting) allPairs() {
	var some []*group
	for range 1 + g.IntN(4) {
		if c := g.comm(false); !slices.Contains(some, c) {
			some = append(some, c)
		}
	}
	g.allPairsOf(some)
}

func (g *meeting) allPairsOf(some []*group) {
	tag, kind := g.fresh(), g.kind()
	var flights []*flight
	for _, c := range some {
		for _, to := range c.all() {
			m := Message{To: to, Comm: c.name, Tag: tag, Kind: kind, AnySource: g.OneIn(2)}
			b, longest := &burst{}, 0
			for _, m.From = range c.partners(to) {
				m.Len = g.length(kind, 4)
				longest = max(longest, m.Len)
				m.Mode = g.mode(&m)
				f := g.add(m)
				if m.AnySource {
					f.burst = b
				}
				f.m.Cap = m.Len
				b.flights = append(b.flights, f)
			}
			for _, f := range b.flights {
				if m.AnySource {
					f.m.Cap = longest
				}
			}
			flights = append(flights, b.flights...)
		}
	}
	for _, f := range flights {
		g.begin(f, SendSide, false)
	}
	g.Shuffle(len(flights), func(i, j int) { flights[i], flights[j] = flights[j], flights[i] })
	for _, f := range flights {
		if g.IntN(3) > 0 {
			g.begin(f, RecvSide, false)
		}
	}
}

// part sends on every communicator once more, closes all ports and disconnects, in random order.
func (g *meeting) part() {
	for _, c := range g.comms.all {
		if c.of != nil {
			g.construct(Finish{c.name}, false)
		}
	}
	var all []*group
	for _, c := range g.comms.all {
		if c.live && !c.fixed {
			all = append(all, c)
		}
	}
	g.allPairsOf(slices.DeleteFunc(slices.Clone(all), func(c *group) bool { return g.wild[c.name] != nil }))
	g.drain()
	for port := range g.ports {
		g.close(port + 1)
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, c := range all {
		g.construct(Disconnect{c.name}, false)
	}
}
