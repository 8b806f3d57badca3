package coll

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Scatter brings the blocks of the root's send, all of one length, to
// everybody's recv, by rank. At the root a nil recv means that its block stays
// in place. send matters at the root only.
func (p *Planner) Scatter(s *Schedule, send, recv []byte, k datatype.Kind, root int) error {
	s.Reset()
	if err := p.checkRoot(root); err != nil {
		return err
	}
	recv, send = p.significant(recv, send, root)
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interScatter(s, send, recv, k, root)
		s.finish()
		return err
	}
	if p.me == root {
		var err error
		if recv, err = p.ownBlock("the send buffer", recv, send, k); err != nil {
			return err
		}
	}
	p.scatter(s, send, recv, k, root)
	s.finish()
	return nil
}

// scatter is Gather reversed.
//
// The project's profile of IMPI ch.4, Scatter.
func (p *Planner) scatter(s *Schedule, send, own []byte, k datatype.Kind, root int) {
	from := even(send, len(own))
	if p.m.Local(p.me, root) {
		p.scatterForeign(s, from, k, root)
		from.ranks = p.team.ranks
		p.scatterTeam(s, tagScatter, own, from, p.m.Place(root))
		return
	}
	if !p.short(k, len(own)/k.Size()) {
		p.recv(s, root, tagScatter, own, k)
		return
	}
	whole := own
	if p.team.me == 0 {
		if n := p.team.size(); n > 1 {
			whole = s.scratch.get(n * len(own))
		}
		p.recv(s, root, tagScatter, whole, k)
		s.wait()
	}
	p.scatterTeam(s, tagScatter, own, even(whole, len(own)), 0)
}

// scatterForeign is what the root sends to other clients.
func (p *Planner) scatterForeign(s *Schedule, from parts, k datatype.Kind, root int) {
	if p.me != root {
		return
	}
	if p.short(k, from.block/k.Size()) {
		for i := range p.m.Count() {
			if i != p.mine {
				p.sendChosen(s, tagScatter, chosen{parts: from, ranks: p.m.Locals(i)}, k)
			}
		}
		return
	}
	for r := range p.n {
		if !p.m.Local(r, root) {
			p.send(s, r, tagScatter, from.at(r), k)
		}
	}
}

// sendChosen sends the chosen parts in one message to their client's master.
func (p *Planner) sendChosen(s *Schedule, tag wire.Tag, c chosen, k datatype.Kind) {
	whole, own := s.together(&c)
	if !own {
		s.pack(&c, whole)
	}
	p.send(s, c.master(), tag, whole, k)
}

// scatterTeam is gatherTeam reversed.
func (p *Planner) scatterTeam(s *Schedule, tag wire.Tag, own []byte, from parts, root int) {
	n := p.team.size()
	if p.team.me == root {
		s.copy(own, from.at(root))
	}
	switch {
	case len(own) == 0 || n == 1:
	case len(own) < p.profile.Tuning.GatherLong && !p.few():
		p.scatterTree(s, tag, own, from, root)
	case p.team.me != root:
		p.recvLocal(s, p.team.rank(root), tag, own)
	default:
		for i := range n {
			if i != root {
				p.sendLocal(s, p.team.rank(i), tag, from.at(i))
			}
		}
	}
}

func (p *Planner) scatterTree(s *Schedule, tag wire.Tag, own []byte, from parts, root int) {
	n, block := p.team.size(), len(own)
	v := (p.team.me - root + n) % n
	whole := own
	if v > 0 {
		if sub := subtree(v, n); sub > 1 {
			whole = s.scratch.get(sub * block)
		}
		p.recvLocal(s, p.team.rank(v&(v-1)+root), tag, whole)
		s.wait()
	}
	for mask := top(n); mask > 0; mask /= 2 {
		child := v + mask
		if v > 0 && mask >= v&-v || child >= n {
			continue
		}
		sub := subtree(child, n)
		if v > 0 {
			p.sendLocal(s, p.team.rank(child+root), tag, whole[mask*block:][:sub*block])
			continue
		}
		piece, own := p.branch(s, from, child+root, sub)
		if !own {
			for i := range sub {
				s.copy(piece[i*block:][:block], from.at((child+root+i)%n))
			}
		}
		p.sendLocal(s, p.team.rank(child+root), tag, piece)
	}
	if v > 0 {
		s.copy(own, whole[:block])
	}
}
