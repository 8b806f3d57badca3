package comm

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Masters numbers the clients that a group spans. The master of a client is the lowest of
// its ranks; masters are numbered from 0 by ascending rank. It is immutable and may be
// shared. For groups like the world it takes a few words per client, however many ranks
// there are.
//
// IMPI ch.4, Utility functions: the methods are the standard's mnum, mrank, locals, nlocal
// and local.
type Masters struct {
	group   *Group
	table   *Clients
	clients []wire.ClientRank // of each master, by number
	locals  []*Group          // ranks of each client, by number
	starts  []int             // used by Tree
}

// NewMasters computes the masters of g. The table has all members.
func NewMasters(g *Group, table *Clients) *Masters {
	m := &Masters{group: g, table: table}
	if client, ok := m.only(); ok {
		m.clients, m.locals, m.starts = []wire.ClientRank{client}, []*Group{NewGroup(0, g.size)}, []int{0, g.size}
		return m
	}
	var locals []builder
	for k := range g.runs {
		r := &g.runs[k]
		for i := 0; i < int(r.n); {
			p := r.at(i)
			client, first, end := table.span(p)
			n := min(int(r.n)-i, r.within(p, first, end))
			number := slices.Index(m.clients, client)
			if number < 0 {
				number = len(locals)
				m.clients = append(m.clients, client)
				locals = append(locals, builder{})
			}
			locals[number].addRange(Proc(int(r.rank)+i), n)
			i += n
		}
	}
	m.clients = slices.Clip(m.clients)
	m.locals = make([]*Group, len(locals))
	m.starts = make([]int, len(locals)+1)
	for i := range locals {
		m.locals[i] = locals[i].group()
		m.starts[i+1] = m.starts[i] + m.locals[i].Size()
	}
	return m
}

// only returns the client of all members, if it is one whose procs have consecutive numbers.
func (m *Masters) only() (client wire.ClientRank, ok bool) {
	if m.group.size == 0 {
		return 0, false
	}
	client, first, end := m.table.span(Proc(m.group.runs[0].first))
	for k := range m.group.runs {
		if low, high := m.group.runs[k].ends(); low < first || high >= end {
			return 0, false
		}
	}
	return client, true
}

// within returns how many steps of a run, from member p on, stay between first and end.
func (r *run) within(p, first, end Proc) int {
	if r.step > 0 {
		return int(end-1-p)/int(r.step) + 1
	}
	return int(p-first)/-int(r.step) + 1
}

// Count returns the number of masters, which is the number of clients spanned.
func (m *Masters) Count() int { return len(m.clients) }

// Number returns the number of the master of rank's client.
func (m *Masters) Number(rank int) int { return slices.Index(m.clients, m.clientOf(rank)) }

func (m *Masters) clientOf(rank int) wire.ClientRank {
	p, _ := m.group.At(rank)
	return m.table.Of(p)
}

// Rank returns the rank of master number n, which must be below Count.
func (m *Masters) Rank(n int) int { return int(m.locals[n].runs[0].first) }

// Client returns the client whose master has number n, which must be below Count.
func (m *Masters) Client(n int) wire.ClientRank { return m.clients[n] }

// Locals returns the ranks of the client of master number n, as a group whose members are
// ranks, ascending, the master first.
func (m *Masters) Locals(n int) *Group { return m.locals[n] }

// LocalIndex returns the place of rank among the ranks of its client, which Locals returns: 0 for
// the master.
func (m *Masters) LocalIndex(rank int) int {
	place, _ := m.locals[m.Number(rank)].Rank(Proc(rank))
	return place
}

// Local reports whether two ranks are of the same client.
func (m *Masters) Local(a, b int) bool { return m.clientOf(a) == m.clientOf(b) }
