package coll

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// swapSites plans the exchange of blocks between the masters of clients that all run this library:
// the blocks of a client's ranks, which are in its master's buffer already, go to each other master
// in one message.
func (p allgathers) swapSites(tag wire.Tag, b parts) {
	if p.team.me != 0 {
		return
	}
	out := p.picked(b, p.team.ranks)
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		rooted{plan: p.plan, tag: tag}.bundle(chosen{parts: b, ranks: p.m.Locals(i)})
		p.send(p.m.Rank(i), tag, out)
	}
	p.wait()
}

func (p plan) picked(b parts, ranks *comm.Group) []byte {
	c := chosen{parts: b, ranks: ranks}
	whole, own := p.together(&c)
	if !own {
		p.pack(&c, whole)
	}
	return whole
}

// allgatherWide collects the blocks of each client at its master, has the masters exchange them,
// and broadcasts all of them in each client.
func (p allgathers) allgatherWide(own, recv []byte) {
	if len(own) == 0 {
		return
	}
	all := even(recv, len(own))
	if p.inColumns(len(own)) {
		p.allgatherColumns(own, all)
		return
	}
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

// inColumns reports whether what the processes of a client have is long enough for each of them to
// send its own block of that length to the other clients. All clients must have as many processes.
func (p allgathers) inColumns(block int) bool {
	return p.direct() && p.betweenHosts == nil && p.sites.equal && p.team.size() > 1 && p.team.size() <= maxStripes &&
		p.team.size()*block >= p.profile.Tuning.StripesLong
}

// allgatherColumns has the processes in one place of all clients, a column, exchange their blocks,
// and passes the blocks of columns around in each client.
func (p allgathers) allgatherColumns(own []byte, all parts) {
	p.copy(all.at(p.me), own)
	for i := range p.m.Count() {
		if i != p.mine {
			p.recv(p.stripe(i), tagAllgather, all.at(p.stripe(i)))
			p.send(p.stripe(i), tagAllgather, own)
		}
	}
	p.wait()
	n := p.team.size()
	for step := range n - 1 {
		out, in := (p.team.me-step+n)%n, (p.team.me-step-1+n)%n
		for i := range p.m.Count() {
			p.sendLocal(p.team.rank(p.team.me+1), tagAllgather, all.at(p.carrier(i, out)))
			p.recvLocal(p.team.rank(p.team.me-1), tagAllgather, all.at(p.carrier(i, in)))
		}
		p.wait()
	}
}

// gathervWide is the part of allgatherWide after which the masters have all blocks, for blocks of
// any length.
func (p allgathers) gathervWide(own []byte, to parts) {
	p.gatherAtFirst(own, to)
	p.wait()
	p.swapSites(tagAllgather, to)
}

// gatherAtFirst brings the blocks of a client to its master, which has a place for each. Each host
// sends its blocks in one message.
func (p allgathers) gatherAtFirst(own []byte, to parts) {
	if in, ok := p.inside(); ok {
		to = to.of(p.team.ranks)
		allgathers{in}.gatherAtFirst(own, to)
		switch {
		case in.team.me != 0:
		case in.mine != 0:
			in.wait()
			if out := in.picked(to, in.team.ranks); len(out) > 0 {
				in.send(0, tagGatherv, out)
			}
		default:
			for i := 1; i < in.m.Count(); i++ {
				if c := (chosen{parts: to, ranks: in.m.Locals(i)}); c.any() {
					rooted{plan: in, tag: tagGatherv}.bundle(c)
				}
			}
		}
		return
	}
	if p.team.me != 0 {
		if len(own) > 0 {
			p.sendLocal(p.team.rank(0), tagGatherv, own)
		}
		return
	}
	p.copy(to.at(p.me), own)
	for i := 1; i < p.team.size(); i++ {
		r := p.team.rank(i)
		if part := to.at(r); len(part) > 0 {
			p.recvLocal(r, tagGatherv, part)
		}
	}
}

// reduceScatterWide combines in each client, has each master send each other master the part of
// that one's client, and distributes the parts in each client.
func (p allreductions) reduceScatterWide(b parts, result []byte) {
	a := p.accumulate(b.buf, nil)
	p.reduceTree(&a, 0)
	if p.team.me != 0 {
		p.wait() // recv may be the operand's memory
		p.handOut(nil, b.counts, result)
		return
	}
	b.buf = a.cur
	own := p.picked(b, p.team.ranks)
	ins := p.scratch.get(p.m.Count() * len(own))
	in := func(i int) []byte { return ins[i*len(own):][:len(own):len(own)] }
	for i := range p.m.Count() {
		if i != p.mine {
			p.recv(p.m.Rank(i), tagReduceScatter, in(i))
			p.send(p.m.Rank(i), tagReduceScatter, p.picked(b, p.m.Locals(i)))
		}
	}
	p.wait()
	p.copy(in(p.mine), own)
	rest := in(p.m.Count() - 1)
	for i := p.m.Count() - 2; i >= 0; i-- {
		p.apply(in(i), rest)
	}
	p.handOut(rest, b.counts, result)
}

// handOut sends each process of a client its part of what the master has, counts[rank] elements.
func (p allreductions) handOut(whole []byte, counts []int, own []byte) {
	if in, ok := p.inside(); ok {
		counts = p.byPlace(counts)
		all := in.following(whole, counts)
		in.scatteringv().variedBlocks(own, all, counts, 0)
		return
	}
	if p.team.me != 0 {
		if len(own) > 0 {
			p.recvLocal(p.team.rank(0), tagScatterv, own)
		}
		return
	}
	for i := range p.team.size() {
		r := p.team.rank(i)
		part := whole[:counts[r]*p.k.Size()]
		whole = whole[len(part):]
		switch {
		case i == 0:
			p.copy(own, part)
		case len(part) > 0:
			p.sendLocal(r, tagScatterv, part)
		}
	}
}
