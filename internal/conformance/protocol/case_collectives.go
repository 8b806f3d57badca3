package protocol

import "fmt"

const (
	refBarrier = "ch. 4, Barrier"
	refBcast   = "ch. 4, Bcast"
	refReduce  = "ch. 4, Reduce"
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

func init() {
	register("collectives",
		Case{ID: "IMPI-4-BARRIER-01", Level: Must, Needs: Program, Reference: refBarrier,
			Run:    barrierAs(setup{place: first, iutHosts: []int{2}, others: clients(2)}),
			Expect: "Up to MAXLINEAR clients: master 0 tells the others to go on when all of them, and its own procs, have come; with empty messages, tag 110, on the context of collectives."},
		Case{ID: "IMPI-4-BARRIER-02", Level: Must, Needs: Program, Reference: refBarrier,
			Run:    barrierAs(setup{iutHosts: []int{2}, others: clients(2)}),
			Expect: "Up to MAXLINEAR clients: another master tells master 0 when its procs have come, and they go on when it answers."},
		Case{ID: "IMPI-4-BARRIER-03", Level: Must, Needs: Program, Reference: refBarrier,
			Run:    barrierAs(setup{place: first, others: clients(5)}),
			Expect: "More than MAXLINEAR clients: master 0 hears from masters 4, 2 and 1 (of 6) and tells them to go on."},
		Case{ID: "IMPI-4-BARRIER-04", Level: Must, Needs: Program, Reference: refBarrier,
			Run:    barrierAs(setup{place: middle, others: clients(5)}),
			Expect: "More than MAXLINEAR clients: master 1 (of 6) hears from 5 and 3 before it tells 0, and tells them to go on after 0 has answered."},
		Case{ID: "IMPI-4-BARRIER-05", Level: Must, Needs: Program, Reference: refBarrier,
			Run:    barrierAs(setup{others: clients(5)}),
			Expect: "More than MAXLINEAR clients: master 5 (of 6) talks to 1, its number without the highest bit."},
		Case{ID: "IMPI-4-BARRIER-06", Level: Should, Needs: Program, Reference: refBarrier + "; ch. 2, C_COLL_MAXLINEAR",
			Run:    barrierAs(setup{others: clients(3)}),
			Expect: "Exactly MAXLINEAR clients talk to one."},
		Case{ID: "IMPI-4-BARRIER-07", Level: Must, Needs: Program, Reference: refBarrier + "; ch. 2, C_COLL_MAXLINEAR",
			Run:    barrierAs(setup{iutMaxLinear: 2, others: clients(3)}),
			Expect: "The MAXLINEAR that was agreed on counts, not the default: with 2, four clients form a tree."},

		Case{ID: "IMPI-4-BCAST-01", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{place: first, iutHosts: []int{2}, others: clients(2)}, iutRoot(0), 7),
			Expect: "Up to MAXLINEAR clients: the root sends one message to each other master, tag 120 on the context of collectives, and its own procs get it inside the client."},
		Case{ID: "IMPI-4-BCAST-02", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{iutHosts: []int{2}, others: clients(2)}, peerRoot(0), 7),
			Expect: "Up to MAXLINEAR clients: a master receives from the root and hands on to the procs of its client."},
		Case{ID: "IMPI-4-BCAST-03", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{iutHosts: []int{3}, others: clients(2)}, iutRoot(1), 7),
			Expect: "A root that is not the master of its client sends in its place."},
		Case{ID: "IMPI-4-BCAST-04", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{iutHosts: []int{2}, others: [][]int{{3}}}, peerRoot(1), 7),
			Expect: "The message of a root that is not the master of its client comes from the root."},
		Case{ID: "IMPI-4-BCAST-05", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{iutHosts: []int{2}, others: clients(5)}, iutRoot(1), 7),
			Expect: "More than MAXLINEAR clients: the root's client sends to those at distance 1, 2 and 4 (of 6), counted around from it."},
		Case{ID: "IMPI-4-BCAST-06", Level: Must, Needs: Program, Reference: refBcast,
			// the last client has the least to do in the barrier at the end
			Run:    bcastAs(setup{iutHosts: []int{2}, others: clients(5)}, peerRoot(5), 7),
			Expect: "More than MAXLINEAR clients: one at distance 1 from the root receives from it and sends to distance 3 and 5."},
		Case{ID: "IMPI-4-BCAST-07", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{others: clients(5)}, peerRoot(3), 7),
			Expect: "More than MAXLINEAR clients: numbers are counted from the root's, modulo their number."},
		Case{ID: "IMPI-4-BCAST-10", Level: Must, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{iutHosts: []int{2}, others: [][]int{{1}, {2}, {1}, {1}, {1}}}, peerRoot(2), 7),
			Expect: "More than MAXLINEAR clients: at distance 4 from a root that is not the master of its client, the message comes from the root."},
		Case{ID: "IMPI-4-BCAST-08", Level: Must, Needs: Program, Reference: refBcast + "; " + refLong,
			Run:    bcastAs(setup{datalen: 50, others: clients(2)}, iutRoot(0), 100),
			Expect: "A buffer longer than the data length is a long message; XSIZE does not matter."},
		Case{ID: "IMPI-4-BCAST-09", Level: Should, Needs: Program, Reference: refBcast,
			Run:    bcastAs(setup{others: clients(2)}, iutRoot(0), 0),
			Expect: "A broadcast of nothing is a message of 0 bytes."},
	)
}

