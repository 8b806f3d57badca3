package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Gatherv is Gather of blocks of different lengths: the root puts counts[r]
// elements of rank r at displs[r] of recv, one after the other if displs is nil.
// recv, counts and displs matter at the root only and must not change before
// the schedule has been executed.
func (p *Planner) Gatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind, root int) error {
	s.Reset()
	if err := p.checkRoot(root); err != nil {
		return err
	}
	send, recv = p.significant(send, recv, root)
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interGatherv(s, send, recv, counts, displs, k, root)
		s.finish()
		return err
	}
	var to parts
	if p.me == root {
		var err error
		if to, err = s.layout("the receive buffer", recv, counts, displs, k, p.n); err != nil {
			return err
		}
		if send, err = p.ownPart("the send buffer", send, &to); err != nil {
			return err
		}
	}
	p.gatherv(s, send, to, nil, k, root)
	s.finish()
	return nil
}

// ownPart gives this process's part where one may be nil, and checks its length.
func (p *Planner) ownPart(name string, part []byte, b *parts) ([]byte, error) {
	place := b.at(p.me)
	if part == nil {
		return place, nil
	}
	if len(part) != len(place) {
		return nil, fmt.Errorf("coll: %w: %s has %d bytes, its count says %d", ErrBuffer, name, len(part), len(place))
	}
	return part, nil
}

// gatherv decides for each block by its own length: short ones go through the
// master, long ones straight to the root. Empty ones do not travel. Of two
// messages from a master the one with its client's short blocks is first.
// counts is nil if only the root knows them all.
//
// The project's profile of IMPI ch.4, Gatherv.
func (p *Planner) gatherv(s *Schedule, own []byte, to parts, counts []int, k datatype.Kind, root int) {
	if p.m.Local(p.me, root) {
		p.gathervRoot(s, own, to, k, root)
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
			p.sendLocal(s, p.team.rank(0), tagGatherv, own)
		default:
			p.send(s, root, tagGatherv, own, k)
		}
		return
	}
	if counts != nil || p.team.size() == 1 {
		p.gathervMaster(s, own, p.lengths(s, n, counts), k, root)
		return
	}
	p.recvLengths(s, n, k, func(lengths []int) { p.gathervMaster(s, own, lengths, k, root) })
}

// gathervRoot is what the processes of the root's client do.
func (p *Planner) gathervRoot(s *Schedule, own []byte, to parts, k datatype.Kind, root int) {
	if p.me != root {
		if len(own) > 0 {
			p.sendLocal(s, root, tagGatherv, own)
		}
		return
	}
	s.copy(to.at(root), own)
	for i := range p.m.Count() {
		c := chosen{parts: to, ranks: p.m.Locals(i), planner: p, kind: k}
		if i == p.mine {
			continue
		}
		if total, _, _ := c.bytes(); total > 0 {
			p.recvChosen(s, tagGatherv, c, k)
		}
	}
	for r := range p.n {
		part := to.at(r)
		if r != root && len(part) > 0 && (p.m.Local(r, root) || !p.short(k, len(part)/k.Size())) {
			p.recv(s, r, tagGatherv, part, k)
		}
	}
}

// gathervMaster collects the short blocks of its client, whose lengths (in
// elements, by place) it knows now, and sends them on in one message.
func (p *Planner) gathervMaster(s *Schedule, own []byte, lengths []int, k datatype.Kind, root int) {
	total := p.shortBytes(lengths, k)
	if total > 0 {
		whole := s.scratch.get(total)
		rest := whole
		for i, n := range lengths {
			if n == 0 || !p.short(k, n) {
				continue
			}
			piece := rest[:n*k.Size()]
			rest = rest[len(piece):]
			if i == 0 {
				s.copy(piece, own)
			} else {
				p.recvLocal(s, p.team.rank(i), tagGatherv, piece)
			}
		}
		s.wait()
		p.send(s, root, tagGatherv, whole, k)
	}
	if len(own) > 0 && !p.short(k, len(own)/k.Size()) {
		p.send(s, root, tagGatherv, own, k)
	}
}

// sendLength tells the master how many bytes in external32 this process's block has.
func (p *Planner) sendLength(s *Schedule, n int) {
	b := s.scratch.get(8)
	putLength(b, n)
	p.sendLocal(s, p.team.rank(0), tagLengths, b)
}

// recvLengths receives at the master what sendLength sends, and goes on with
// them as elements by place. It is the last thing that is planned.
func (p *Planner) recvLengths(s *Schedule, own int, k datatype.Kind, then func([]int)) {
	size := p.team.size()
	b := s.scratch.get(8 * size)
	for i := 1; i < size; i++ {
		p.recvLocal(s, p.team.rank(i), tagLengths, b[8*i:8*i+8])
	}
	s.more = func() error {
		lengths := s.ints(size)
		lengths[0] = own
		external := uint64(datatype.External32.Size(k))
		for i := 1; i < size; i++ {
			n := length(b[8*i:])
			if n%external != 0 || n > uint64(maxInt) {
				return fmt.Errorf("coll: %w: rank %d has a block of %d bytes of %v", ErrCount, p.team.rank(i), n, k)
			}
			lengths[i] = int(n / external)
		}
		then(lengths)
		return nil
	}
}

const maxInt = int(^uint(0) >> 1)
