package worlds

import (
	"math/rand/v2"
	"slices"
)

// Limits bound what a seed may decide.
type Limits struct {
	Procs    int // of all worlds
	Steps    int
	NoFaults bool // nobody dies
}

// Bounds of ordinary cases.
const (
	DefaultProcs = 9
	DefaultSteps = 16
	MostProcs    = 15 // so that a sum has a digit for each
)

// generator makes a program step by step, each of which the model allows.
type generator struct {
	*model
	rng  *rand.Rand
	next int // number of a communicator
}

// generate makes a program of worlds that meet pairwise in every order, some at once,
// and leave each other in the end.
func generate(rng *rand.Rand, l Limits) *Program {
	p := &Program{}
	worlds := 2 + rng.IntN(min(3, max(1, l.Procs-1)))
	for w := range worlds {
		room := (l.Procs - p.Procs()) - (worlds - w - 1)
		p.Worlds = append(p.Worlds, 1+rng.IntN(max(1, min(3, room))))
	}
	g := &generator{model: newModel(p), rng: rng}
	g.next = len(g.groups)
	for range 4 + rng.IntN(max(1, l.Steps-3)) {
		g.step()
	}
	g.leave()
	return p
}

func (g *generator) do(o Op) bool {
	if g.apply(o) != nil {
		return false
	}
	g.p.Ops = append(g.p.Ops, o)
	return true
}

func (g *generator) fresh() []int {
	g.next++
	return []int{g.next - 1}
}

// living are the communicators that there are, in order, of which ok is true.
func (g *generator) living(ok func(c *group) bool) []*group {
	var all []*group
	for n := range g.next {
		if c := g.groups[n]; c != nil && g.alive[n] && ok(c) {
			all = append(all, c)
		}
	}
	return all
}

// any picks one; nil if there is none.
func (g *generator) any(all []*group) *group {
	if len(all) == 0 {
		return nil
	}
	return all[g.rng.IntN(len(all))]
}

func isIntra(c *group) bool { return !c.inter() }

// step adds a step, or a few.
func (g *generator) step() {
	weights := []struct {
		n int
		f func()
	}{
		{30, g.meet}, {8, g.dup}, {12, g.idup}, {14, g.finish}, {8, g.split}, {10, g.merge}, {12, g.join},
		{6, g.free}, {8, g.part}, {22, g.talk}, {8, g.sum}, {4, g.pause},
	}
	sum := 0
	for _, w := range weights {
		sum += w.n
	}
	at := g.rng.IntN(sum)
	for _, w := range weights {
		if at -= w.n; at < 0 {
			w.f()
			return
		}
	}
}

// meet has two groups of different worlds meet, or of worlds that know each other.
func (g *generator) meet() {
	c := g.any(g.living(isIntra))
	d := g.any(g.living(func(d *group) bool {
		return isIntra(d) && !slices.ContainsFunc(d.members, c.has)
	}))
	if d == nil {
		return
	}
	o := Op{
		Kind: Meet, Comm: c.number, With: d.number, Root: g.rng.IntN(len(c.members)), WithRoot: g.rng.IntN(len(d.members)),
		New: g.fresh(), Late: g.rng.IntN(2) == 0,
	}
	g.do(o)
}

func (g *generator) dup() {
	if c := g.any(g.living(func(*group) bool { return true })); c != nil {
		g.do(Op{Kind: Dup, Comm: c.number, New: g.fresh()})
	}
}

func (g *generator) idup() {
	if c := g.any(g.living(func(*group) bool { return true })); c != nil {
		g.do(Op{Kind: Idup, Comm: c.number, New: g.fresh()})
	}
}

// finish waits for an Idup, whichever.
func (g *generator) finish() {
	var begun []int
	for n := range g.next {
		if _, ok := g.begun[n]; ok {
			begun = append(begun, n)
		}
	}
	if len(begun) > 0 {
		n := begun[g.rng.IntN(len(begun))]
		g.do(Op{Kind: Finish, Comm: g.begun[n], New: []int{n}})
	}
}

