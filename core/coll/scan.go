package coll

import "github.com/openimpi/impi/core/datatype"

type scans struct{ reductions }

// Scan stores in everybody's recv the combination of all operands up to its own, in rank order
// (MPI-4.1, 6.11.1). A nil send means that the operand is in recv. The error is comm.ErrComm for an
// intercommunicator, as it is for Exscan.
func (p *Planner) Scan(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	o := scans{reductions{p.begin(s, k), op}}
	if err := o.only("Scan"); err != nil {
		return err
	}
	own, err := o.operand(send, recv, true)
	if err != nil {
		return err
	}
	a := o.accumulate(own, recv)
	switch {
	case o.single():
		o.scanTeam(&a)
	case o.sites.ours && o.sites.ordered:
		o.scanTeam(&a)
		if lower := o.lowerSites(&a); lower != nil {
			a.operand(lower)
		}
	default:
		o.scanChain(&a)
	}
	o.copy(recv, a.cur)
	return o.done(nil)
}

// scanTeam doubles in each round how many places before it a process has combined.
func (p scans) scanTeam(a *accumulator) {
	if in, ok := p.hostsOf(); ok && in.sites.ordered && len(a.cur) > 0 {
		l := scans{in}
		l.scanTeam(a)
		if lower := l.lowerSites(a); lower != nil {
			a.operand(lower)
		}
		return
	}
	me, n := p.team.me, p.team.size()
	for d := 1; d < n && len(a.cur) > 0; d *= 2 {
		if me+d < n {
			p.sendLocal(p.team.rank(me+d), tagScan, a.cur)
		}
		if me < d {
			continue
		}
		x := a.buffer()
		p.recvLocal(p.team.rank(me-d), tagScan, x)
		a.wait()
		a.before(x)
	}
	a.wait()
}

// lowerSites returns in every process the combination of all clients before its own, nil in the
// first. The last process of each client, whose a has the combination of its client, receives that
// of the clients before, sends both combined to the next client, and broadcasts what it has
// received.
func (p scans) lowerSites(a *accumulator) (lower []byte) {
	if len(a.cur) == 0 {
		return nil // no process receives empty blocks
	}
	if p.isHosts && !p.linear() {
		return p.lowerHosts(a)
	}
	last := p.team.size() - 1
	end := func(number int) int {
		rank, _ := p.m.Locals(number).At(p.m.Locals(number).Size() - 1)
		return int(rank)
	}
	if p.mine > 0 {
		lower = a.scratch.get(len(a.cur))
	}
	if p.team.me == last {
		upTo := a.cur
		switch {
		case p.direct():
			p.lowerAtOnce(a, lower, end)
		case lower != nil:
			p.recv(end(p.mine-1), tagScan, lower)
			a.wait()
			upTo = a.scratch.get(len(a.cur))
			a.copy(upTo, a.cur)
			a.apply(lower, upTo)
		}
		if p.mine+1 < p.m.Count() && !p.direct() {
			p.send(end(p.mine+1), tagScan, upTo)
		}
	}
	if lower != nil {
		p.bcasting().bcastTeam(lower, last)
	}
	a.wait()
	return lower
}

// lowerAtOnce is the exchange of lowerSites where each client tells all after it its combination,
// which takes one way between sites instead of one for each site.
func (p scans) lowerAtOnce(a *accumulator, lower []byte, end func(number int) int) {
	n := len(a.cur)
	values := p.scratch.get(p.mine * n)
	value := func(i int) []byte { return values[i*n:][:n:n] }
	for i := range p.m.Count() {
		switch {
		case i < p.mine:
			p.recv(end(i), tagScan, value(i))
		case i > p.mine:
			p.send(end(i), tagScan, a.cur)
		}
	}
	a.wait()
	if p.mine > 0 {
		p.inOrder(p.mine, value)
		p.copy(lower, value(p.mine-1))
	}
}

// lowerHosts is lowerSites for many hosts. The last process of each host tells the first one the
// host's combination; the first processes then need only as many rounds as the logarithm of the
// number of hosts.
func (p scans) lowerHosts(a *accumulator) (lower []byte) {
	last := p.team.size() - 1
	total := a.cur
	if p.team.me == last && last > 0 {
		p.sendLocal(p.team.rank(0), tagScan, a.cur)
	}
	if p.mine > 0 {
		lower = a.scratch.get(len(a.cur))
	}
	if p.team.me == 0 {
		if last > 0 {
			total = a.scratch.get(len(a.cur))
			p.recvLocal(p.team.rank(last), tagScan, total)
			a.wait()
		}
		over := scans{reductions{p.over(), p.op}}
		up := over.accumulate(total, nil)
		over.scanTeam(&up)
		into := lower
		if into == nil {
			into = total // the first host has no host before it, and receives nothing
		}
		over.shift(&up, into)
		a.wait()
	}
	if lower != nil {
		p.bcasting().bcastTeam(lower, 0)
	}
	a.wait()
	return lower
}

// scanChain passes the result on from rank to rank (the project's profile of IMPI ch.4, Scan).
func (p scans) scanChain(a *accumulator) {
	if p.me > 0 {
		x := a.buffer()
		p.recv(p.me-1, tagScan, x)
		a.wait()
		a.before(x)
	}
	if p.me+1 < p.n {
		p.send(p.me+1, tagScan, a.cur)
	}
	a.wait()
}

// Exscan is Scan without the own operand (MPI-4.1, 6.11.2). recv of rank 0 is left as it is.
func (p *Planner) Exscan(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	o := scans{reductions{p.begin(s, k), op}}
	if err := o.only("Exscan"); err != nil {
		return err
	}
	own, err := o.operand(send, recv, true)
	if err != nil {
		return err
	}
	a := o.accumulate(own, nil)
	switch {
	case o.single():
		o.exscanTeam(&a, recv)
	case o.sites.ours && o.sites.ordered:
		o.exscanSites(&a, recv)
	default:
		o.exscanChain(&a, recv)
	}
	return o.done(nil)
}

// exscanTeam is scanTeam, whose result each process then sends to the next.
func (p scans) exscanTeam(a *accumulator, recv []byte) {
	p.scanTeam(a)
	p.shift(a, recv)
}

// shift sends the result of scanTeam to the next place.
func (p scans) shift(a *accumulator, recv []byte) {
	if len(recv) == 0 {
		return
	}
	if p.team.me+1 < p.team.size() {
		p.sendLocal(p.team.rank(p.team.me+1), tagScan, a.cur)
	}
	if p.team.me > 0 {
		p.recvLocal(p.team.rank(p.team.me-1), tagScan, recv)
	}
}

// exscanSites is exscanTeam in each client, combined with the clients before it.
func (p scans) exscanSites(a *accumulator, recv []byte) {
	p.scanTeam(a)
	lower := p.lowerSites(a)
	p.shift(a, recv)
	a.wait()
	switch {
	case lower == nil:
	case p.team.me == 0:
		a.copy(recv, lower)
	default:
		a.apply(lower, recv)
	}
}

// exscanChain is scanChain, but the result is what comes in.
func (p scans) exscanChain(a *accumulator, recv []byte) {
	last := p.me+1 == p.n
	if p.me > 0 {
		if same(a.cur, recv) && !last {
			own := a.buffer()
			a.copy(own, a.cur)
			a.cur, a.mine = own, true
		}
		p.recv(p.me-1, tagScan, recv)
		a.wait()
		if !last {
			a.operand(recv)
		}
	}
	if !last {
		p.send(p.me+1, tagScan, a.cur)
	}
}
