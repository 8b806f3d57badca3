package coll

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// swapSites has the masters of clients that are all ours exchange what their
// clients have: the blocks of a client's ranks, which are in its master's buffer
// already, go to each other master in one message.
func (p allgathers) swapSites(tag wire.Tag, b parts) {
	if p.team.me != 0 {
		return
	}
	mine := chosen{parts: b, ranks: p.m.Locals(p.mine)}
	out, own := p.together(&mine)
	if !own {
		p.pack(&mine, out)
	}
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		rooted{plan: p.plan, tag: tag}.bundle(chosen{parts: b, ranks: p.m.Locals(i)})
		p.send(p.m.Rank(i), tag, out)
	}
	p.wait()
}

// allgatherWide collects the blocks of each client at its master, has the masters
// exchange them, and hands all to their clients.
func (p allgathers) allgatherWide(own, recv []byte) {
	if len(own) == 0 {
		return
	}
	all := even(recv, len(own))
	local := all
	local.ranks = p.team.ranks
	if p.team.me != 0 {
		local.buf = nil
	}
	p.gathering().inTeam(own, local, 0)
	p.wait()
	p.swapSites(tagAllgather, all)
	p.bcasting().bcastTeam(recv, 0)
}

// gathervWide is allgatherWide's part up to the masters for blocks of any length.
func (p allgathers) gathervWide(own []byte, to parts) {
	if p.team.me != 0 {
		if len(own) > 0 {
			p.sendLocal(p.team.rank(0), tagGatherv, own)
		}
		p.wait()
		return
	}
	p.copy(to.at(p.me), own)
	for i := 1; i < p.team.size(); i++ {
		r := p.team.rank(i)
		if part := to.at(r); len(part) > 0 {
			p.recvLocal(r, tagGatherv, part)
		}
	}
	p.wait()
	p.swapSites(tagAllgather, to)
}

// reduceScatterWide combines in each client, has each master send each other one
// what belongs to that one's client, and hands the parts out.
func (p allreductions) reduceScatterWide(b parts, result []byte) {
	a := p.accumulate(b.buf, nil)
	p.reduceTree(&a, 0)
	if p.team.me != 0 {
		p.wait() // the operand may be where the result comes
		if len(result) > 0 {
			p.recvLocal(p.team.rank(0), tagScatterv, result)
		}
		return
	}
	b.buf = a.cur
	pick := func(ranks *comm.Group) []byte {
		c := chosen{parts: b, ranks: ranks}
		whole, own := p.together(&c)
		if !own {
			p.pack(&c, whole)
		}
		return whole
	}
	own := pick(p.team.ranks)
	ins := p.scratch.get(p.m.Count() * len(own))
	in := func(i int) []byte { return ins[i*len(own):][:len(own):len(own)] }
	for i := range p.m.Count() {
		if i != p.mine {
			p.recv(p.m.Rank(i), tagReduceScatter, in(i))
			p.send(p.m.Rank(i), tagReduceScatter, pick(p.m.Locals(i)))
		}
	}
	p.wait()
	p.copy(in(p.mine), own)
	rest := in(p.m.Count() - 1)
	for i := p.m.Count() - 2; i >= 0; i-- {
		p.apply(in(i), rest)
	}
	for i := range p.team.size() {
		r := p.team.rank(i)
		part := rest[:b.counts[r]*b.size]
		rest = rest[len(part):]
		switch {
		case i == 0:
			p.copy(result, part)
		case len(part) > 0:
			p.sendLocal(r, tagScatterv, part)
		}
	}
}
