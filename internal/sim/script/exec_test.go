package script

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// exec is a small MPI that only matches. It is as strict as MPI allows: only buffered sends end
// before they are matched, detaching waits for that too, ready sends must find their receive, and
// the order of messages is random.
type exec struct {
	t       *testing.T
	p       *Program
	rng     *rand.Rand
	msgs    map[int]*Message
	comms   *comms
	ranks   []*execRank
	network map[[3]any][]int // messages under way: from, to, communicator
	lanes   [][3]any         // the keys of network
	arrived []int            // unexpected messages, in the order of arrival
	posted  []int            // receives without a message, in the order of posting
	got     map[int]int      // the message of each receive
	taken   map[int]bool     // messages that a receive has received
	told    map[int]string   // fate of cancelled sends
	meeting map[int]int      // by step: how many have come to a collective operation
	strict  bool             // all collective operations wait for all members
}

type execRank struct {
	pc       int
	begun    bool
	buffered []int
	posted   map[int]bool // receives that were started, and not cancelled
	cancels  []Cancelled
}

func newExec(t *testing.T, p *Program, seed uint64) *exec {
	x := &exec{
		t: t, p: p, rng: rand.New(rand.NewPCG(seed, 2)), msgs: p.index(), comms: p.comms(), network: map[[3]any][]int{},
		got: map[int]int{}, taken: map[int]bool{}, told: map[int]string{}, meeting: map[int]int{}, strict: seed%2 == 0,
	}
	for range p.Procs {
		x.ranks = append(x.ranks, &execRank{posted: map[int]bool{}})
	}
	for _, s := range p.Steps {
		if _, _, err := x.comms.apply(s); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// run executes the program, and says which ranks wait if not all finish.
func (x *exec) run() error {
	for idle := 0; ; idle++ {
		if idle > 50*(len(x.ranks)+len(x.lanes)+1) {
			return x.stuck()
		}
		if n := x.rng.IntN(len(x.ranks) + len(x.lanes)); n < len(x.ranks) {
			moved, err := x.move(n)
			if err != nil {
				return err
			}
			if moved {
				idle = 0
			}
		} else if x.deliver(x.lanes[n-len(x.ranks)]) {
			idle = 0
		}
		if !slices.ContainsFunc(x.ranks, func(r *execRank) bool { return r.pc < len(x.p.Steps) }) {
			return nil
		}
	}
}

func (x *exec) stuck() error {
	text := "deadlock:"
	for r, rank := range x.ranks {
		if rank.pc < len(x.p.Steps) {
			text += fmt.Sprintf(" rank %d at step %d, %s;", r, rank.pc+1, lineOf(x.p.Steps[rank.pc]))
		}
	}
	return fmt.Errorf("%s", text)
}

// move advances a rank by one step, if it can.
func (x *exec) move(r int) (bool, error) {
	rank := x.ranks[r]
	if rank.pc == len(x.p.Steps) {
		return false, nil
	}
	s := x.p.Steps[rank.pc]
	first := !rank.begun
	rank.begun = true
	done, err := x.step(r, s, first)
	if done {
		rank.pc++
		rank.begun = false
	}
	return done || first, err
}

func (x *exec) step(r int, s Step, first bool) (done bool, err error) {
	switch s := s.(type) {
	case Start:
		return x.message(r, s.Msg, s.Side, s.Blocking, first)
	case Exchange:
		done = true
		for _, id := range s.Msgs {
			for _, side := range []Side{SendSide, RecvSide} {
				over, err := x.message(r, id, side, true, first)
				if err != nil {
					return false, err
				}
				done = done && over
			}
		}
		return done, nil
	case Wait:
		if s.Rank != r {
			return true, nil
		}
		for _, q := range s.Reqs {
			if !x.over(q) {
				return false, nil
			}
		}
		return true, nil
	case Cancel:
		return x.cancel(r, s, first)
	case Detach:
		return s.Rank != r || !slices.ContainsFunc(x.ranks[r].buffered, func(id int) bool { return !x.taken[id] && x.told[id] != "gone" }), nil
	case Collective:
		return x.together(r, s.Comm, s.Call == Barrier, first), nil
	}
	if comm, made := uses(s); made != nil || comm != "" {
		if _, free := s.(Free); !free && made != nil {
			return x.together(r, comm, false, first), nil
		}
	}
	return true, nil
}

// together is an operation of all members of a communicator.
func (x *exec) together(r int, comm string, waits, first bool) bool {
	g := x.comms.byName[comm]
	if !g.has(r) {
		return true
	}
	pc := x.ranks[r].pc
	if first {
		x.meeting[pc]++
	}
	return x.meeting[pc] == len(g.members) || !waits && !x.strict
}

// over reports whether a request is complete.
func (x *exec) over(q Req) bool {
	if q.Side == SendSide {
		return x.msgs[q.Msg].Mode == Buffered || x.taken[q.Msg]
	}
	return x.got[q.Msg] != 0
}

func (x *exec) message(r, id int, side Side, blocking, first bool) (done bool, err error) {
	m := x.msgs[id]
	if m.rank(side) != r {
		return true, nil
	}
	if first && side == SendSide {
		if m.Mode == Ready && !x.ranks[m.To].posted[id] {
			return false, fmt.Errorf("ready message %d finds no receive", id)
		}
		if m.Mode == Buffered {
			x.ranks[r].buffered = append(x.ranks[r].buffered, id)
		}
		k := [3]any{m.From, m.To, m.Comm}
		if x.network[k] == nil {
			x.lanes = append(x.lanes, k)
		}
		x.network[k] = append(x.network[k], id)
	} else if first {
		x.post(id)
	}
	return !blocking || x.over(Req{id, side}), nil
}

func (x *exec) matches(recv, send int) bool {
	r, s := x.msgs[recv], x.msgs[send]
	return r.To == s.To && r.Comm == s.Comm && r.pattern().admits(s)
}

func (x *exec) match(recv, send int) { x.got[recv], x.taken[send] = send, true }

func (x *exec) post(id int) {
	x.ranks[x.msgs[id].To].posted[id] = true
	for i, send := range x.arrived {
		if x.matches(id, send) {
			x.arrived = slices.Delete(x.arrived, i, i+1)
			x.match(id, send)
			return
		}
	}
	x.posted = append(x.posted, id)
}

// deliver brings the next message of a queue to its receiver.
func (x *exec) deliver(k [3]any) bool {
	if len(x.network[k]) == 0 {
		return false
	}
	id := x.network[k][0]
	x.network[k] = x.network[k][1:]
	for i, recv := range x.posted {
		if x.matches(recv, id) {
			x.posted = slices.Delete(x.posted, i, i+1)
			x.match(recv, id)
			return true
		}
	}
	x.arrived = append(x.arrived, id)
	return true
}

func remove(list []int, id int) ([]int, bool) {
	i := slices.Index(list, id)
	if i < 0 {
		return list, false
	}
	return slices.Delete(slices.Clone(list), i, i+1), true
}

// cancel takes back a receive, or a send that is not matched.
func (x *exec) cancel(r int, s Cancel, first bool) (done bool, err error) {
	m := x.msgs[s.Msg]
	if s.Side == RecvSide {
		if r != m.To {
			return true, nil
		}
		if open, there := remove(x.posted, m.ID); first && there {
			x.posted = open
			x.ranks[r].cancels = append(x.ranks[r].cancels, Cancelled{s.Req, true})
			x.post(m.ID)
		}
		return x.over(s.Req), nil
	}
	if r == m.From && first {
		x.cancelSend(r, m)
	}
	if r != m.To || x.told[m.ID] == "" {
		return r != m.To, nil
	}
	if x.told[m.ID] == "gone" {
		if open, there := remove(x.posted, m.ID); there {
			x.posted = open
			x.ranks[r].cancels = append(x.ranks[r].cancels, Cancelled{Req{m.ID, RecvSide}, true})
		}
		return true, nil
	}
	if !x.ranks[r].posted[m.ID] {
		x.post(m.ID)
	}
	return x.over(Req{m.ID, RecvSide}), nil
}

func (x *exec) cancelSend(r int, m *Message) {
	k := [3]any{m.From, m.To, m.Comm}
	var underWay, unexpected bool
	x.network[k], underWay = remove(x.network[k], m.ID)
	x.arrived, unexpected = remove(x.arrived, m.ID)
	x.told[m.ID] = "stays"
	if underWay || unexpected {
		x.told[m.ID] = "gone"
	}
	x.ranks[r].cancels = append(x.ranks[r].cancels, Cancelled{Req{m.ID, SendSide}, x.told[m.ID] == "gone"})
}

// records is what the ranks would have noted.
func (x *exec) records() []*Record {
	records := make([]*Record, x.p.Procs)
	for r := range records {
		records[r] = &Record{Rank: r, Begun: len(x.p.Steps), Ended: true, Cancels: x.ranks[r].cancels}
		records[r].Comms = append(records[r].Comms, Membership{-1, World, 0, r, x.p.Procs, false})
	}
	for _, m := range x.p.Messages {
		s := x.msgs[x.got[m.ID]]
		if s == nil {
			continue
		}
		n := min(s.Len, m.Cap)
		records[m.To].Deliveries = append(records[m.To].Deliveries, Delivery{
			Msg: m.ID, Source: x.comms.byName[m.Comm].rank(s.From), Tag: s.Tag, Count: n, Truncated: s.Len > m.Cap, Sum: s.content(n).sum(n),
		})
	}
	model := x.p.comms()
	for i, s := range x.p.Steps {
		_, made, _ := model.apply(s)
		for _, g := range made {
			for rank, r := range g.members {
				records[r].Comms = append(records[r].Comms, Membership{i, g.name, g.context, rank, len(g.members), false})
			}
		}
		if c, ok := s.(Collective); ok {
			g := x.comms.byName[c.Comm]
			for _, r := range g.members {
				if t := c.trial(c.in(g, r)); t.out != nil {
					records[r].Results = append(records[r].Results, Result{i, t.want.sum(t.want.size())})
				}
			}
		}
	}
	return records
}

// Programs end although nothing is buffered, in any order of events, and their results satisfy
// Verify.
func TestGeneratedProgramsCannotDeadlock(t *testing.T) {
	programs(t, 300, func(t *testing.T, seed uint64, p *Program) {
		for order := range uint64(4) {
			x := newExec(t, p, seed<<8+order)
			if err := x.run(); err != nil {
				t.Error(err)
				return
			}
			if order == 0 {
				if err := Verify(p, x.records()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// uses returns the communicators that a step needs, and those that it makes.
func uses(s Step) (comm string, made []string) {
	switch s := s.(type) {
	case Unmatched:
		return s.Comm, nil
	case Null:
		return s.Comm, nil
	case Collective:
		return s.Comm, nil
	case Dup:
		return s.Comm, []string{s.New}
	case Split:
		return s.Comm, s.New
	case Cart:
		return s.Comm, []string{s.New}
	case CartSub:
		return s.Comm, s.New
	case Window:
		return s.Comm, nil
	case Free:
		return s.Comm, nil
	}
	return "", nil
}
