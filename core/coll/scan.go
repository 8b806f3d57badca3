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
	if p.single() {
		p.scanTeam(&a)
	} else {
		p.scanChain(&a)
	}
	s.copy(recv, a.cur)
	s.finish()
	return nil
}

// scanTeam doubles in each round how many ranks before it a process has combined.
func (p *Planner) scanTeam(a *accumulator) {
	for d := 1; d < p.n && len(a.cur) > 0; d *= 2 {
		if p.me+d < p.n {
			p.sendLocal(a.s, p.me+d, tagScan, a.cur)
		}
		if p.me < d {
			continue
		}
		x := a.buffer()
		p.recvLocal(a.s, p.me-d, tagScan, x)
		a.s.wait()
		a.before(x)
	}
	a.s.wait()
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
	if p.single() {
		p.exscanTeam(&a, recv)
	} else {
		p.exscanChain(&a, recv)
	}
	s.finish()
	return nil
}

// exscanTeam is Scan and a shift by one rank.
func (p *Planner) exscanTeam(a *accumulator, recv []byte) {
	p.scanTeam(a)
	if len(recv) == 0 {
		return
	}
	if p.me+1 < p.n {
		p.sendLocal(a.s, p.me+1, tagScan, a.cur)
	}
	if p.me > 0 {
		p.recvLocal(a.s, p.me-1, tagScan, recv)
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
