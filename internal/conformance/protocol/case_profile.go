package protocol

import "fmt"

const refProfile = "ch. 4 (pages that are not available; this project's profile)"

// blocks of ints that are shorter and longer than XSIZE, whose default is 1024 bytes.
const (
	shortBlock = 5
	longBlock  = 300
)

func init() {
	register("collectives",
		Case{ID: "IMPI-4-PROFILE-01", Level: Should, Needs: Program, Reference: refProfile, Run: gathersFrom,
			Expect: "Gather to another client: blocks shorter than XSIZE go to the root in one message of the master, tag 130, others straight from each proc."},
		Case{ID: "IMPI-4-PROFILE-02", Level: Should, Needs: Program, Reference: refProfile, Run: gathersAt,
			Expect: "Gather at the root: one message of each master for blocks shorter than XSIZE, else one of each proc."},
		Case{ID: "IMPI-4-PROFILE-03", Level: Should, Needs: Program, Reference: refProfile, Run: scattersFrom,
			Expect: "Scatter at the root: one message to each master for blocks shorter than XSIZE, else one to each proc; tag 150."},
		Case{ID: "IMPI-4-PROFILE-04", Level: Should, Needs: Program, Reference: refProfile, Run: scattersTo,
			Expect: "Scatter from another client: the master hands blocks on that came in one message."},
		Case{ID: "IMPI-4-PROFILE-05", Level: Should, Needs: Program, Reference: refProfile, Run: allgathers,
			Expect: "Allgather is Gather to rank 0, tag 130, and Bcast from it."},
		Case{ID: "IMPI-4-PROFILE-06", Level: Should, Needs: Program, Reference: refProfile, Run: alltoalls,
			Expect: "Alltoall is one message for each pair of procs of different clients, tag 170."},
		Case{ID: "IMPI-4-PROFILE-07", Level: Should, Needs: Program, Reference: refProfile, Run: scans,
			Expect: "Scan hands the result on from rank to rank, tag 200."},
		Case{ID: "IMPI-4-PROFILE-08", Level: Should, Needs: Program, Reference: refProfile, Run: gathersUneven,
			Expect: "Gatherv decides for each block: those shorter than XSIZE come together with tag 140, others by themselves, empty ones not at all."},
	)
}

// profileJob has two procs of the IUT with ranks 3 and 4, or 0 and 1.
func (t *T) profileJob(at place) (*group, kind) {
	j := t.join(setup{place: at, iutHosts: []int{2}, others: [][]int{{3}}, datalen: 4000})
	return j.world(), t.kindOf("int")
}

// joined is the blocks that ranks have, one after the other. The block of rank r has
// seed 10 r.
func joined(e kind, n int, ranks ...int) (b []byte) {
	for _, r := range ranks {
		b = append(b, e.pattern(10*r, n)...)
	}
	return b
}

func valuesOf(e kind, n int, ranks ...int) (v []int64) {
	for _, r := range ranks {
		v = append(v, e.values(10*r, n)...)
	}
	return v
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

func gathersFrom(t *T) {
	g, e := t.profileJob(last)
	root := g.procs[1]
	begun := g.all(g.seeded("gather root=1 type=int n=%d", shortBlock))
	g.takes(g.own()[0], root, tagGather, joined(e, shortBlock, 3, 4), "the client's blocks")
	g.over(begun)
	begun = g.all(g.seeded("gather root=1 type=int n=%d", longBlock))
	g.takesBoth(root, tagGather, e)
	g.over(begun)
	g.finish()
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

func gathersAt(t *T) {
	g, e := t.profileJob(first)
	root := g.procs[1]
	begun := g.all(g.seeded("gather root=1 type=int n=%d", shortBlock))
	g.gives(g.procs[2], root, tagGather, joined(e, shortBlock, 2, 3, 4))
	begun[1].ok().holds(valuesOf(e, shortBlock, 0, 1, 2, 3, 4))
	begun[0].ok()
	begun = g.all(g.seeded("gather root=1 type=int n=%d", longBlock))
	for _, r := range []int{4, 2, 3} {
		g.gives(g.procs[r], root, tagGather, joined(e, longBlock, r))
	}
	begun[1].ok().holds(valuesOf(e, longBlock, 0, 1, 2, 3, 4))
	g.over(begun[:1])
	g.finish()
}

func scattersFrom(t *T) {
	g, e := t.profileJob(first)
	root := g.procs[1]
	for _, n := range []int{shortBlock, longBlock} {
		begun := g.all(same("scatter root=1 type=int n=%d seed=7", n))
		all := e.pattern(7, 5*n)
		if n == shortBlock {
			g.takes(root, g.procs[2], tagScatter, all[4*2*n:], "the client's blocks")
		} else {
			for r := 2; r < 5; r++ {
				g.takes(root, g.procs[r], tagScatter, all[4*r*n:4*(r+1)*n], "a proc's block")
			}
		}
		for i, c := range begun {
			c.ok().holds(e.values(7, 5*n)[i*n : (i+1)*n])
		}
	}
	g.quiet("the operation is over")
	g.finish()
}

func scattersTo(t *T) {
	g, e := t.profileJob(last)
	for _, n := range []int{shortBlock, longBlock} {
		begun := g.all(same("scatter root=1 type=int n=%d", n))
		if n == shortBlock {
			g.gives(g.procs[1], g.own()[0], tagScatter, joined(e, n, 3, 4))
		} else {
			g.gives(g.procs[1], g.own()[1], tagScatter, joined(e, n, 4))
			g.gives(g.procs[1], g.own()[0], tagScatter, joined(e, n, 3))
		}
		for i, c := range begun {
			c.ok().holds(valuesOf(e, n, 3+i))
		}
	}
	g.quiet("the operation is over")
	g.finish()
}

func allgathers(t *T) {
	g, e := t.profileJob(last)
	begun := g.all(g.seeded("allgather type=int n=%d", shortBlock))
	g.takes(g.own()[0], g.procs[0], tagGather, joined(e, shortBlock, 3, 4), "the client's blocks")
	g.gives(g.procs[0], g.own()[0], tagBcast, joined(e, shortBlock, 0, 1, 2, 3, 4))
	for _, c := range begun {
		c.ok().holds(valuesOf(e, shortBlock, 0, 1, 2, 3, 4))
	}
	g.quiet("the operation is over")
	g.finish()
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