func (g *generator) split() {
	c := g.any(g.living(func(c *group) bool { return isIntra(c) && len(c.members) > 1 }))
	if c == nil {
		return
	}
	o := Op{Kind: Split, Comm: c.number, Colors: make([]int, len(c.members)), Keys: make([]int, len(c.members))}
	for r := range c.members {
		o.Colors[r], o.Keys[r] = g.rng.IntN(3)-1, g.rng.IntN(3)
	}
	if !slices.Contains(o.Colors, 0) { // colors have no gaps
		for r := range o.Colors {
			o.Colors[r] = min(o.Colors[r], 0)
		}
	}
	for color := range 2 {
		if slices.Contains(o.Colors, color) {
			o.New = append(o.New, g.fresh()...)
		}
	}
	g.do(o)
}

func (g *generator) merge() {
	if c := g.any(g.living((*group).inter)); c != nil {
		g.do(Op{Kind: Merge, Comm: c.number, New: g.fresh(), High: g.rng.IntN(2) == 0})
	}
}

// join makes an intercommunicator of two groups whose leaders are in a third.
func (g *generator) join() {
	peer := g.any(g.living(func(c *group) bool { return len(c.all()) > 1 }))
	if peer == nil {
		return
	}
	c := g.any(g.living(func(c *group) bool { return isIntra(c) && slices.ContainsFunc(c.members, peer.has) }))
	d := g.any(g.living(func(d *group) bool {
		return isIntra(d) && slices.ContainsFunc(d.members, peer.has) && !slices.ContainsFunc(d.members, c.has)
	}))
	if d == nil {
		return
	}
	for root, a := range c.members {
		for with, b := range d.members {
			o := Op{Kind: Join, Comm: c.number, With: d.number, Root: root, WithRoot: with, Peer: peer.number, New: []int{g.next}}
			if peer.has(a) && slices.Contains(peer.partners(a), b) && g.do(o) {
				g.next++
				return
			}
		}
	}
}

// free frees a communicator without which its members remain connected: what is
// left of others at the end has to be nothing.
func (g *generator) free() {
	c := g.any(g.living(func(c *group) bool { return !g.fixed(c.number) && g.covered(c) }))
	if c != nil {
		g.do(Op{Kind: Free, Comm: c.number})
	}
}

// covered tells whether each member of c has, for each other world of which c has
// members, another communicator with some of those.
func (g *generator) covered(c *group) bool {
	for _, proc := range c.all() {
		for _, other := range c.all() {
			w := g.p.worldOf(other)
			if w == g.p.worldOf(proc) {
				continue
			}
			if len(g.living(func(d *group) bool {
				return d != c && d.has(proc) && slices.ContainsFunc(d.all(), func(x int) bool { return g.p.worldOf(x) == w })
			})) == 0 {
				return false
			}
		}
	}
	return true
}

// part disconnects.
func (g *generator) part() {
	if c := g.any(g.living(func(c *group) bool { return !g.fixed(c.number) })); c != nil {
		g.do(Op{Kind: Disconnect, Comm: c.number})
	}
}

// talk has some communicators be talked on, all at the same time.
func (g *generator) talk() {
	all := g.living(func(c *group) bool { return !g.fixed(c.number) || g.rng.IntN(4) == 0 })
	g.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	o := Op{Kind: Talk}
	for _, c := range all[:min(len(all), 1+g.rng.IntN(6))] {
		o.Comms = append(o.Comms, c.number)
	}
	if len(o.Comms) > 0 {
		g.do(o)
	}
}

func (g *generator) sum() {
	if c := g.any(g.living(func(*group) bool { return true })); c != nil {
		g.do(Op{Kind: Sum, Comm: c.number})
	}
}

func (g *generator) pause() {
	if c := g.any(g.living(func(*group) bool { return true })); c != nil {
		g.do(Op{Kind: Pause, Comm: c.number})
	}
}

// leave talks on everything once more and disconnects it, in any order.
func (g *generator) leave() {
	for len(g.begun) > 0 {
		g.finish()
	}
	all := g.living(func(c *group) bool { return !g.fixed(c.number) })
	o := Op{Kind: Talk}
	for _, c := range all {
		o.Comms = append(o.Comms, c.number)
	}
	if len(o.Comms) > 0 {
		g.do(o)
	}
	g.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, c := range all {
		g.do(Op{Kind: Disconnect, Comm: c.number})
	}
}
