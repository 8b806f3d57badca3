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

func (g *group) rank(p *proc) int {
	for i, q := range g.members {
		if p == q {
			return i
		}
	}
	panic("protocol: no member")
}

func (g *group) own() (all []*proc) {
	for _, p := range g.members {
		if p.host.client.iut {
			all = append(all, p)
		}
	}
	return all
}

// number is the number of a proc's client: the index of its master.
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

// linear reports whether the tree has one level: all clients talk to one.
func (g *group) linear() bool { return len(g.masters) <= int(g.maxlinear) }

// bcastTree returns the number that the IUT's client hears from (-1: it is the root's)
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

// reduceTree returns the numbers that the IUT's client hears from, and the one that it
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

func (g *group) gives(from, to *proc, tag int32, data []byte) {
	k := g.pairOf(to, from)
	p := k.out(tag, data)
	p.cid, p.lsrank = g.cid, int32(g.rank(from))
	if len(data) <= int(g.datalen) {
		k.give(p)
		return
	}
	p.typ, p.srqid, p.data, p.len = pkDataSync, uint64(1000+from.rank), data[:g.datalen], g.datalen
	k.give(p)
	k.rest(p, k.syncAcked(p, "a message of a collective").drqid, data)
}

func (g *group) takes(from, to *proc, tag int32, data []byte, what string) {
	p := g.takesAny(from, to, tag, what)
	g.hasData(&p, data, what)
}

func (g *group) takesAny(from, to *proc, tag int32, what string) packet {
	p := g.message(from, to, what)
	g.isMessage(&p, tag, g.cid, g.rank(from), len(p.data), what)
	return p
}

// all has each of the IUT's members begin an operation; command returns the command for the member
// with index i.
func (g *group) all(command func(i int) string) (begun []*call) {
	for i, p := range g.own() {
		begun = append(begun, g.start(p, "%s", command(i)))
	}
	return begun
}

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

// barriers runs the barrier twice, and checks that nobody leaves it too early.
func (g *group) barriers() {
	if want := g.setup.iutMaxLinear; want != 0 && want != g.maxlinear {
		g.t.Skipf("the IUT cannot be told which MAXLINEAR to submit")
	}
	parent, children := g.barrierTree()
	g.givesBarrier(children...)
	var begun []*call
	for _, p := range g.own() {
		g.still("not all procs of the client have come to the barrier")
		g.waits(begun, "not all procs have come to the barrier")
		begun = append(begun, g.start(p, "barrier"))
	}
	if parent >= 0 {
		g.takesBarrier(parent)
		g.still("the barrier's message was not answered yet")
		g.waits(begun, "the barrier's message was not answered yet")
		g.givesBarrier(parent)
	}
	g.takesBarrier(children...)
	for _, c := range begun {
		c.ok()
	}
	begun = g.all(same("barrier")) // a second one, in which the last child comes late
	if n := len(children) - 1; n >= 0 {
		g.givesBarrier(children[:n]...)
		g.still("not all masters have come to the barrier")
		g.waits(begun, "not all masters have come to the barrier")
		g.givesBarrier(children[n])
	}
	if parent >= 0 {
		g.takesBarrier(parent)
		g.givesBarrier(parent)
	}
	g.takesBarrier(children...)
	for _, c := range begun {
		c.ok()
	}
}

// barrierTree returns the master to which the IUT's sends in a barrier (-1: none) and those that
// send to it.
func (g *group) barrierTree() (parent int, children []int) {
	return barrierTree(g.self, len(g.masters), int(g.maxlinear))
}

// givesBarrier has masters send the barrier's message to the IUT's master; takesBarrier has them
// receive it.
func (g *group) givesBarrier(masters ...int) {
	for _, m := range masters {
		g.gives(g.masters[m], g.masters[g.self], tagBarrier, nil)
	}
}

func (g *group) takesBarrier(masters ...int) {
	from := g.masters[g.self]
	for _, m := range masters {
		p := g.next(from, g.masters[m], pkData, "the barrier's message")
		g.isMessage(&p, tagBarrier, g.cid, g.rank(from), 0, "the barrier's message")
	}
}

func (g *group) bcast(root *proc, seed, n int) {
	e := g.t.kindOf("int")
	data := e.pattern(seed, n)
	from := g.delegate(g.self, root)
	parent, children := g.bcastTree(g.number(root))
	begun := g.all(same("bcast root=%d type=int n=%d seed=%d", g.rank(root), n, seed))
	if parent >= 0 {
		g.still("the broadcast's message has not come yet")
		g.gives(g.delegate(parent, root), from, tagBcast, data)
	}
	for _, c := range children {
		g.takes(from, g.masters[c], tagBcast, data, "the broadcast's message")
	}
	for _, c := range begun {
		c.ok().holds(e.values(seed, n))
	}
}

