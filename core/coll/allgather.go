package coll

import "github.com/openimpi/impi/core/datatype"

// Allgather brings everybody's send, all of one length, to everybody's recv, by
// rank. A nil send means that the own block is in place already.
func (p *Planner) Allgather(s *Schedule, send, recv []byte, k datatype.Kind) error {
	s.Reset()
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interAllgather(s, send, recv, k)
		s.finish()
		return err
	}
	own, err := p.ownBlock("the receive buffer", send, recv, k)
	if err != nil {
		return err
	}
	switch {
	case p.single():
		p.allgatherTeam(s, own, recv)
	case p.sites.ours:
		p.allgatherWide(s, own, recv, k)
	default:
		// IMPI has no messages of Allgather: it is Gather to rank 0 and Bcast.
		p.gather(s, own, recv, k, 0)
		s.wait()
		p.bcast(s, recv, k, 0)
	}
	s.finish()
	return nil
}

func (p *Planner) allgatherTeam(s *Schedule, own, recv []byte) {
	b := even(recv, len(own))
	switch {
	case len(own) == 0:
	case len(own) >= p.profile.Tuning.AllgatherLong || p.n <= 2:
		s.copy(b.at(p.me), own)
		p.ring(s, tagAllgather, &b, p.me)
	default:
		p.allgatherDoubling(s, own, &b)
	}
}

// allgatherDoubling doubles what everybody has in each round, for any number of
// processes (Bruck): the blocks from the own one on are collected, then turned.
func (p *Planner) allgatherDoubling(s *Schedule, own []byte, b *parts) {
	n, block := p.n, len(own)
	all := s.scratch.get(n * block)
	s.copy(all[:block], own)
	for d := 1; d < n; d *= 2 {
		more := min(d, n-d) * block
		p.sendLocal(s, p.team.rank(p.me-d), tagAllgather, all[:more])
		p.recvLocal(s, p.team.rank(p.me+d), tagAllgather, all[d*block:][:more])
		s.wait()
	}
	head := n - p.me
	s.copy(b.buf[p.me*block:], all[:head*block])
	s.copy(b.buf, all[head*block:])
}

// Allgatherv is Allgather of blocks of different lengths: counts[r] elements of
// rank r come to displs[r] of recv, one after the other if displs is nil.
// Everybody gives the same counts.
func (p *Planner) Allgatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind) error {
	s.Reset()
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interAllgatherv(s, send, recv, counts, displs, k)
		s.finish()
		return err
	}
	to, err := s.layout("the receive buffer", recv, counts, displs, k, p.n)
	if err != nil {
		return err
	}
	own, err := p.ownPart("the send buffer", send, &to)
	if err != nil {
		return err
	}
	if p.single() {
		s.copy(to.at(p.me), own)
		p.ring(s, tagAllgather, &to, p.me)
	} else {
		p.allgathervClients(s, own, to, k)
	}
	s.finish()
	return nil
}

// allgathervClients is Gatherv to rank 0 and Bcast of all blocks in one piece, or
// the like inside each client of ours once its master has all blocks.
func (p *Planner) allgathervClients(s *Schedule, own []byte, to parts, k datatype.Kind) {
	if p.sites.ours {
		p.gathervWide(s, own, to, k)
		p.spread(s, to, p.n, k, p.team.me == 0, p.bcastTeam)
		return
	}
	p.gatherv(s, own, to, to.counts, k, 0)
	s.wait()
	p.spread(s, to, p.n, k, p.me == 0, p.bcast)
}

// spread brings n parts from the first rank or place to the others in one piece.
func (p *Planner) spread(s *Schedule, to parts, n int, k datatype.Kind, first bool,
	bcast func(s *Schedule, buf []byte, k datatype.Kind, root int)) {
	total, packed := to.packed(n)
	if packed {
		bcast(s, to.buf[:total:total], k, 0)
		return
	}
	whole := s.scratch.get(total)
	at := 0
	for r := range n {
		part := to.at(r)
		if first {
			s.copy(whole[at:], part)
		}
		at += len(part)
	}
	bcast(s, whole, k, 0)
	s.wait()
	if first {
		return
	}
	for r := range n {
		part := to.at(r)
		s.copy(part, whole[:len(part)])
		whole = whole[len(part):]
	}
}
