package play

import "fmt"

// group is a communicator of which the tester plays all members but the IUT's: who
// stands for each client in its collectives, as the standard's utility functions say.
type group struct {
	*job
	cid     uint64  // of collectives
	members []*proc // by rank in the communicator
	masters []*proc // by their number: the lowest members of each client
	self    int     // number of the IUT's master
}

// world is MPI_COMM_WORLD.
func (j *job) world() *group { return j.group(worldColl, j.procs) }

// group makes a communicator of procs. cid is that of its collectives.
func (j *job) group(cid uint64, members []*proc) *group {
	g := &group{job: j, cid: cid, members: members, self: -1}
	seen := map[*client]bool{}
	for _, p := range members {
		c := p.host.client
		if seen[c] {
			continue
		}
		seen[c] = true
		if c.iut {
			g.self = len(g.masters)
		}
		g.masters = append(g.masters, p)
	}
	return g
}

// rank is a proc's rank in the communicator.
func (g *group) rank(p *proc) int {
	for i, q := range g.members {
		if p == q {
			return i
		}
	}
	panic("protocol: no member")
}

// own are the IUT's members.
func (g *group) own() (all []*proc) {
	for _, p := range g.members {
		if p.host.client.iut {
			all = append(all, p)
		}
	}
	return all
}

// number is that of the master of a proc's client.
func (g *group) number(p *proc) int {
	for i, m := range g.masters {
		if m.host.client == p.host.client {
			return i
		}
	}
	panic("protocol: no member")
}

// delegate stands for client number i in an operation with a root: the root itself in
// its own client, the master in others.
func (g *group) delegate(i int, root *proc) *proc {
	if g.number(root) == i {
		return root
	}
	return g.masters[i]
}

// linear tells whether all clients talk to one.
func (g *group) linear() bool { return len(g.masters) <= int(g.maxlinear) }

// bcastTree gives the number that the IUT's client hears from (-1: it is the root's)
// and those that it tells.
func (g *group) bcastTree(root int) (parent int, children []int) {
	m := len(g.masters)
	if g.linear() {
		if g.self != root {
			return root, nil
		}
		for i := range m {
			if i != root {
				children = append(children, i)
			}
		}
		return -1, children
	}
	w := (g.self - root + m) % m
	h := highBit(w)
	for i := h + 1; 1<<i < m; i++ {
		if c := w + 1<<i; c < m {
			children = append(children, (c+root)%m)
		}
	}
	if w == 0 {
		return -1, children
	}
	return (w - 1<<h + root) % m, children
}

// reduceTree gives the numbers that the IUT's client hears from, and the one that it
// tells (-1: it is the root's).
func (g *group) reduceTree(root int) (children []int, parent int) {
	if g.linear() {
		parent, children = g.bcastTree(root)
		return children, parent
	}
	m := len(g.masters)
	w := (g.self - root + m) % m
	for i := 0; 1<<i < m; i++ {
		if w>>i&1 != 0 {
			return children, (w - 1<<i + root) % m
		}
		if c := w + 1<<i; c < m {
			children = append(children, (c+root)%m)
		}
	}
	return children, -1
}

// gives has a proc of the tester send a message of a collective.
func (g *group) gives(from, to *proc, tag int32, data []byte) {
	k := g.pairOf(to, from)
	p := k.out(pkData, tag, data)
	p.cid, p.lsrank = g.cid, int32(g.rank(from))
	if len(data) <= int(g.datalen) {
		k.give(p)
		return
	}
	p.typ, p.srqid, p.data, p.len = pkDataSync, uint64(1000+from.rank), data[:g.datalen], g.datalen
	k.give(p)
	k.rest(p, k.syncAcked(p, "a message of a collective").drqid, data)
}

// takes has a proc of the tester receive one.
func (g *group) takes(from, to *proc, tag int32, data []byte, what string) {
	p := g.takesAny(from, to, tag, what)
	g.hasData(&p, data, what)
}

// takesAny is takes for any data.
func (g *group) takesAny(from, to *proc, tag int32, what string) packet {
	p := g.message(from, to, what)
	g.isMessage(&p, tag, g.cid, g.rank(from), len(p.data), what)
	return p
}

// all has all the IUT's members begin an operation; arguments are a command, to which
// the member's index is added as it says.
func (g *group) all(command func(i int) string) (begun []*call) {
	for i, p := range g.own() {
		begun = append(begun, g.start(p, "%s", command(i)))
	}
	return begun
}

// same is a command that is the same for all.
func same(format string, args ...any) func(int) string {
	return func(int) string { return fmt.Sprintf(format, args...) }
}

// still watches all channels for a moment, and then until the IUT has said something on
// each: nothing else may come.
func (j *job) still(why string) {
	j.channels[0].watch(glance)
	for _, ch := range j.channels {
		ch.probe()
		ch.empty(why)
	}
}

// waits ends the case if an operation is over.
func (j *job) waits(begun []*call, why string) {
	for _, c := range begun {
		if !c.pending() {
			j.t.Fatalf("rank %d: %q is over: %s", c.to.rank, c.text, why)
		}
	}
}
