package coll

import "github.com/openimpi/impi/core/datatype"

type barriers struct{ plan }

// Barrier completes when every member has begun it (MPI-4.1, 6.3); on an intercommunicator, every
// member of the other group.
func (p *Planner) Barrier(s *Schedule) error {
	o := barriers{p.begin(s, datatype.Byte)}
	if o.remote != nil {
		o.interBarrier()
	} else {
		o.barrier()
	}
	return o.done(nil)
}

func (p barriers) barrier() {
	switch {
	case !p.single():
		p.barrierIn()
		if p.team.me == 0 {
			p.barrierMasters()
		}
		p.barrierOut()
	case p.ownBarrier():
	case p.betweenHosts != nil:
		in, _ := p.inside()
		l := barriers{in}
		l.barrierIn()
		if l.team.me == 0 {
			barriers{l.over()}.disseminate()
		}
		l.barrierOut()
	default:
		p.disseminate()
	}
}

// disseminate is the barrier of one client: after the round of distance d
// everybody has heard of 2d members.
func (p barriers) disseminate() {
	for d := 1; d < p.team.size(); d *= 2 {
		p.sendLocal(p.team.rank(p.team.me+d), tagBarrier, nil)
		p.recvLocal(p.team.rank(p.team.me-d), tagBarrier, nil)
		p.wait()
	}
}

// barrierIn tells the master, up a tree, that all of the client have begun the barrier. Its last
// send may be left in the round that is still open.
func (p barriers) barrierIn() {
	if p.ownBarrier() {
		return
	}
	if in, ok := p.inside(); ok {
		barriers{in}.barrierIn()
		if in.team.me == 0 {
			barriers{in.over()}.barrierIn()
		}
		return
	}
	v, n := p.team.me, p.team.size()
	for mask := 1; mask < n && v&mask == 0; mask *= 2 {
		if v+mask < n {
			p.recvLocal(p.team.rank(v+mask), tagBarrier, nil)
		}
	}
	p.wait()
	if v > 0 {
		p.sendLocal(p.team.rank(v&(v-1)), tagBarrier, nil)
	}
}

// barrierOut tells all of the client, down a tree from the master, that the barrier is complete.
func (p barriers) barrierOut() {
	if p.ownBarrier() {
		return
	}
	if in, ok := p.inside(); ok {
		if in.team.me == 0 {
			barriers{in.over()}.barrierOut()
		}
		barriers{in}.barrierOut()
		return
	}
	v, n := p.team.me, p.team.size()
	if v > 0 {
		p.recvLocal(p.team.rank(v&(v-1)), tagBarrier, nil)
		p.wait()
	}
	for mask := top(n); mask > 0; mask /= 2 {
		if (v == 0 || mask < v&-v) && v+mask < n {
			p.sendLocal(p.team.rank(v+mask), tagBarrier, nil)
		}
	}
}

// barrierMasters is the phase between clients.
// IMPI ch.4, Barrier: empty messages, linear or up and down a tree by the highest bit.
func (p barriers) barrierMasters() {
	m, v := p.m.Count(), p.mine
	send := func(number int) { p.send(p.m.Rank(number), tagBarrier, nil) }
	recv := func(number int) { p.recv(p.m.Rank(number), tagBarrier, nil) }
	if p.direct() {
		for i := range m {
			if i != v {
				recv(i)
				send(i)
			}
		}
		p.wait()
		return
	}
	if p.linear() {
		if v > 0 {
			send(0)
			recv(0)
			p.wait()
			return
		}
		for i := 1; i < m; i++ {
			recv(i)
		}
		p.wait()
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
	p.wait()
	if v > 0 {
		parent := v - 1<<h
		send(parent)
		recv(parent)
		p.wait()
	}
	for i := h + 1; i < d; i++ {
		if c := v + 1<<i; c < m {
			send(c)
		}
	}
}