func (g *group) reduce(root *proc) {
	sum, begun := g.reduced(root, fmt.Sprintf("reduce root=%d", g.rank(root)))
	for i, c := range begun {
		if g.own()[i] == root {
			c.ok().holds(sum)
		}
	}
}

// reduced plays the others' part, and gives the sum that the IUT's delegate has in the
// end. The values of the IUT's members have seeds 100, 200 ...
func (g *group) reduced(root *proc, command string) ([]int64, []*call) {
	const n = 5
	e := g.t.kindOf("int")
	sum := make([]int64, n)
	add := func(seed int) []byte {
		for i, v := range e.values(seed, n) {
			sum[i] += v
		}
		return e.pattern(seed, n)
	}
	begun := g.all(func(i int) string { return fmt.Sprintf("%s op=sum type=int n=%d seed=%d", command, n, 100*(i+1)) })
	for i := range g.own() {
		add(100 * (i + 1))
	}
	own := g.delegate(g.self, root)
	children, parent := g.reduceTree(g.number(root))
	for i := len(children) - 1; i >= 0; i-- { // the order must not matter
		g.gives(g.masters[children[i]], own, tagReduce, add(1000*(i+1)))
	}
	if parent >= 0 {
		g.takes(own, g.delegate(parent, root), tagReduce, e.encode(sum), "the reduction's message")
	}
	return sum, begun
}

// allreduce is reduce to rank 0 and a broadcast of the result.
func (g *group) allreduce() {
	e := g.t.kindOf("int")
	root := g.members[0]
	sum, begun := g.reduced(root, "allreduce")
	own := g.delegate(g.self, root)
	parent, children := g.bcastTree(g.number(root))
	if parent >= 0 {
		sum = e.values(77, 5)
		g.gives(g.delegate(parent, root), own, tagBcast, e.encode(sum))
	}
	for _, c := range children {
		g.takes(own, g.masters[c], tagBcast, e.encode(sum), "the result's message")
	}
	for _, c := range begun {
		c.ok().holds(sum)
	}
}

// agree plays the others' part in the agreement on a context ID, which the IUT's members have begun
// by a command. most is the largest ID that the others have in use; it returns that of the IUT's
// members.
func (g *group) agree(most uint64) (iut uint64) {
	own, root := g.masters[g.self], g.members[0]
	iut = 1 // MPI_COMM_WORLD's
	children, parent := g.reduceTree(g.number(root))
	for _, c := range children {
		g.gives(g.masters[c], own, tagReduce, u64(most))
	}
	if parent >= 0 {
		p := g.takesAny(own, g.masters[parent], tagReduce, "the largest ID")
		equal(g.t, "pk_msglen of the largest ID", p.msglen, 8)
		iut = uint8s(p.data)[0]
		if iut < 1 || iut > most+10 {
			g.t.Fatalf("the largest context ID of the IUT is %d; %d is the largest that was agreed on before", iut, most)
		}
		most = max(most, iut)
	}
	from, to := g.bcastTree(g.number(root))
	if from >= 0 {
		g.gives(g.masters[from], own, tagBcast, u64(most))
	}
	for _, c := range to {
		p := g.takesAny(own, g.masters[c], tagBcast, "the agreed ID")
		equal(g.t, "pk_msglen of the agreed ID", p.msglen, 8)
		iut = uint8s(p.data)[0]
		equal(g.t, "the agreed ID", iut, max(most, iut))
	}
	return iut
}

// exchange sends a message each way on a communicator that the interpreter calls comm.
func (g *group) exchange(comm int, u, p *proc) {
	k := g.pairOf(u, p)
	k.tell("send comm=%d dst=%d tag=9 n=4 seed=%d", comm, g.rank(p), comm)
	m := k.take(pkData, "a message on the new communicator")
	g.isMessage(&m, 9, g.cid-1, g.rank(u), 4, "a message on the new communicator")
	m = k.out(9, bytesOf(comm+1, 5))
	m.cid, m.lsrank = g.cid-1, int32(g.rank(p))
	k.give(m)
	a := k.tell("recv comm=%d src=%d tag=9 n=5", comm, g.rank(p))
	a.is("source", g.rank(p))
	a.holds(kindOf("byte").values(comm+1, 5))
}