func init() {
	register("collectives",
		Case{ID: "IMPI-4-REDUCE-01", Level: Must, Needs: Program, Reference: refReduce,
			Run:    reduceAs(setup{place: first, iutHosts: []int{2}, others: clients(3)}, iutRoot(0)),
			Expect: "Up to MAXLINEAR clients: the root combines one message of each other master with the values of its own client, tag 190 on the context of collectives."},
		Case{ID: "IMPI-4-REDUCE-02", Level: Must, Needs: Program, Reference: refReduce,
			Run:    reduceAs(setup{iutHosts: []int{2}, others: clients(2)}, peerRoot(0)),
			Expect: "Up to MAXLINEAR clients: a master combines the values of its client and sends the result to the root."},
		Case{ID: "IMPI-4-REDUCE-03", Level: Must, Needs: Program, Reference: refReduce,
			Run:    reduceAs(setup{iutHosts: []int{3}, others: clients(2)}, iutRoot(1)),
			Expect: "A root that is not the master of its client receives in its place."},
		Case{ID: "IMPI-4-REDUCE-04", Level: Must, Needs: Program, Reference: refReduce,
			Run:    reduceAs(setup{iutHosts: []int{2}, others: [][]int{{3}}}, peerRoot(1)),
			Expect: "What is combined goes to the root, also if that is not the master of its client."},
		Case{ID: "IMPI-4-REDUCE-05", Level: Must, Needs: Program, Reference: refReduce,
			Run:    reduceAs(setup{place: first, iutHosts: []int{2}, others: clients(5)}, iutRoot(1)),
			Expect: "More than MAXLINEAR clients: the root's client hears from those at distance 1, 2 and 4 (of 6)."},
		Case{ID: "IMPI-4-REDUCE-06", Level: Must, Needs: Program, Reference: refReduce,
			Run:    reduceAs(setup{place: middle, others: clients(5)}, peerRoot(4)),
			Expect: "More than MAXLINEAR clients: one at an even distance combines what it hears before it sends on; numbers are counted from the root's."},
		Case{ID: "IMPI-4-REDUCE-07", Level: Must, Needs: Program, Reference: refReduce, Run: reduceInOrderFrom,
			Expect: "For an operation that is not commutative every proc sends its own value to the root."},
		Case{ID: "IMPI-4-REDUCE-08", Level: Must, Needs: Program, Reference: refReduce, Run: reduceInOrderAt,
			Expect: "For an operation that is not commutative the root combines the values in the order of the ranks."},

		Case{ID: "IMPI-4-ALLREDUCE-01", Level: Must, Needs: Program, Reference: "ch. 4, Allreduce",
			Run:    allreduceAs(setup{place: first, iutHosts: []int{2}, others: clients(2)}),
			Expect: "Allreduce is Reduce to rank 0 and Bcast from it: so does rank 0."},
		Case{ID: "IMPI-4-ALLREDUCE-02", Level: Must, Needs: Program, Reference: "ch. 4, Allreduce",
			Run:    allreduceAs(setup{iutHosts: []int{2}, others: clients(2)}),
			Expect: "Allreduce is Reduce to rank 0 and Bcast from it: so do others."},
		Case{ID: "IMPI-4-COLL-01", Level: Must, Needs: Program, Reference: "ch. 4; " + refFlow,
			Run:    bcastAs(setup{datalen: 10, ackmark: 1, hiwater: 1, others: clients(2)}, iutRoot(0), 23),
			Expect: "Messages of collectives obey flow control like all others."},
		Case{ID: "IMPI-4-COLL-02", Level: Must, Needs: Program, Reference: "ch. 4", Run: twoAtOnce,
			Expect: "Messages of the next collective that come early wait for it."},
	)
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

// iutRoot and peerRoot choose a root.
func iutRoot(i int) func(*job) *proc  { return func(j *job) *proc { return j.iut(i) } }
func peerRoot(i int) func(*job) *proc { return func(j *job) *proc { return j.peer(i) } }

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

func concat(n int) []int64 {
	v := []int64{1, 0}
	for r := range n {
		v[0], v[1] = v[0]*10, v[1]*10+int64(r+1)
	}
	return v
}

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

func reduceInOrderAt(t *T) {
	j := t.join(setup{place: middle, iutHosts: []int{2}, others: [][]int{{2}, {2}}})
	g, e := j.world(), t.kindOf("int")
	root := j.iut(1)
	begun := g.all(func(i int) string {
		return fmt.Sprintf("reduce root=%d op=concat type=int n=2 seed=%d", root.rank, g.own()[i].rank+1)
	})
	for _, r := range []int{1, 4, 0, 5} {
		g.gives(j.procs[r], root, tagReduce, e.encode(digits(r)))
	}
	begun[0].ok()
	begun[1].ok().holds(concat(6))
	j.quiet("the reduction is over")
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

// twoAtOnce gives messages of three collectives before the IUT begins the first.
func twoAtOnce(t *T) {
	j := t.join(setup{others: clients(2)})
	g, e := j.world(), t.kindOf("int")
	own := j.iut(0)
	g.gives(g.masters[0], own, tagBcast, e.pattern(1, 3))
	g.gives(g.masters[0], own, tagBarrier, nil)
	g.gives(g.masters[1], own, tagBcast, e.pattern(2, 3))
	g.gives(g.masters[0], own, tagBcast, e.pattern(3, 3))
	j.do(own, "bcast root=%d type=int n=3 seed=0", j.procs[0].rank).holds(e.values(1, 3))
	begun := j.start(own, "barrier")
	g.takes(own, g.masters[0], tagBarrier, nil, "the barrier's message")
	begun.ok()
	j.do(own, "bcast root=%d type=int n=3 seed=0", g.masters[1].rank).holds(e.values(2, 3))
	j.do(own, "bcast root=%d type=int n=3 seed=0", j.procs[0].rank).holds(e.values(3, 3))
	j.finish()
}
