package coll

import "github.com/openimpi/impi/core/datatype"

// Scatterv is Scatter of blocks of different lengths: counts[r] elements from
// displs[r] of the root's send go to rank r, whose recv has exactly that length.
// Without displs the blocks follow each other. send, counts and displs matter
// at the root only and must not change before the schedule has been executed.
func (p *Planner) Scatterv(s *Schedule, send []byte, counts, displs []int, recv []byte, k datatype.Kind, root int) error {
	s.Reset()
	if err := p.checkRoot(root); err != nil {
		return err
	}
	recv, send = p.significant(recv, send, root)
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interScatterv(s, send, counts, displs, recv, k, root)
		s.finish()
		return err
	}
	var from parts
	if p.me == root {
		var err error
		if from, err = s.layout("the send buffer", send, counts, displs, k, p.n); err != nil {
			return err
		}
		if recv, err = p.ownPart("the receive buffer", recv, &from); err != nil {
			return err
		}
	}
	p.scatterv(s, from, recv, nil, k, root)
	s.finish()
	return nil
}

// scatterv is gatherv reversed: the same decisions, the same order of two
// messages to one master.
//
// The project's profile of IMPI ch.4, Scatterv.
func (p *Planner) scatterv(s *Schedule, from parts, own []byte, counts []int, k datatype.Kind, root int) {
	if p.m.Local(p.me, root) {
		p.scattervRoot(s, from, own, k, root)
		return
	}
	n := len(own) / k.Size()
	if p.team.me > 0 {
		if counts == nil {
			p.sendLength(s, n*datatype.External32.Size(k))
		}
		switch {
		case n == 0:
		case p.short(k, n):
			p.recvLocal(s, p.team.rank(0), tagScatterv, own)
		default:
			p.recv(s, root, tagScatterv, own, k)
		}
		return
	}
	if counts != nil || p.team.size() == 1 {
		p.scattervMaster(s, own, p.lengths(s, n, counts), k, root)
		return
	}
	p.recvLengths(s, n, k, func(lengths []int) { p.scattervMaster(s, own, lengths, k, root) })
}

// scattervRoot is what the processes of the root's client do.
func (p *Planner) scattervRoot(s *Schedule, from parts, own []byte, k datatype.Kind, root int) {
	if p.me != root {
		if len(own) > 0 {
			p.recvLocal(s, root, tagScatterv, own)
		}
		return
	}
	s.copy(own, from.at(root))
	for i := range p.m.Count() {
		c := chosen{parts: from, ranks: p.m.Locals(i), planner: p, kind: k}
		if i == p.mine {
			continue
		}
		if total, _, _ := c.bytes(); total > 0 {
			p.sendChosen(s, tagScatterv, c, k)
		}
	}
	for r := range p.n {
		part := from.at(r)
		if r != root && len(part) > 0 && (p.m.Local(r, root) || !p.short(k, len(part)/k.Size())) {
			p.send(s, r, tagScatterv, part, k)
		}
	}
}

// scattervMaster receives the short blocks of its client in one message and
// hands them out.
func (p *Planner) scattervMaster(s *Schedule, own []byte, lengths []int, k datatype.Kind, root int) {
	total := p.shortBytes(lengths, k)
	whole := s.scratch.get(total)
	if total > 0 {
		p.recv(s, root, tagScatterv, whole, k)
	}
	if len(own) > 0 && !p.short(k, len(own)/k.Size()) {
		p.recv(s, root, tagScatterv, own, k)
	}
	s.wait()
	for i, n := range lengths {
		if n == 0 || !p.short(k, n) {
			continue
		}
		piece := whole[:n*k.Size()]
		whole = whole[len(piece):]
		if i == 0 {
			s.copy(own, piece)
		} else {
			p.sendLocal(s, p.team.rank(i), tagScatterv, piece)
		}
	}
}

// shortBytes is the native bytes of the blocks that go through the master.
func (p *Planner) shortBytes(lengths []int, k datatype.Kind) (total int) {
	for _, n := range lengths {
		if p.short(k, n) {
			total += n * k.Size()
		}
	}
	return total
}

// lengths are the team's, by place, where they are known: from the counts of all
// ranks, or of a team of one.
func (p *Planner) lengths(s *Schedule, own int, counts []int) []int {
	lengths := s.ints(p.team.size())
	lengths[0] = own
	if counts != nil {
		for i := range lengths {
			lengths[i] = counts[p.team.rank(i)]
		}
	}
	return lengths
}
