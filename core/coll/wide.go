package coll

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
)

// maxLanes is the most processes of a client that take part in moving one vector
// between clients.
const maxLanes = 8

// sites is what there is to know about a communicator of several clients that are
// all ours: between them messages are few, but not those that IMPI prescribes.
type sites struct {
	ours    bool
	ordered bool // each client's ranks follow each other
	// lanes is how many processes of each client move parts of a long vector:
	// those in places 0, 1, … of their client.
	lanes int
}

func newSites(m *comm.Masters, ours bool) sites {
	w := sites{ours: ours && m.Count() > 1, ordered: true, lanes: maxLanes}
	if !w.ours {
		return sites{}
	}
	for i := range m.Count() {
		n := m.Locals(i).Size()
		last, _ := m.Locals(i).At(n - 1)
		w.ordered = w.ordered && int(last) == m.Rank(i)+n-1
		w.lanes = min(w.lanes, n)
	}
	return w
}

// combines says that an operation may be reduced client by client.
func (p *Planner) combines(op *datatype.Op) bool {
	return op.Commutative() || p.sites.ours && p.sites.ordered
}

// laned says that a vector goes between clients in lanes.
func (p *Planner) laned(buf []byte, k datatype.Kind) bool {
	return p.sites.lanes > 1 && len(buf) >= p.profile.Tuning.LanesLong && len(buf)/k.Size() >= p.sites.lanes
}

// lane gives the rank in a client that moves what this process moves.
func (p *Planner) lane(number int) int { return p.carrier(number, p.team.me) }

// carrier gives the rank in a client that moves a lane.
func (p *Planner) carrier(number, lane int) int {
	rank, _ := p.m.Locals(number).At(lane)
	return int(rank)
}

// carries says that this process moves a lane.
func (p *Planner) carries() bool { return p.team.me < p.sites.lanes }

// bcastLanes has the root hand out the buffer's parts to processes of its client,
// each of which sends its own to the like of it in the other clients. There the
// parts go around.
func (p *Planner) bcastLanes(s *Schedule, buf []byte, k datatype.Kind, root int) {
	lanes := divided(buf, k, p.sites.lanes)
	full := -1
	switch rn := p.m.Number(root); {
	case p.me == root:
		full = p.team.me
		for i := range p.sites.lanes {
			if to := p.carrier(p.mine, i); to != root {
				p.sendLocal(s, to, tagBcast, lanes.at(i))
			}
		}
	case p.mine == rn:
		full = p.m.Place(root)
		if p.carries() {
			p.recvLocal(s, root, tagBcast, lanes.at(p.team.me))
			s.wait()
		}
	}
	if p.carries() {
		p.down(s, lanes.at(p.team.me), k, p.m.Number(root), p.lane)
	}
	p.ringBut(s, tagBcast, &lanes, p.team.me, full)
}

// reduceLanes reduces each lane by itself and collects them at the root.
func (p *Planner) reduceLanes(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	a := p.reduceToLanes(s, own, recv, k, op)
	rn := p.m.Number(root)
	if p.carries() {
		p.up(&a, rn, p.lane)
	}
	if p.mine != rn {
		return
	}
	result := divided(recv, k, p.sites.lanes)
	s.wait() // own may be recv
	switch {
	case p.me != root:
		if p.carries() {
			p.sendLocal(s, root, tagReduce, a.cur)
		}
		return
	case p.carries():
		s.copy(result.at(p.team.me), a.cur)
	}
	for i := range p.sites.lanes {
		if from := p.carrier(rn, i); from != root {
			p.recvLocal(s, from, tagReduce, result.at(i))
		}
	}
}

// allreduceLanes reduces each lane by itself and has all of them go around in
// each client.
func (p *Planner) allreduceLanes(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op) {
	a := p.reduceToLanes(s, own, recv, k, op)
	lanes := divided(recv, k, p.sites.lanes)
	if p.carries() {
		p.allSites(&a, lanes.at(p.team.me), p.lane)
	}
	p.ring(s, tagAllreduce, &lanes, p.team.me)
}

// reduceToLanes combines in each client each lane at the process that carries it,
// which finds it in the accumulator.
func (p *Planner) reduceToLanes(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op) accumulator {
	from := divided(own, k, p.sites.lanes)
	var mine, into []byte
	if p.carries() {
		mine = from.at(p.team.me)
		if recv != nil && !same(own, recv) {
			b := divided(recv, k, p.sites.lanes)
			into = b.at(p.team.me)
		}
	}
	a := p.accumulate(s, mine, into, k, op)
	n := p.team.size()
	for i := 1; i < n; i++ {
		if part := from.at((p.team.me + i) % n); len(part) > 0 {
			p.sendLocal(s, p.team.rank(p.team.me+i), tagReduceScatter, part)
		}
		if p.carries() {
			x := a.buffer()
			p.recvLocal(s, p.team.rank(p.team.me-i), tagReduceScatter, x)
			s.wait()
			a.before(x)
		}
	}
	s.wait()
	return a
}

// allSites makes the accumulators of the ranks that stand for the clients the
// combination of all, and leaves it in result. Two clients exchange theirs; of
// more each sends one message up and gets one down.
func (p *Planner) allSites(a *accumulator, result []byte, stand func(number int) int) {
	if p.m.Count() == 2 && exact(a.op, a.k) {
		x := a.buffer()
		other := stand(1 - p.mine)
		p.send(a.s, other, tagAllreduce, a.cur, a.k)
		p.recv(a.s, other, tagAllreduce, x, a.k)
		a.s.wait()
		if p.mine == 0 {
			a.strictlyAfter(x)
		} else {
			a.before(x)
		}
		a.s.copy(result, a.cur)
		return
	}
	p.up(a, 0, stand)
	a.s.wait()
	if p.mine == 0 {
		a.s.copy(result, a.cur)
	}
	p.down(a.s, result, a.k, 0, stand)
}

// exact says that an operation gives the same bits on all machines, whatever they
// make of a multiplication followed by an addition.
func exact(op *datatype.Op, k datatype.Kind) bool {
	return op.Predefined() && k != datatype.Complex64 && k != datatype.Complex128
}
