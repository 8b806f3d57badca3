package coll

import (
	"math/bits"

	"github.com/openimpi/impi/core/datatype"
)

// Allreduce combines everybody's send, element by element, into everybody's
// recv. A nil send means that the operands are in recv. All get the same result
// to the last bit.
func (p *Planner) Allreduce(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	s.Reset()
	own, err := p.operand(send, recv, k, op, p.remote == nil)
	if err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interAllreduce(s, send, recv, k, op)
		s.finish()
		return err
	}
	p.allreduce(s, own, recv, k, op)
	s.finish()
	return nil
}

func (p *Planner) allreduce(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op) {
	switch {
	case op.Commutative() && !op.Whole() && p.laned(own, k):
		p.allreduceLanes(s, own, recv, k, op)
	case p.sites.ours && p.m.Count() == 2 && p.combines(op) && exact(op, k):
		a := p.accumulate(s, own, recv, k, op)
		p.reduceTree(&a, 0)
		s.wait() // own may be recv
		if p.team.me == 0 {
			p.allSites(&a, recv, p.m.Rank)
		}
		p.bcastTeam(s, recv, k, 0)
	case !p.single():
		// IMPI ch.4, Allreduce: Reduce to rank 0, then Bcast from it.
		var result []byte
		if p.me == 0 {
			result = recv
		}
		p.reduce(s, own, result, k, op, 0)
		s.wait()
		p.bcast(s, recv, k, 0)
	case p.longReduction(own, k, op):
		p.reduceRing(s, own, recv, k, op)
		b := divided(recv, k, p.n)
		p.ring(s, tagAllreduce, &b, p.me)
	case p.few() && len(own) > 0 && len(own) < p.profile.Tuning.FewLong:
		var result []byte
		if p.me == 0 {
			result = recv
		}
		p.reduceTeam(s, own, result, k, op, 0)
		s.wait() // own may be recv
		p.bcastFew(s, recv, 0)
	default:
		p.allreduceDoubling(s, own, recv, k, op)
	}
}

// allreduceDoubling exchanges values at distances 1, 2, 4, … Both of a pair
// compute lower ∘ higher, which keeps rank order and gives both the same. Of
// processes beyond a power of two, the first few pair up beforehand.
func (p *Planner) allreduceDoubling(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op) {
	a := p.accumulate(s, own, recv, k, op)
	if p.n == 1 || len(own) == 0 {
		s.copy(recv, own)
		return
	}
	power := 1 << (bits.Len(uint(p.n)) - 1)
	extra := p.n - power
	number := p.me - extra
	if p.me < 2*extra {
		if p.me%2 == 0 {
			p.sendLocal(s, p.me+1, tagAllreduce, own)
			s.wait()
			p.recvLocal(s, p.me+1, tagAllreduce, recv)
			return
		}
		x := a.buffer()
		p.recvLocal(s, p.me-1, tagAllreduce, x)
		s.wait()
		a.before(x)
		number = p.me / 2
	}
	for mask := 1; mask < power; mask *= 2 {
		partner := number ^ mask
		if partner < extra {
			partner = 2*partner + 1
		} else {
			partner += extra
		}
		x := a.buffer()
		p.sendLocal(s, partner, tagAllreduce, a.cur)
		p.recvLocal(s, partner, tagAllreduce, x)
		s.wait()
		if partner < p.me {
			a.before(x)
		} else {
			a.strictlyAfter(x)
		}
	}
	if p.me < 2*extra {
		p.sendLocal(s, p.me-1, tagAllreduce, a.cur)
	}
	s.copy(recv, a.cur)
}
