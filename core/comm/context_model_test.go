package comm

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// The model of context IDs: a few processes of three worlds take part in a few
// agreements, all of which may go on at a time, and every order of what they do is
// tried. A member begins an agreement when it likes, and goes on as soon as all members
// have said what there was to be said before. That is all that the messages of
// constructors, and of Accept and Connect, bring about: how they travel does not matter.

const (
	modelProcs = 6 // two of each world
	maxClash   = 3 // draws in vain of one confirmation; whoever decides on the order can go on for ever
)

// deal is an agreement in the model.
type deal struct {
	members []int
	leads   []int // one of each side
	n       int   // IDs of the communicator
}

func (d *deal) wide() bool {
	return slices.ContainsFunc(d.members, func(p int) bool { return p/2 != d.members[0]/2 })
}

// meetingOf is a deal of two sides, of which the first members lead.
func meetingOf(a, b []int) deal {
	return deal{slices.Concat(a, b), []int{a[0], b[0]}, InterContexts}
}

// flaw is what is wrong with an implementation, to see that the model would find it.
type flaw int

const (
	sound flaw = iota
	unconfirmedIDs
	ownMaximum
	neverBusy
	heldForever
)

// modelPart is one member's part in a deal.
type modelPart struct {
	said    int // in how many rounds
	mine    Offer
	agreed  Offer // of the first round
	confirm Confirmation
	over    bool
	id      wire.ContextID
}

// modelState is everything at a moment.
type modelState struct {
	procs [modelProcs]Contexts
	had   [modelProcs][]wire.ContextID // what its communicators have had, with their lengths
	deals []modelDeal
}

type modelDeal struct {
	parts []modelPart // by member
	sums  [2]Proposal // of rounds, by their parity
	sides []Proposal  // of the first round, by leader, for ownMaximum
}

func (s *modelState) clone() *modelState {
	t := &modelState{procs: s.procs}
	for i := range t.procs {
		t.procs[i].claimed = maps.Clone(s.procs[i].claimed)
		t.had[i] = slices.Clone(s.had[i])
	}
	t.deals = slices.Clone(s.deals)
	for i := range t.deals {
		t.deals[i].parts = slices.Clone(t.deals[i].parts)
		t.deals[i].sides = slices.Clone(t.deals[i].sides)
	}
	return t
}

