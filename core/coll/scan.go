package coll

import "github.com/openimpi/impi/core/datatype"

// Scan leaves in everybody's recv the combination of all operands up to its own,
// in rank order. A nil send means that the operand is in recv. It is comm.ErrComm
// on an intercommunicator, as is Exscan.
func (p *Planner) Scan(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	s.Reset()
	if err := p.only("Scan"); err != nil {
		return err
	}
	own, err := p.operand(send, recv, k, op, true)
	if err != nil {
		return err
	}
	a := p.accumulate(s, own, recv, k, op)
	switch {
	case p.single():
		p.scanTeam(&a)
	case p.sites.ours && p.sites.ordered:
		p.scanTeam(&a)
		if lower := p.lowerSites(&a); lower != nil {
			a.operand(lower)
		}
	default:
		p.scanChain(&a)
	}
	s.copy(recv, a.cur)
	s.finish()
	return nil
}

// scanTeam doubles in each round how many places before it a process has combined.
func (p *Planner) scanTeam(a *accumulator) {
	me, n := p.team.me, p.team.size()
	for d := 1; d < n && len(a.cur) > 0; d *= 2 {
		if me+d < n {
			p.sendLocal(a.s, p.team.rank(me+d), tagScan, a.cur)
		}
		if me < d {
			continue
		}
		x := a.buffer()
		p.recvLocal(a.s, p.team.rank(me-d), tagScan, x)
		a.s.wait()
		a.before(x)
	}
	a.s.wait()
}

// lowerSites gives everybody the combination of all clients before its own, nil in
// the first. The last of each client, which has its client's in a, gets it from the
// client before, sends the next what is its, and hands it out.
func (p *Planner) lowerSites(a *accumulator) (lower []byte) {
	last := p.team.size() - 1
	end := func(number int) int {
		rank, _ := p.m.Locals(number).At(p.m.Locals(number).Size() - 1)
		return int(rank)
	}
	if p.mine > 0 {
		lower = a.s.scratch.get(len(a.cur))
	}
	if p.team.me == last {
		upTo := a.cur
		if lower != nil {
			p.recv(a.s, end(p.mine-1), tagScan, lower, a.k)
			a.s.wait()
			upTo = a.s.scratch.get(len(a.cur))
			a.s.copy(upTo, a.cur)
			a.reduce(lower, upTo)
		}
		if p.mine+1 < p.m.Count() {
			p.send(a.s, end(p.mine+1), tagScan, upTo, a.k)
		}
	}
	if lower != nil {
		p.bcastTeam(a.s, lower, a.k, last)
	}
	a.s.wait()
	return lower
}

// scanChain hands the result from rank to rank.
//
// The project's profile of IMPI ch.4, Scan.
func (p *Planner) scanChain(a *accumulator) {
	if p.me > 0 {
		x := a.buffer()
		p.recv(a.s, p.me-1, tagScan, x, a.k)
		a.s.wait()
		a.before(x)
	}
	if p.me+1 < p.n {
		p.send(a.s, p.me+1, tagScan, a.cur, a.k)
	}
	a.s.wait()
}

// Exscan is Scan without the own operand. recv of rank 0 is left alone.
func (p *Planner) Exscan(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	s.Reset()
	if err := p.only("Exscan"); err != nil {
		return err
	}
	own, err := p.operand(send, recv, k, op, true)
	if err != nil {
		return err
	}
	a := p.accumulate(s, own, nil, k, op)
	switch {
	case p.single():
		p.exscanTeam(&a, recv)
	case p.sites.ours && p.sites.ordered:
		p.exscanSites(&a, recv)
	default:
		p.exscanChain(&a, recv)
	}
	s.finish()
	return nil
}

// exscanTeam is Scan and a shift by one place.
func (p *Planner) exscanTeam(a *accumulator, recv []byte) {
	p.scanTeam(a)
	p.shift(a, recv)
}

// shift hands what scanTeam has found to the next place.
func (p *Planner) shift(a *accumulator, recv []byte) {
	if len(recv) == 0 {
		return
	}
	if p.team.me+1 < p.team.size() {
		p.sendLocal(a.s, p.team.rank(p.team.me+1), tagScan, a.cur)
	}
	if p.team.me > 0 {
		p.recvLocal(a.s, p.team.rank(p.team.me-1), tagScan, recv)
	}
}

// exscanSites is exscanTeam in each client, and what the clients before it have.
func (p *Planner) exscanSites(a *accumulator, recv []byte) {
	p.scanTeam(a)
	lower := p.lowerSites(a)
	p.shift(a, recv)
	a.s.wait()
	switch {
	case lower == nil:
	case p.team.me == 0:
		a.s.copy(recv, lower)
	default:
		a.reduce(lower, recv)
	}
}

// exscanChain is Scan's chain; what comes in is the result.
func (p *Planner) exscanChain(a *accumulator, recv []byte) {
	last := p.me+1 == p.n
	if p.me > 0 {
		if same(a.cur, recv) && !last {
			own := a.buffer()
			a.s.copy(own, a.cur)
			a.cur, a.mine = own, true
		}
		p.recv(a.s, p.me-1, tagScan, recv, a.k)
		a.s.wait()
		if !last {
			a.operand(recv)
		}
	}
	if !last {
		p.send(a.s, p.me+1, tagScan, a.cur, a.k)
	}
}
