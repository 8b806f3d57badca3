package coll

import (
	"math/bits"

	"github.com/openimpi/impi/core/datatype"
)

type allreductions struct{ reductions }

// Allreduce combines everybody's send, element by element, into everybody's recv. A nil send means
// that the operands are in recv. All get the same result to the last bit (MPI-4.1, 6.9.6).
func (p *Planner) Allreduce(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	o := allreductions{reductions{p.begin(s, k), op}}
	own, err := o.operand(send, recv, o.remote == nil)
	if err != nil {
		return err
	}
	if o.remote != nil {
		return o.done(o.interAllreduce(send, recv))
	}
	o.allreduce(own, recv)
	return o.done(nil)
}

func (p allreductions) allreduce(own, recv []byte) {
	switch {
	case p.ownAllreduce(own, recv):
	case p.op.Commutative() && !p.op.Whole() && p.striped(own):
		p.allreduceStripes(own, recv)
	case p.combines() && (p.isHosts && !p.single() || p.swapsValues()):
		a := p.accumulate(own, recv)
		p.reduceTree(&a, 0)
		p.wait() // own may be recv
		if p.team.me == 0 {
			p.allSites(&a, recv, p.m.Rank)
		}
		p.bcasting().bcastTeam(recv, 0)
	case !p.single():
		// IMPI ch.4, Allreduce: Reduce to rank 0, then Bcast from it.
		var result []byte
		if p.me == 0 {
			result = recv
		}
		p.reduce(own, result, 0)
		p.wait()
		p.bcasting().bcast(recv, 0)
	case p.betweenHosts != nil && p.inHosts(own, recv):
	case p.longReduction(own), p.longPair(own):
		p.reduceRing(own, recv)
		b := divided(recv, p.k, p.n)
		p.ring(tagAllreduce, &b, p.me)
	case p.few() && len(own) > 0 && len(own) < p.profile.Tuning.FlatAllreduceLong:
		var result []byte
		if p.me == 0 {
			result = recv
		}
		p.reduceTeam(own, result, 0)
		p.wait() // own may be recv
		p.bcasting().bcastFew(recv, 0)
	default:
		p.agree(own, recv)
	}
}

// longPair reports whether each of two processes combines a half of the vector. They send each
// other a half of the operands and then of the result, together as much as one of them has, and add
// up half as much.
func (p allreductions) longPair(own []byte) bool {
	return p.n == 2 && p.op.Commutative() && !p.op.Whole() && len(own) >= max(p.profile.Tuning.PairAllreduceLong, p.n*p.k.Size())
}

// agree is Allreduce inside one client. Each process combines all operands itself where all are
// sure to get the same bits; otherwise one combines and broadcasts the result.
func (p allreductions) agree(own, recv []byte) {
	if !p.scattered || exact(p.op, p.k) {
		p.allreduceDoubling(own, recv)
		return
	}
	var result []byte
	if p.me == 0 {
		result = recv
	}
	p.reduceTeam(own, result, 0)
	p.wait() // own may be recv
	p.bcasting().bcastTeam(recv, 0)
}

// inHosts is Allreduce inside one client in two levels, hosts and their processes. It reports
// false, and adds nothing, if that cannot be done.
func (p allreductions) inHosts(own, recv []byte) bool {
	in, ok := p.hostsOf()
	if ok = ok && len(own) > 0; ok {
		allreductions{in}.allreduce(own, recv)
	}
	return ok
}

// allreduceDoubling exchanges values at distances 1, 2, 4, … Both of a pair
// compute lower ∘ higher, which keeps rank order and gives both the same. Of
// processes beyond a power of two, the first few pair up beforehand.
func (p allreductions) allreduceDoubling(own, recv []byte) {
	a := p.accumulate(own, recv)
	if p.n == 1 || len(own) == 0 {
		p.copy(recv, own)
		return
	}
	power := 1 << (bits.Len(uint(p.n)) - 1)
	extra := p.n - power
	number := p.me - extra
	if p.me < 2*extra {
		if p.me%2 == 0 {
			p.sendLocal(p.me+1, tagAllreduce, own)
			p.wait()
			p.recvLocal(p.me+1, tagAllreduce, recv)
			return
		}
		x := a.buffer()
		p.recvLocal(p.me-1, tagAllreduce, x)
		p.wait()
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
		p.sendLocal(partner, tagAllreduce, a.cur)
		p.recvLocal(partner, tagAllreduce, x)
		p.wait()
		if partner < p.me {
			a.before(x)
		} else {
			a.strictlyAfter(x)
		}
	}
	if p.me < 2*extra {
		p.sendLocal(p.me-1, tagAllreduce, a.cur)
	}
	p.copy(recv, a.cur)
}
