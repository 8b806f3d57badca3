package coll

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// swapSites has the masters of clients that are all ours exchange what their
// clients have: the blocks of a client's ranks, which are in its master's buffer
// already, go to each other master in one message.
func (p *Planner) swapSites(s *Schedule, tag wire.Tag, b parts, k datatype.Kind) {
	if p.team.me != 0 {
		return
	}
	mine := chosen{parts: b, ranks: p.m.Locals(p.mine)}
	out, own := s.together(&mine)
	if !own {
		s.pack(&mine, out)
	}
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		p.recvChosen(s, tag, chosen{parts: b, ranks: p.m.Locals(i)}, k)
		p.send(s, p.m.Rank(i), tag, out, k)
	}
	s.wait()
}

// allgatherWide collects the blocks of each client at its master, has the masters
// exchange them, and hands all to their clients.
func (p *Planner) allgatherWide(s *Schedule, own, recv []byte, k datatype.Kind) {
	if len(own) == 0 {
		return
	}
	all := even(recv, len(own))
	local := all
	local.ranks = p.team.ranks
	if p.team.me != 0 {
		local.buf = nil
	}
	p.gatherTeam(s, tagGather, own, local, 0)
	s.wait()
	p.swapSites(s, tagAllgather, all, k)
	p.bcastTeam(s, recv, k, 0)
}

// gathervWide is allgatherWide's part up to the masters for blocks of any length.
func (p *Planner) gathervWide(s *Schedule, own []byte, to parts, k datatype.Kind) {
	if p.team.me != 0 {
		if len(own) > 0 {
			p.sendLocal(s, p.team.rank(0), tagGatherv, own)
		}
		s.wait()
		return
	}
	s.copy(to.at(p.me), own)
	for i := 1; i < p.team.size(); i++ {
		r := p.team.rank(i)
		if part := to.at(r); len(part) > 0 {
			p.recvLocal(s, r, tagGatherv, part)
		}
	}
	s.wait()
	p.swapSites(s, tagAllgather, to, k)
}

// reduceScatterWide combines in each client, has each master send each other one
// what belongs to that one's client, and hands the parts out.
func (p *Planner) reduceScatterWide(s *Schedule, b parts, result []byte, k datatype.Kind, op *datatype.Op) {
	a := p.accumulate(s, b.buf, nil, k, op)
	p.reduceTree(&a, 0)
	if p.team.me != 0 {
		s.wait() // the operand may be where the result comes
		if len(result) > 0 {
			p.recvLocal(s, p.team.rank(0), tagScatterv, result)
		}
		return
	}
	b.buf = a.cur
	pick := func(ranks *comm.Group) []byte {
		c := chosen{parts: b, ranks: ranks}
		whole, own := s.together(&c)
		if !own {
			s.pack(&c, whole)
		}
		return whole
	}
	own := pick(p.team.ranks)
	ins := s.scratch.get(p.m.Count() * len(own))
	in := func(i int) []byte { return ins[i*len(own):][:len(own):len(own)] }
	for i := range p.m.Count() {
		if i != p.mine {
			p.recv(s, p.m.Rank(i), tagReduceScatter, in(i), k)
			p.send(s, p.m.Rank(i), tagReduceScatter, pick(p.m.Locals(i)), k)
		}
	}
	s.wait()
	s.copy(in(p.mine), own)
	rest := in(p.m.Count() - 1)
	for i := p.m.Count() - 2; i >= 0; i-- {
		s.reduce(op, in(i), rest, k)
	}
	for i := range p.team.size() {
		r := p.team.rank(i)
		part := rest[:b.counts[r]*b.size]
		rest = rest[len(part):]
		switch {
		case i == 0:
			s.copy(result, part)
		case len(part) > 0:
			p.sendLocal(s, r, tagScatterv, part)
		}
	}
}
