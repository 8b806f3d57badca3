package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Gather brings everybody's send, all of one length, to the root's recv, by
// rank. At the root a nil send means that its block is in place already. recv
// matters at the root only.
func (p *Planner) Gather(s *Schedule, send, recv []byte, k datatype.Kind, root int) error {
	s.Reset()
	if err := p.checkRoot(root); err != nil {
		return err
	}
	send, recv = p.significant(send, recv, root)
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interGather(s, send, recv, k, root)
		s.finish()
		return err
	}
	if p.me == root {
		var err error
		if send, err = p.ownBlock("the receive buffer", send, recv, k); err != nil {
			return err
		}
	}
	p.gather(s, send, recv, k, root)
	s.finish()
	return nil
}

// ownBlock gives this process's block where part may be nil: its place in whole,
// which has one for each member.
func (p *Planner) ownBlock(name string, part, whole []byte, k datatype.Kind) ([]byte, error) {
	block := len(part)
	if part == nil {
		block = len(whole) / p.n
	}
	if block*p.n != len(whole) || block%k.Size() != 0 {
		return nil, fmt.Errorf("coll: %w: %s of %d bytes for %d blocks of %d bytes", ErrBuffer, name, len(whole), p.n, block)
	}
	if part == nil {
		part = whole[p.me*block:][:block:block]
	}
	return part, nil
}

// gather is Gather with the own block always given. Blocks shorter than XSIZE
// go through the masters, one message for each client; others go straight.
//
// The project's profile of IMPI ch.4, Gather.
func (p *Planner) gather(s *Schedule, own, recv []byte, k datatype.Kind, root int) {
	to := even(recv, len(own))
	if p.m.Local(p.me, root) {
		p.gatherForeign(s, to, k, root)
		to.ranks = p.team.ranks
		p.gatherTeam(s, tagGather, own, to, p.m.Place(root))
		return
	}
	if !p.short(k, len(own)/k.Size()) {
		p.send(s, root, tagGather, own, k)
		return
	}
	whole := own
	if n := p.team.size(); n > 1 {
		if p.team.me == 0 {
			whole = s.scratch.get(n * len(own))
		}
		p.gatherTeam(s, tagGather, own, even(whole, len(own)), 0)
		s.wait()
	}
	if p.team.me == 0 {
		p.send(s, root, tagGather, whole, k)
	}
}

// gatherForeign is what the root receives from other clients.
func (p *Planner) gatherForeign(s *Schedule, to parts, k datatype.Kind, root int) {
	if p.me != root {
		return
	}
	if p.short(k, to.block/k.Size()) {
		for i := range p.m.Count() {
			if i != p.mine {
				p.recvChosen(s, tagGather, chosen{parts: to, ranks: p.m.Locals(i)}, k)
			}
		}
		return
	}
	for r := range p.n {
		if !p.m.Local(r, root) {
			p.recv(s, r, tagGather, to.at(r), k)
		}
	}
}

// recvChosen receives the chosen parts in one message from their client's master.
func (p *Planner) recvChosen(s *Schedule, tag wire.Tag, c chosen, k datatype.Kind) {
	whole, own := s.together(&c)
	p.recv(s, c.master(), tag, whole, k)
	if !own {
		s.unpack(&c, whole)
	}
}

// gatherTeam brings the blocks of one client to the place root, which has
// parts by place. Long blocks go straight there, short ones up a tree.
func (p *Planner) gatherTeam(s *Schedule, tag wire.Tag, own []byte, to parts, root int) {
	n := p.team.size()
	if p.team.me == root {
		s.copy(to.at(root), own)
	}
	switch {
	case len(own) == 0 || n == 1:
	case len(own) < p.profile.Tuning.GatherLong && !p.few():
		p.gatherTree(s, tag, own, to, root)
	case p.team.me != root:
		p.sendLocal(s, p.team.rank(root), tag, own)
	default:
		for i := range n {
			if i != root {
				p.recvLocal(s, p.team.rank(i), tag, to.at(i))
			}
		}
	}
}

func (p *Planner) gatherTree(s *Schedule, tag wire.Tag, own []byte, to parts, root int) {
	n, block := p.team.size(), len(own)
	v := (p.team.me - root + n) % n
	whole := own
	if sub := subtree(v, n); v > 0 && sub > 1 {
		whole = s.scratch.get(sub * block)
		s.copy(whole[:block], own)
	}
	for mask := 1; mask < n && v&mask == 0; mask *= 2 {
		child := v + mask
		if child >= n {
			break
		}
		sub := subtree(child, n)
		if v > 0 {
			p.recvLocal(s, p.team.rank(child+root), tag, whole[mask*block:][:sub*block])
			continue
		}
		piece, own := p.branch(s, to, child+root, sub)
		p.recvLocal(s, p.team.rank(child+root), tag, piece)
		if !own {
			for i := range sub {
				s.afterwards(Step{Action: Copy, Dst: to.at((child + root + i) % n), Src: piece[i*block:][:block]})
			}
		}
	}
	s.wait()
	if v > 0 {
		p.sendLocal(s, p.team.rank(v&(v-1)+root), tag, whole)
	}
}

// branch gives a buffer for the parts of sub places from first on, which may go
// past the last place to the first: their own memory if it is in one piece.
func (p *Planner) branch(s *Schedule, b parts, first, sub int) (piece []byte, own bool) {
	n := p.team.size()
	first %= n
	if first+sub <= n {
		start, _ := b.where(first)
		if _, end := b.where(first + sub - 1); end == start+sub*b.block {
			return b.buf[start:end:end], true
		}
	}
	return s.scratch.get(sub * b.block), false
}
