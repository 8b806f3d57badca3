package coll

import "github.com/openimpi/impi/core/datatype"

// Barrier completes when every member has begun it: of an intercommunicator, those
// of the other group.
func (p *Planner) Barrier(s *Schedule) error {
	s.Reset()
	if p.remote != nil {
		p.interBarrier(s)
	} else {
		p.barrier(s)
	}
	s.finish()
	return nil
}

func (p *Planner) barrier(s *Schedule) {
	switch {
	case p.single():
		p.disseminate(s)
	default:
		p.barrierIn(s)
		if p.team.me == 0 {
			p.barrierMasters(s)
		}
		p.barrierOut(s)
	}
}

// disseminate is the barrier of one client: after the round of distance d
// everybody has heard of 2d members.
func (p *Planner) disseminate(s *Schedule) {
	for d := 1; d < p.team.size(); d *= 2 {
		p.sendLocal(s, p.team.rank(p.team.me+d), tagBarrier, nil)
		p.recvLocal(s, p.team.rank(p.team.me-d), tagBarrier, nil)
		s.wait()
	}
}

// barrierIn brings word to the master that the whole client is there.
func (p *Planner) barrierIn(s *Schedule) {
	v, n := p.team.me, p.team.size()
	for mask := 1; mask < n && v&mask == 0; mask *= 2 {
		if v+mask < n {
			p.recvLocal(s, p.team.rank(v+mask), tagBarrier, nil)
		}
	}
	s.wait()
	if v > 0 {
		parent := p.team.rank(v & (v - 1))
		p.sendLocal(s, parent, tagBarrier, nil)
		p.recvLocal(s, parent, tagBarrier, nil) // barrierOut's
		s.wait()
	}
}

// barrierOut releases the client, from the master on.
func (p *Planner) barrierOut(s *Schedule) {
	v, n := p.team.me, p.team.size()
	for mask := top(n); mask > 0; mask /= 2 {
		if (v == 0 || mask < v&-v) && v+mask < n {
			p.sendLocal(s, p.team.rank(v+mask), tagBarrier, nil)
		}
	}
}

// barrierMasters is the phase between clients.
// IMPI ch.4, Barrier: empty messages, linear or up and down a tree by the highest bit.
func (p *Planner) barrierMasters(s *Schedule) {
	m, v := p.m.Count(), p.mine
	send := func(number int) { p.send(s, p.m.Rank(number), tagBarrier, nil, datatype.Byte) }
	recv := func(number int) { p.recv(s, p.m.Rank(number), tagBarrier, nil, datatype.Byte) }
	if p.linear() {
		if v > 0 {
			send(0)
			recv(0)
			s.wait()
			return
		}
		for i := 1; i < m; i++ {
			recv(i)
		}
		s.wait()
		for i := 1; i < m; i++ {
			send(i)
		}
		return
	}
	h, d := hibit(v), dim(m)
	for i := d - 1; i > h; i-- {
		if c := v + 1<<i; c < m {
			recv(c)
		}
	}
	s.wait()
	if v > 0 {
		parent := v - 1<<h
		send(parent)
		recv(parent)
		s.wait()
	}
	for i := h + 1; i < d; i++ {
		if c := v + 1<<i; c < m {
			send(c)
		}
	}
}
