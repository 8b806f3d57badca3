package play

import (
	"fmt"
)

// clients are n clients of the tester, the first of which has two procs and the others
// one.
func clients(n int) [][]int {
	all := [][]int{{2}}
	for range n - 1 {
		all = append(all, []int{1})
	}
	return all
}

// barrierAs is the barrier, in which nobody may go on before it is right to.
func barrierAs(s setup) func(*T) {
	return func(t *T) {
		j := t.join(s)
		if s.iutMaxLinear != 0 && s.iutMaxLinear != j.maxlinear {
			t.Skipf("the IUT cannot be told which MAXLINEAR to submit")
		}
		g := j.world()
		own := g.own()
		parent, children := barrierTree(g.self, len(g.masters), int(j.maxlinear))
		for _, c := range children {
			g.gives(g.masters[c], own[0], tagBarrier, nil)
		}
		var begun []*call
		for _, p := range own {
			j.still("not all procs of the client have come to the barrier")
			j.waits(begun, "not all procs have come to the barrier")
			begun = append(begun, j.start(p, "barrier"))
		}
		if parent >= 0 {
			g.takes(own[0], g.masters[parent], tagBarrier, nil, "the barrier's message")
			j.still("the barrier's message was not answered yet")
			j.waits(begun, "the barrier's message was not answered yet")
			g.gives(g.masters[parent], own[0], tagBarrier, nil)
		}
		for _, c := range children {
			g.takes(own[0], g.masters[c], tagBarrier, nil, "the barrier's answer")
		}
		for _, c := range begun {
			c.ok()
		}
		g.awaitsChildren(children, parent)
		j.finish()
	}
}

// awaitsChildren is a second barrier, in which the last child comes late.
func (g *group) awaitsChildren(children []int, parent int) {
	own := g.own()
	begun := g.all(same("barrier"))
	for i, c := range children {
		if i == len(children)-1 {
			g.still("not all masters have come to the barrier")
			g.waits(begun, "not all masters have come to the barrier")
		}
		g.gives(g.masters[c], own[0], tagBarrier, nil)
	}
	if parent >= 0 {
		g.takes(own[0], g.masters[parent], tagBarrier, nil, "the barrier's message")
		g.gives(g.masters[parent], own[0], tagBarrier, nil)
	}
	for _, c := range children {
		g.takes(own[0], g.masters[c], tagBarrier, nil, "the barrier's answer")
	}
	for _, c := range begun {
		c.ok()
	}
}

