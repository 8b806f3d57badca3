package comm

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// The model of context IDs: a few processes of three worlds take part in a few agreements,
// all of which may go on at the same time, and every order of their steps is tried. A
// member begins an agreement at any time, and takes its next step once all members have
// contributed to the round before. The messages of constructors, and of Accept and Connect,
// do no more than that; how they travel makes no difference.

const (
	modelProcs = 6 // two of each world
	maxClash   = 3 // draws of one confirmation that clash; with the worst order they would clash for ever
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

// meetingOf is an agreement of two sides, each led by its first member.
func meetingOf(a, b []int) deal {
	return deal{slices.Concat(a, b), []int{a[0], b[0]}, InterContexts}
}

// flaw is a fault of an implementation. The model must find each.
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
	said    int // rounds that it has contributed to
	mine    ContextUse
	agreed  ContextUse // of the first round
	confirm Confirmation
	over    bool
	id      wire.ContextID
}

// modelState is the state of all processes and agreements.
type modelState struct {
	procs [modelProcs]Contexts
	had   [modelProcs][]wire.ContextID // all IDs that its communicators got
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

// key is equal for states that have the same future.
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
	offer := func(o ContextUse) {
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
			offer(p.ContextUse)
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

// model tries all orders of steps.
type model struct {
	deals  []deal
	flaw   flaw
	seen   map[string]bool
	ends   int
	clash  int // the most draws of a confirmation that clashed
	cut    int // states left out because of maxClash
	broken string
}

func newModelState(deals []deal, bits uint) *modelState {
	s := &modelState{}
	for i := range s.procs {
		s.procs[i] = NewContexts(Proc(i % 2))
		s.procs[i].SetWorld([16]byte{byte(1 + i/2)}, bits)
		s.procs[i].max += wire.ContextID(3 * (i / 2)) // so that the worlds' maxima differ
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

// moves returns the steps of which one is taken next. A step of one process changes for the
// others only which steps they can take, and these become more with time. So if a process
// can take a step in each agreement that it takes part in, it is enough to try those steps
// first: the steps of others remain possible.
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

// able reports whether a member can take a step.
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

// step is a member's next step: it contributes to the first round, or receives the sum of a
// round and contributes to the next.
func (m *model) step(s *modelState, d, i int) {
	x, deal := &s.deals[d], &m.deals[d]
	p, me := &x.parts[i], deal.members[i]
	c := &s.procs[me]
	leads := slices.Contains(deal.leads, me)
	if p.said == 0 {
		p.mine = c.BeginAgreement(leads)
		if m.flaw == neverBusy {
			p.mine.Busy = false
		}
		x.say(p, Proposal{ContextUse: p.mine})
		x.sides[deal.side(i)] = x.sides[deal.side(i)].Combine(Proposal{ContextUse: p.mine})
		return
	}
	sum := x.sums[(p.said-1)%2]
	if p.said == 1 {
		p.agreed = sum.ContextUse
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
		id, over, err := p.confirm.Decide(sum)
		m.clash = max(m.clash, p.confirm.draws-1) // the first round confirms no ID
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
	return p.confirm.Propose()
}

// say adds what a member contributes to the sum of its round.
func (x *modelDeal) say(p *modelPart, what Proposal) {
	if !slices.ContainsFunc(x.parts, func(q modelPart) bool { return q.said > p.said }) {
		x.sums[p.said%2] = Proposal{} // it is the first of the round
	}
	x.sums[p.said%2] = x.sums[p.said%2].Combine(what)
	p.said++
}

// settle ends a member's part; it has a communicator then.
func (m *model) settle(s *modelState, d, i int) {
	deal, p := &m.deals[d], &s.deals[d].parts[i]
	me := deal.members[i]
	mine := p.mine
	if m.flaw == heldForever {
		mine.Busy = true
	}
	id, err := s.procs[me].Conclude(mine, p.agreed, deal.n)
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

// end checks a state in which no step is left.
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

// modelCases are agreements of the worlds A (0, 1), B (2, 3) and C (4, 5), with others at
// the same time.
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
				continue // takes longer, and shows nothing else
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

// TestContextModelSees: the model finds each flaw.
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
