package script

import (
	"maps"
	"slices"
)

func (g *generator) collective() {
	c := g.any()
	n := len(c.members)
	g.ids++
	s := Collective{ID: g.ids, Call: Call(g.IntN(len(callNames))), Comm: c.name}
	if s.Call == Barrier {
		g.emit(Collective{Call: Barrier, Comm: c.name})
		return
	}
	if c.inter() {
		s.Call = Allreduce
	}
	s.Kind = g.kind()
	if s.Call.rooted() {
		s.Root = Pick(g.Draws, c.members...)
	}
	if s.Call.reduces() {
		s.Op = g.op(s.Kind)
	}
	var share int
	switch s.Call {
	case Bcast:
		share = 1
	case Alltoall, Alltoallv:
		share = n * n
	default: // one block for each rank
		share = n
	}
	for range s.Call.counts(n) {
		s.Counts = append(s.Counts, g.length(s.Kind, share))
	}
	if s.Call.displaced() && g.OneIn(2) {
		s.Gap = 1 + g.IntN(3)
	}
	s.InPlace = s.Call.placed() && !c.inter() && g.OneIn(4)
	if s.InPlace && s.Call == Alltoallv {
		for i := range s.Counts {
			s.Counts[i] = s.Counts[min(i, i%n*n+i/n)]
		}
	}
	g.emit(s)
}

func (g *generator) op(k Kind) Op {
	if k.takes(OpAffine) && g.OneIn(3) { // few kinds of element have OpAffine
		return OpAffine
	}
	return Pick(g.Draws, slices.Sorted(maps.Keys(kinds[k].ops))...)
}

const maxComms = 8 // at the same time

func (g *generator) communicator() {
	live := 1
	for _, c := range g.comms.all {
		if c.live && !c.fixed {
			live++
		}
	}
	if live > maxComms || live > 1 && g.OneIn(4) {
		(&meeting{g}).end(false)
		return
	}
	c := g.any()
	switch n := g.IntN(4); {
	case n == 0 || c.inter():
		g.dup(c, g.OneIn(2))
	case n == 1:
		g.split(c)
	case n == 2:
		g.cart(c)
	default:
		g.cartSub()
	}
}

func (g *generator) construct(s Step, wild bool) {
	_, made, err := g.comms.apply(s)
	if err != nil {
		panic("script: the generator makes no such communicators: " + err.Error())
	}
	for _, c := range made {
		if wild {
			g.wild[c.name] = map[int]bool{}
		}
	}
	g.emit(s)
}

func (g *generator) dup(c *group, wild bool) { g.construct(Dup{c.name, g.name()}, wild) }

func (g *generator) split(c *group) {
	s := Split{Comm: c.name}
	colors := []int{0, 1, 7, 1 << 30}[:1+g.IntN(4)]
	if g.OneIn(2) {
		colors = append(colors, NoColor)
	}
	for range c.members {
		s.Colors = append(s.Colors, Pick(g.Draws, colors...))
		s.Keys = append(s.Keys, g.IntN(7)-3)
	}
	different := slices.Clone(s.Colors)
	slices.Sort(different)
	for _, color := range slices.Compact(different) {
		if color != NoColor {
			s.New = append(s.New, g.name())
		}
	}
	g.construct(s, g.OneIn(4))
}

func (g *generator) cart(c *group) {
	s := Cart{Comm: c.name, New: g.name()}
	left := len(c.members)
	for range 1 + g.IntN(3) {
		d := 1 + g.IntN(left)
		if g.OneIn(2) {
			d = max(1, min(d, 2))
		}
		left /= d
		s.Dims, s.Periodic = append(s.Dims, d), append(s.Periodic, g.OneIn(2))
	}
	g.construct(s, false)
}

func (g *generator) cartSub() {
	var grids []*group
	for _, c := range g.comms.all {
		if c.live && c.grid != nil && len(c.grid.dims) > 0 {
			grids = append(grids, c)
		}
	}
	if len(grids) == 0 {
		if c := g.comm(false); !c.inter() {
			g.cart(c)
		}
		return
	}
	c := Pick(g.Draws, grids...)
	s := CartSub{Comm: c.name}
	slices := 1
	for _, d := range c.grid.dims {
		keep := g.OneIn(2)
		if !keep {
			slices *= d
		}
		s.Keep = append(s.Keep, keep)
	}
	for range slices {
		s.New = append(s.New, g.name())
	}
	g.construct(s, false)
}
