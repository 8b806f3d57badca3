package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// ReduceScatter combines everybody's send, element by element, and leaves with
// rank r the next counts[r] elements of the result, in its recv. Everybody gives
// the same counts. With a nil send the operand is in recv, which the result
// overwrites from its start.
func (p *Planner) ReduceScatter(s *Schedule, send, recv []byte, counts []int, k datatype.Kind, op *datatype.Op) error {
	s.Reset()
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if err := op.Check(k); err != nil {
		return fmt.Errorf("coll: %w", err)
	}
	own := send
	if send == nil && p.remote == nil {
		own = recv
	}
	b, err := s.layout("the send buffer", own, counts, nil, k, p.n)
	if err != nil {
		return err
	}
	total, _ := b.packed(p.n)
	result := counts[p.me] * k.Size()
	if total != len(own) || len(recv) < result || (send != nil || p.remote != nil) && len(recv) != result {
		return fmt.Errorf("coll: %w: %d bytes to reduce and %d for the result, the counts say %d and %d",
			ErrBuffer, len(own), len(recv), total, result)
	}
	b.buf = own
	p.reduceScatter(s, b, recv[:result:result], k, op)
	s.finish()
	return nil
}

// ReduceScatterBlock is ReduceScatter with equal blocks, as long as recv; with a
// nil send recv has all of them.
func (p *Planner) ReduceScatterBlock(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	s.Reset()
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if err := op.Check(k); err != nil {
		return fmt.Errorf("coll: %w", err)
	}
	own, block := send, len(recv)
	if send == nil && p.remote == nil {
		own, block = recv, len(recv)/p.n
	}
	if block*p.n != len(own) || block%k.Size() != 0 {
		return fmt.Errorf("coll: %w: %d bytes to reduce, blocks of %d bytes for %d members", ErrBuffer, len(own), block, p.n)
	}
	counts := s.ints(p.n)
	for i := range counts {
		counts[i] = block / k.Size()
	}
	b, err := s.layout("the send buffer", own, counts, nil, k, p.n)
	if err != nil {
		return err
	}
	p.reduceScatter(s, b, recv[:block:block], k, op)
	s.finish()
	return nil
}

func (p *Planner) reduceScatter(s *Schedule, b parts, result []byte, k datatype.Kind, op *datatype.Op) {
	own := b.buf
	switch {
	case p.remote != nil:
		p.interReduceScatter(s, b, result, k, op)
	case p.sites.ours && p.combines(op):
		p.reduceScatterWide(s, b, result, k, op)
	case !p.single():
		// IMPI has no messages of Reduce_scatter: it is Reduce to rank 0 and Scatterv.
		var all []byte
		if p.me == 0 {
			all = s.scratch.get(len(own))
		}
		p.reduce(s, own, all, k, op, 0)
		s.wait()
		from := b
		from.buf = all
		p.scatterv(s, from, result, b.counts, k, 0)
	case op.Commutative() && len(own) >= p.profile.Tuning.ReduceScatterLong:
		p.reduceScatterDirect(s, b, result, k, op)
	default:
		all := s.scratch.get(len(own))
		p.allreduceDoubling(s, own, all, k, op)
		s.wait()
		start, end := b.where(p.me)
		s.copy(result, all[start:end])
	}
}

// reduceScatterDirect sends each part to its owner, who combines what comes.
func (p *Planner) reduceScatterDirect(s *Schedule, b parts, result []byte, k datatype.Kind, op *datatype.Op) {
	mine := b.at(p.me)
	var into []byte
	if !Overlap(b.buf, result) {
		into = result
	}
	a := p.accumulate(s, mine, into, k, op)
	send := func(i int) {
		if part := b.at((p.me + i) % p.n); len(part) > 0 {
			p.sendLocal(s, p.team.rank(p.me+i), tagReduceScatter, part)
		}
	}
	for i := 1; i < p.n; i++ {
		send(i)
		if len(mine) == 0 {
			continue
		}
		x := a.buffer()
		p.recvLocal(s, p.team.rank(p.me-i), tagReduceScatter, x)
		s.wait()
		a.before(x)
	}
	s.wait()
	s.copy(result, a.cur)
}
