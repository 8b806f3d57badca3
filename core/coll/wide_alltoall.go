package coll

import "github.com/openimpi/impi/core/datatype"

// mostPieces is how many blocks a master may have to sort.
const mostPieces = 1 << 14

// bundled says that the blocks of Alltoall go by way of the masters: all that one
// client has for another in one message.
func (p *Planner) bundled(block int) bool {
	if !p.sites.ours || block == 0 || block > p.profile.Tuning.AlltoallWide {
		return false
	}
	most := 0
	for i := range p.m.Count() {
		most = max(most, p.m.Locals(i).Size())
	}
	return most*p.n <= mostPieces
}

// alltoallBundled hands what goes to other clients to the master, which sorts it
// by client, exchanges it with the other masters, and hands out what came.
func (p *Planner) alltoallBundled(s *Schedule, from, to *parts, k datatype.Kind) {
	away := (p.n - p.team.size()) * from.block
	out := s.scratch.get(away)
	rest := out
	p.eachAway(func(_, r int) {
		s.copy(rest[:from.block], from.at(r))
		rest = rest[from.block:]
	})
	in := s.scratch.get(away)
	if p.team.me == 0 {
		p.sortBundles(s, out, in, from.block, k)
	} else {
		p.sendLocal(s, p.team.rank(0), tagAlltoallv, out)
		p.recvLocal(s, p.team.rank(0), tagAlltoallv, in)
	}
	p.exchangeTeam(s, from, to)
	s.wait()
	p.eachAway(func(_, r int) {
		s.copy(to.at(r), in[:from.block])
		in = in[from.block:]
	})
}

// eachAway goes over the ranks of the other clients, client by client.
func (p *Planner) eachAway(f func(number, rank int)) {
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		for r := range p.m.Locals(i).All() {
			f(i, int(r))
		}
	}
}

// sortBundles is what the master does: out and in are its own.
func (p *Planner) sortBundles(s *Schedule, out, in []byte, block int, k datatype.Kind) {
	n := p.team.size()
	away := len(out)
	outs, ins := s.scratch.get(n*away), s.scratch.get(n*away)
	s.copy(outs[:away], out)
	for i := 1; i < n; i++ {
		p.recvLocal(s, p.team.rank(i), tagAlltoallv, outs[i*away:][:away])
	}
	s.wait()
	bundle, bundles := s.scratch.get(n*away), s.scratch.get(n*away)
	at, start := 0, 0 // in the bundles, and in what each has for others
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		theirs := p.m.Locals(i).Size() * block
		for q := range n {
			s.copy(bundle[at+q*theirs:][:theirs], outs[q*away+start:][:theirs])
		}
		p.send(s, p.m.Rank(i), tagAlltoall, bundle[at:at+n*theirs:at+n*theirs], k)
		p.recv(s, p.m.Rank(i), tagAlltoall, bundles[at:at+n*theirs:at+n*theirs], k)
		at += n * theirs
		start += theirs
	}
	s.wait()
	// From each rank elsewhere there is a block for each here.
	for j := range away / block {
		for q := range n {
			s.copy(ins[q*away+j*block:][:block], bundles[(j*n+q)*block:][:block])
		}
	}
	s.copy(in, ins[:away])
	for i := 1; i < n; i++ {
		p.sendLocal(s, p.team.rank(i), tagAlltoallv, ins[i*away:][:away])
	}
}

// exchangeTeam is exchange inside the client.
func (p *Planner) exchangeTeam(s *Schedule, from, to *parts) {
	s.copy(to.at(p.me), from.at(p.me))
	n := p.team.size()
	for i := 1; i < n; i++ {
		source, dest := p.team.rank(p.team.me-i), p.team.rank(p.team.me+i)
		p.recvLocal(s, source, tagAlltoall, to.at(source))
		p.sendLocal(s, dest, tagAlltoall, from.at(dest))
		if i%atOnce == 0 {
			s.wait()
		}
	}
}
