package script

import "slices"

// history records which rank knows of which steps of which other rank, step by step. These are
// vector clocks, carried only by messages without wildcards and by barriers.
type history struct {
	a      *lives
	at     [][]*life       // the messages that begin or end at a step
	comms  *comms          // before the step
	clocks [][]int         // by rank: the last step of each rank that the rank has learned of
	sent   map[*life][]int // the sender's clock at the beginning of a send
}

func newHistory(a *lives) *history {
	h := &history{a: a, comms: a.p.comms(), at: make([][]*life, len(a.p.Steps)), sent: map[*life][]int{}}
	for range a.p.Procs {
		h.clocks = append(h.clocks, slices.Repeat([]int{never}, a.p.Procs))
	}
	for _, l := range a.list {
		steps := []int{l.sendStart, l.recvStart, l.sendDone, l.recvDone}
		slices.Sort(steps)
		for _, i := range slices.Compact(steps) {
			h.at[i] = append(h.at[i], l)
		}
	}
	return h
}

func (h *history) knows(rank, other, step int) bool { return h.clocks[rank][other] >= step }

func (h *history) step(i int) {
	for _, l := range h.at[i] {
		if l.recvStart == i {
			h.clocks[l.m.To][l.m.To] = i
		}
		if l.sendStart == i {
			h.clocks[l.m.From][l.m.From] = i
			h.sent[l] = slices.Clone(h.clocks[l.m.From])
		}
	}
	for _, l := range h.at[i] {
		if l.recvDone == i && l.cancel == never && !l.family.wild() {
			merge(h.clocks[l.m.To], h.sent[l])
		}
	}
	s := h.a.p.Steps[i]
	if c, ok := s.(Collective); ok && c.Call == Barrier {
		h.barrier(h.comms.byName[c.Comm])
	}
	_, _, _ = h.comms.apply(s) // checked already
}

func (h *history) barrier(g *group) {
	before := slices.Clone(h.clocks)
	for _, r := range g.all() {
		h.clocks[r] = slices.Clone(before[r])
		for _, o := range g.partners(r) {
			merge(h.clocks[r], before[o])
		}
	}
}

func merge(clock, other []int) {
	for i, n := range other {
		clock[i] = max(clock[i], n)
	}
}