// bcastAs broadcasts n ints, twice with different data.
func bcastAs(s setup, root func(*job) *proc, n int) func(*T) {
	return func(t *T) {
		j := t.join(s)
		for seed := range 2 {
			j.world().bcast(root(j), seed+5, n)
		}
		j.quiet("the broadcasts are over")
		j.finish()
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

// reduceAs sums ints of all.
func reduceAs(s setup, root func(*job) *proc) func(*T) {
	return func(t *T) {
		j := t.join(s)
		g := j.world()
		g.reduce(root(j), same("reduce root=%d op=sum type=int n=5", g.rank(root(j))))
		j.quiet("the reduction is over")
		j.finish()
	}
}

// reduce plays the others' part, and gives the sum that the IUT's delegate has in the
// end. The values of the IUT's members have seeds 100, 200 ...
func (g *group) reduce(root *proc, command func(int) string) ([]int64, []*call) {
	const n = 5
	e := g.t.kindOf("int")
	sum := make([]int64, n)
	add := func(seed int) []byte {
		for i, v := range e.values(seed, n) {
			sum[i] += v
		}
		return e.pattern(seed, n)
	}
	begun := g.all(func(i int) string { return command(i) + fmt.Sprintf(" seed=%d", 100*(i+1)) })
	for i := range g.own() {
		add(100 * (i + 1))
	}
	own := g.delegate(g.self, root)
	children, parent := g.reduceTree(g.number(root))
	for i := len(children) - 1; i >= 0; i-- { // in an order that may not matter
		g.gives(g.masters[children[i]], own, tagReduce, add(1000*(i+1)))
	}
	if parent >= 0 {
		g.takes(own, g.delegate(parent, root), tagReduce, e.encode(sum), "the reduction's message")
	}
	if parent < 0 {
		for i, c := range begun {
			if g.own()[i] == root && command(i)[0] == 'r' {
				c.ok().holds(sum)
			}
		}
	}
	return sum, begun
}

// digits are the operand of rank r for the operation that is not commutative, and what
// all operands up to the last rank make.
func digits(r int) []int64 { return []int64{10, int64(r + 1)} }

func reduceInOrderFrom(t *T) {
	j := t.join(setup{iutHosts: []int{2}, others: [][]int{{3}}})
	g, e := j.world(), t.kindOf("int")
	root := j.peer(1)
	begun := g.all(func(i int) string {
		return fmt.Sprintf("reduce root=%d op=concat type=int n=2 seed=%d", root.rank, g.own()[i].rank+1)
	})
	got := map[procID]bool{}
	for range begun {
		p := j.channelOf(g.own()[0], root).expect(pkData, "the value of one proc")
		r := 3 // their ranks are 3 and 4
		if p.src == g.own()[1].id {
			r++
		}
		j.isMessage(&p, tagReduce, worldColl, r, 8, "the value of one proc")
		j.hasData(&p, e.encode(digits(r)), "the value of one proc")
		got[p.src] = true
	}
	equal(t, "the number of procs that have sent a value", len(got), 2)
	for _, c := range begun {
		c.ok()
	}
	j.finish()
}

func allreduceAs(s setup) func(*T) {
	return func(t *T) {
		j := t.join(s)
		g := j.world()
		g.allreduce(same("allreduce op=sum type=int n=5"))
		j.quiet("the reduction is over")
		j.finish()
	}
}

func (g *group) allreduce(command func(int) string) {
	e := g.t.kindOf("int")
	root := g.members[0]
	sum, begun := g.reduce(root, command)
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

// blocks of ints that are shorter and longer than XSIZE, whose default is 1024 bytes.
const (
	shortBlock = 5
	longBlock  = 300
)

// profileJob has two procs of the IUT with ranks 3 and 4, or 0 and 1.
func (t *T) profileJob(at place) (*group, kind) {
	j := t.join(setup{place: at, iutHosts: []int{2}, others: [][]int{{3}}, datalen: 4000})
	return j.world(), t.kindOf("int")
}

// seeded is a command whose seed is ten times the member's rank.
func (g *group) seeded(format string, args ...any) func(int) string {
	return func(i int) string {
		return fmt.Sprintf(format, args...) + fmt.Sprintf(" seed=%d", 10*g.own()[i].rank)
	}
}

func (g *group) over(begun []*call) {
	for _, c := range begun {
		c.ok()
	}
	g.quiet("the operation is over")
}

// takesBoth takes a long block of each of the IUT's procs, in whatever order.
func (g *group) takesBoth(to *proc, tag int32, e kind) {
	ch := g.channelOf(g.own()[0], to)
	for range g.own() {
		p := ch.expect(pkData, "a proc's block")
		from := ch.remote.proc(p.src)
		g.isMessage(&p, tag, g.cid, from.rank, 4*longBlock, "a proc's block")
		g.hasData(&p, e.pattern(10*from.rank, longBlock), "a proc's block")
	}
}

func alltoalls(t *T) {
	g, e := t.profileJob(last)
	const n = shortBlock
	begun := g.all(g.seeded("alltoall type=int n=%d", n))
	for r := range 3 {
		for _, u := range g.own() {
			g.gives(g.procs[r], u, tagAlltoall, e.pattern(100*r+u.rank, n))
		}
	}
	ch := g.channelOf(g.own()[0], g.procs[0])
	for range 6 {
		p := ch.expect(pkData, "a block")
		from, to := ch.remote.proc(p.src), ch.local.proc(p.dest)
		g.isMessage(&p, tagAlltoall, g.cid, from.rank, 4*n, "a block")
		g.hasData(&p, e.pattern(10*from.rank, 5*n)[4*n*to.rank:4*n*(to.rank+1)], "a block")
	}
	for i, c := range begun {
		var want []int64
		for r := range 3 {
			want = append(want, e.values(100*r+3+i, n)...)
		}
		for r := 3; r < 5; r++ {
			want = append(want, e.values(10*r, 5*n)[n*(3+i):n*(4+i)]...)
		}
		c.ok().holds(want)
	}
	g.quiet("the operation is over")
	g.finish()
}

func scans(t *T) {
	j := t.join(setup{place: middle, iutHosts: []int{2}, others: [][]int{{2}, {1}}})
	g, e := j.world(), t.kindOf("int")
	begun := g.all(g.seeded("scan op=sum type=int n=%d", shortBlock)) // ranks 2 and 3
	prefix := e.values(1, shortBlock)
	g.gives(g.procs[1], g.procs[2], tagScan, e.encode(prefix))
	for i, c := range begun {
		for n, v := range e.values(10*(2+i), shortBlock) {
			prefix[n] += v
		}
		c.ok().holds(prefix)
	}
	g.takes(g.procs[3], g.procs[4], tagScan, e.encode(prefix), "the result of the first ranks")
	g.quiet("the operation is over")
	g.finish()
}

func gathersUneven(t *T) {
	j := t.join(setup{iutHosts: []int{4}, others: [][]int{{2}}, datalen: 4000})
	g, e := j.world(), t.kindOf("int")
	counts := "1,1,3,300,0,4" // of ranks 2 to 5: short, long, none, short
	begun := g.all(g.seeded("gatherv root=0 type=int counts=%s", counts))
	ch := g.channelOf(g.own()[0], g.procs[0])
	for range 2 {
		p := ch.expect(pkData, "blocks")
		what, want, from := "the short blocks", append(e.pattern(20, 3), e.pattern(50, 4)...), 2
		if p.src == g.procs[3].id {
			what, want, from = "the long block", e.pattern(30, 300), 3
		}
		g.isMessage(&p, tagGatherv, g.cid, from, len(want), what)
		g.hasData(&p, want, what)
	}
	g.over(begun)
	g.finish()
}