// key is the same for states that go on alike.
func (s *modelState) key() string {
	b := make([]byte, 0, 512)
	number := func(all ...wire.ContextID) {
		for _, n := range all {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	truth := func(all ...bool) {
		for _, is := range all {
			b = append(b, map[bool]byte{true: 1}[is])
		}
	}
	offer := func(o Offer) {
		number(o.Max, o.Private)
		truth(o.Busy)
	}
	for i := range s.procs {
		c := &s.procs[i]
		number(c.max, c.next, wire.ContextID(c.draws), wire.ContextID(len(c.claimed)), wire.ContextID(len(s.had[i])))
		truth(c.held)
		number(slices.Sorted(maps.Keys(c.claimed))...)
		number(s.had[i]...)
	}
	for i := range s.deals {
		d := &s.deals[i]
		for _, p := range slices.Concat(d.sums[:], d.sides) {
			offer(p.Offer)
			number(wire.ContextID(p.Flags))
		}
		for j := range d.parts {
			p := &d.parts[j]
			offer(p.mine)
			offer(p.agreed)
			truth(p.over, p.confirm.held)
			number(wire.ContextID(p.said), p.id, p.confirm.id, wire.ContextID(p.confirm.draws))
		}
	}
	return string(b)
}

// model tries everything.
type model struct {
	deals  []deal
	flaw   flaw
	seen   map[string]bool
	ends   int
	clash  int // most draws that were in vain in a confirmation
	cut    int // states that were left out, as so many were
	broken string
}

func newModelState(deals []deal, bits uint) *modelState {
	s := &modelState{}
	for i := range s.procs {
		s.procs[i] = NewContexts(Proc(i % 2))
		s.procs[i].Qualify([16]byte{byte(1 + i/2)}, bits)
		s.procs[i].max += wire.ContextID(3 * (i / 2)) // worlds have made different numbers of communicators
	}
	for _, d := range deals {
		s.deals = append(s.deals, modelDeal{parts: make([]modelPart, len(d.members)), sides: make([]Proposal, len(d.leads))})
	}
	return s
}

// run tries all orders from a state on, until something is wrong.
func (m *model) run(s *modelState) {
	open := []*modelState{s}
	m.seen[s.key()] = true
	for len(open) > 0 && m.broken == "" {
		s, open = open[len(open)-1], open[:len(open)-1]
		moves := m.moves(s)
		for _, v := range moves {
			t := s.clone()
			if m.step(t, v.deal, v.member); m.clash > maxClash {
				m.clash, m.cut = maxClash, m.cut+1
			} else if k := t.key(); !m.seen[k] {
				m.seen[k] = true
				open = append(open, t)
			}
		}
		if len(moves) == 0 {
			m.end(s)
		}
	}
}

// move is a step of a member of a deal.
type move struct{ deal, member int }

// moves are the steps of which one is next. What processes do changes nothing for each
// other but what they can do, and more of that as time goes on. So where a process can
// go on with all that it takes part in, its steps are as well taken at once: those of
// others may as well come later.
func (m *model) moves(s *modelState) (all []move) {
	for proc := range modelProcs {
		var own []move
		whole := true
		for d := range m.deals {
			i := slices.Index(m.deals[d].members, proc)
			if i < 0 || s.deals[d].parts[i].over {
				continue
			}
			if m.able(s, d, i) {
				own = append(own, move{d, i})
			} else {
				whole = false
			}
		}
		if whole && len(own) > 0 {
			return own
		}
		all = append(all, own...)
	}
	return all
}

// able reports whether a member can go on.
func (m *model) able(s *modelState, d, i int) bool {
	parts := s.deals[d].parts
	return !parts[i].over && !slices.ContainsFunc(parts, func(p modelPart) bool { return p.said < parts[i].said })
}

// side is the side of a deal that a member is of.
func (d *deal) side(i int) int {
	if len(d.leads) > 1 && i >= slices.Index(d.members, d.leads[1]) {
		return 1
	}
	return 0
}

// step is what a member does: it begins, or hears what all have said and goes on.
func (m *model) step(s *modelState, d, i int) {
	x, deal := &s.deals[d], &m.deals[d]
	p, me := &x.parts[i], deal.members[i]
	c := &s.procs[me]
	leads := slices.Contains(deal.leads, me)
	if p.said == 0 {
		p.mine = c.Offer(leads)
		if m.flaw == neverBusy {
			p.mine.Busy = false
		}
		x.say(p, Proposal{Offer: p.mine})
		x.sides[deal.side(i)] = x.sides[deal.side(i)].With(Proposal{Offer: p.mine})
		return
	}
	sum := x.sums[(p.said-1)%2]
	if p.said == 1 {
		p.agreed = sum.Offer
		if m.flaw == ownMaximum {
			p.agreed.Max = x.sides[deal.side(i)].Max
		}
		if p.agreed.Busy && deal.wide() && m.flaw != unconfirmedIDs {
			p.confirm = *c.Confirm(leads)
			x.say(p, p.speak(c))
			return
		}
	} else {
		p.confirm.a = c
		id, over, err := p.confirm.Hear(sum)
		m.clash = max(m.clash, p.confirm.draws-1) // the first round is about none
		if !over {
			x.say(p, p.speak(c))
			return
		}
		if err != nil {
			m.broken = err.Error()
			return
		}
		p.agreed.Private = id
	}
	m.settle(s, d, i)
}

func (p *modelPart) speak(c *Contexts) Proposal {
	p.confirm.a = c
	return p.confirm.Say()
}

// say adds to the sum of the round that a member is in.
func (x *modelDeal) say(p *modelPart, what Proposal) {
	if !slices.ContainsFunc(x.parts, func(q modelPart) bool { return q.said > p.said }) {
		x.sums[p.said%2] = Proposal{} // it is the first of the round
	}
	x.sums[p.said%2] = x.sums[p.said%2].With(what)
	p.said++
}

// settle ends a member's part, who has a communicator then.
func (m *model) settle(s *modelState, d, i int) {
	deal, p := &m.deals[d], &s.deals[d].parts[i]
	me := deal.members[i]
	mine := p.mine
	if m.flaw == heldForever {
		mine.Busy = true
	}
	id, err := s.procs[me].Settle(mine, p.agreed, deal.n)
	if err != nil {
		m.broken = fmt.Sprintf("deal %d, proc %d: %v", d, me, err)
		return
	}
	p.over, p.id = true, id
	for k := range wire.ContextID(deal.n) {
		if slices.Contains(s.had[me], id+k) {
			m.broken = fmt.Sprintf("deal %d, proc %d gets context %#x twice: it has had %#x", d, me, uint64(id+k), s.had[me])
			return
		}
		s.had[me] = append(s.had[me], id+k)
	}
	slices.Sort(s.had[me])
}

// end looks at a state after which nothing happens.
func (m *model) end(s *modelState) {
	m.ends++
	for d := range s.deals {
		for i := range s.deals[d].parts {
			p := &s.deals[d].parts[i]
			if !p.over || p.id != s.deals[d].parts[0].id {
				m.broken = fmt.Sprintf("deal %d: member %d has %#x (over: %v), the first one %#x", d, i, uint64(p.id), p.over, uint64(s.deals[d].parts[0].id))
				return
			}
		}
	}
	for i := range s.procs {
		claimed := 0
		for d := range s.deals {
			if at := slices.Index(m.deals[d].members, i); at >= 0 && s.deals[d].parts[at].id >= WideLimit {
				claimed++
			}
		}
		if s.procs[i].held || s.procs[i].Claimed() != claimed {
			m.broken = fmt.Sprintf("proc %d: busy %v, %d private contexts of several worlds are claimed and %d in use", i, s.procs[i].held, s.procs[i].Claimed(), claimed)
			return
		}
	}
}

// modelCases are worlds A (0, 1), B (2, 3) and C (4, 5) that meet, and what else they
// do at the same time.
var modelCases = map[string][]deal{
	"pairwise": {meetingOf([]int{0, 1}, []int{2}), meetingOf([]int{2, 3}, []int{4}), meetingOf([]int{4, 5}, []int{0})},
	"other procs of them": {
		meetingOf([]int{0}, []int{2}), meetingOf([]int{3}, []int{4}), meetingOf([]int{5}, []int{1}), meetingOf([]int{0, 1}, []int{3}),
	},
	"beside their own": {
		{[]int{0, 1}, []int{0}, IntraContexts}, meetingOf([]int{0, 1}, []int{2, 3}), meetingOf([]int{0}, []int{4, 5}),
	},
	"twice":           {meetingOf([]int{0}, []int{2}), meetingOf([]int{0}, []int{2}), meetingOf([]int{2}, []int{4})},
	"and all of them": {meetingOf([]int{0}, []int{2}), {[]int{0, 2, 4}, []int{0}, IntraContexts}, meetingOf([]int{4}, []int{0})},
}

// TestContextModel: whatever the order, no process gets an ID twice, all members of a
// communicator get the same, nobody waits for ever, and nobody remains busy.
func TestContextModel(t *testing.T) {
	clash := 0
	for name, deals := range modelCases {
		for _, bits := range []uint{2, PrivateBits} {
			if bits == PrivateBits && name != "pairwise" {
				continue // it makes no difference but in time
			}
			m := &model{deals: deals, seen: map[string]bool{}}
			m.run(newModelState(deals, bits))
			t.Logf("%s, %d bits: %d states, %d ends, %d left out", name, bits, len(m.seen), m.ends, m.cut)
			if m.broken != "" || m.ends == 0 {
				t.Errorf("%s, %d bits: %s", name, bits, m.broken)
			}
			clash = max(clash, m.clash)
		}
	}
	if clash == 0 {
		t.Error("no drawn ID was in use")
	}
}

// TestContextModelSees wants it to find what is wrong.
func TestContextModelSees(t *testing.T) {
	for name, f := range map[string]flaw{
		"private IDs without confirmation": unconfirmedIDs, "the maximum of one's own side": ownMaximum,
		"nobody says that it is busy": neverBusy, "one is busy for ever": heldForever,
	} {
		found := 0
		for _, deals := range modelCases {
			m := &model{deals: deals, flaw: f, seen: map[string]bool{}}
			if m.run(newModelState(deals, PrivateBits)); m.broken != "" {
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}
