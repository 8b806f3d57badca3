package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Reduce combines everybody's send, element by element, into the root's recv.
// At the root a nil send means that its operand is in recv. recv matters at the
// root only. Operations that are not commutative combine in rank order.
func (p *Planner) Reduce(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op, root int) error {
	s.Reset()
	if err := p.checkRoot(root); err != nil {
		return err
	}
	send, recv = p.significant(send, recv, root)
	own, err := p.operand(send, recv, k, op, p.remote == nil && p.me == root)
	if err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interReduce(s, send, recv, k, op, root)
		s.finish()
		return err
	}
	p.reduce(s, own, recv, k, op, root)
	s.finish()
	return nil
}

// operand checks the buffers of a reduction and gives the own operand. result
// says that recv gets one.
func (p *Planner) operand(send, recv []byte, k datatype.Kind, op *datatype.Op, result bool) ([]byte, error) {
	if err := checkPair(send, recv, k); err != nil {
		return nil, err
	}
	if err := op.Check(k); err != nil {
		return nil, fmt.Errorf("coll: %w", err)
	}
	if !result {
		return send, nil
	}
	if send == nil {
		send = recv
	}
	if len(send) != len(recv) {
		return nil, fmt.Errorf("coll: %w: %d bytes to reduce into %d", ErrBuffer, len(send), len(recv))
	}
	return send, nil
}

// reduce combines into recv, which only the root has.
func (p *Planner) reduce(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	switch {
	case p.single():
		p.reduceTeam(s, own, recv, k, op, root)
	case op.Commutative() && !op.Whole() && p.laned(own, k):
		p.reduceLanes(s, own, recv, k, op, root)
	case op.Commutative():
		p.reduceClients(s, own, recv, k, op, root)
	case p.combines(op):
		p.reduceInOrder(s, own, recv, k, op, root)
	case p.me == root:
		a := p.accumulate(s, own, recv, k, op)
		a.descend(p.n, p.me, func(r int, into []byte) { p.recv(s, r, tagReduce, into, k) })
		s.copy(recv, a.cur)
	default:
		p.send(s, root, tagReduce, own, k)
	}
}

// descend combines the values of n members in their order, its own being that of
// member me.
//
// IMPI ch.4, Reduce: received and combined from the last rank to the first.
func (a *accumulator) descend(n, me int, recv func(i int, into []byte)) {
	own, overwrite := a.cur, a.mine
	operand := func(i int) []byte {
		if i == me {
			return own
		}
		b := a.buffer()
		recv(i, b)
		return b
	}
	next := operand(n - 1)
	a.s.wait()
	a.cur, a.mine = next, me != n-1 || overwrite
	if n > 1 {
		next = operand(n - 2)
		a.s.wait()
	}
	for i := n - 2; i >= 0; i-- {
		x := next
		if i > 0 {
			next = operand(i - 1)
		}
		if i == me && !overwrite {
			a.operand(x)
		} else {
			a.before(x)
		}
		a.s.wait()
	}
}

// reduceInOrder is the operation between clients of ours that is not commutative
// but has each client's ranks follow each other: first in each client, then over
// them, and to the root in the end.
func (p *Planner) reduceInOrder(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	a := p.accumulate(s, own, recv, k, op)
	p.reduceTree(&a, 0)
	m, holder := p.m.Count(), p.m.Number(root)
	switch {
	case !p.linear():
		holder = 0 // a tree keeps the order only if its root is the first
		if p.team.me == 0 {
			p.climb(&a)
		}
	case p.team.me == 0 && p.mine == holder:
		a.descend(m, holder, func(i int, into []byte) { p.recv(s, p.m.Rank(i), tagReduce, into, k) })
	case p.team.me == 0:
		p.send(s, p.m.Rank(holder), tagReduce, a.cur, k)
	}
	switch at := p.m.Rank(holder); {
	case p.me == root && at == root:
		s.copy(recv, a.cur)
	case p.me == root:
		s.wait() // own may be recv
		p.recv(s, at, tagReduce, recv, k)
	case p.me == at:
		p.send(s, root, tagReduce, a.cur, k)
	}
}

// climb combines the masters' values up a tree to master 0, in order.
func (p *Planner) climb(a *accumulator) {
	for mask := 1; mask < p.m.Count(); mask *= 2 {
		if p.mine&mask != 0 {
			p.send(a.s, p.m.Rank(p.mine-mask), tagReduce, a.cur, a.k)
			return
		}
		if p.mine+mask < p.m.Count() {
			x := a.buffer()
			p.recv(a.s, p.m.Rank(p.mine+mask), tagReduce, x, a.k)
			a.s.wait()
			a.after(x)
		}
	}
}

// reduceClients is the commutative operation between clients: each reduces to
// its delegate, and the delegates to the root.
func (p *Planner) reduceClients(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	from := p.delegate(p.mine, root)
	a := p.accumulate(s, own, recv, k, op)
	p.reduceTree(&a, p.m.Place(from))
	if p.me != from {
		return
	}
	p.up(&a, p.m.Number(root), func(i int) int { return p.delegate(i, root) })
	if p.me == root {
		s.copy(recv, a.cur)
	}
}

// up combines the accumulators of the ranks that stand for the clients at that of
// client number rn.
// IMPI ch.4, Reduce: what comes in is the first operand.
func (p *Planner) up(a *accumulator, rn int, stand func(number int) int) {
	switch {
	case !p.linear():
		p.upTree(a, rn, stand)
	case p.mine != rn:
		p.send(a.s, stand(rn), tagReduce, a.cur, a.k)
	default:
		a.fold(p.m.Count()-1, func(i int, into []byte) {
			if i >= rn {
				i++
			}
			p.recv(a.s, stand(i), tagReduce, into, a.k)
		})
	}
}

func (p *Planner) upTree(a *accumulator, rn int, stand func(number int) int) {
	m := p.m.Count()
	w := (p.mine - rn + m) % m
	for i := range dim(m) {
		if w>>i&1 != 0 {
			p.send(a.s, stand((w-1<<i+rn)%m), tagReduce, a.cur, a.k)
			return
		}
		if c := w + 1<<i; c < m {
			x := a.buffer()
			p.recv(a.s, stand((c+rn)%m), tagReduce, x, a.k)
			a.s.wait()
			a.before(x)
		}
	}
}

// reduceTeam is the operation inside one client.
func (p *Planner) reduceTeam(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	switch {
	case p.longReduction(own, k, op):
		p.reduceParts(s, own, recv, k, op, root)
	case op.Commutative() || root == 0:
		a := p.accumulate(s, own, recv, k, op)
		p.reduceTree(&a, root)
		if p.me == root {
			s.copy(recv, a.cur)
		}
	default: // a tree keeps rank order only if its root is rank 0
		a := p.accumulate(s, own, recv, k, op)
		p.reduceTree(&a, 0)
		if p.me == 0 {
			p.sendLocal(s, root, tagReduce, a.cur)
		} else if p.me == root {
			s.wait() // own may be recv
			p.recvLocal(s, 0, tagReduce, recv)
		}
	}
}

func (p *Planner) longReduction(own []byte, k datatype.Kind, op *datatype.Op) bool {
	limit := p.profile.Tuning.AllreduceLong
	if p.few() {
		limit = p.profile.Tuning.FewLong
	}
	return op.Commutative() && !op.Whole() && p.n > 2 && len(own) >= limit && len(own)/k.Size() >= p.n
}

// reduceTree combines the team's values up a tree to a place. Each subtree is of
// consecutive places counted from root, so that from root 0 the order is kept.
func (p *Planner) reduceTree(a *accumulator, root int) {
	n := p.team.size()
	if len(a.cur) == 0 || n == 1 {
		return
	}
	if p.few() && len(a.cur) < p.profile.Tuning.FewLong {
		p.reduceFew(a, root)
		return
	}
	v := (p.team.me - root + n) % n
	for mask := 1; mask < n; mask *= 2 {
		if v&mask != 0 {
			p.sendLocal(a.s, p.team.rank(v-mask+root), tagReduce, a.cur)
			return
		}
		if v+mask < n {
			x := a.buffer()
			p.recvLocal(a.s, p.team.rank(v+mask+root), tagReduce, x)
			a.s.wait()
			a.after(x)
		}
	}
}

// reduceParts gives each process a part of the vector to combine and gathers the
// parts at the root.
func (p *Planner) reduceParts(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	work := recv
	if p.me != root {
		work = s.scratch.get(len(own))
	}
	p.reduceRing(s, own, work, k, op)
	b := divided(work, k, p.n)
	if p.me != root {
		p.sendLocal(s, root, tagReduceScatter, b.at(p.me))
		return
	}
	for r := range p.n {
		if r != root {
			p.recvLocal(s, r, tagReduceScatter, b.at(r))
		}
	}
}

// reduceRing leaves in each process's part of work that part of the result. Each
// part travels once around the ring, so that all see the one order of operands.
// work may be own.
func (p *Planner) reduceRing(s *Schedule, own, work []byte, k datatype.Kind, op *datatype.Op) {
	mine, all := divided(own, k, p.n), divided(work, k, p.n)
	out := mine.at((p.me - 1 + p.n) % p.n)
	for i := 2; i <= p.n; i++ {
		part := (p.me - i + p.n) % p.n
		operand, result := mine.at(part), all.at(part)
		p.sendLocal(s, p.team.rank(p.me+1), tagReduceScatter, out)
		if same(own, work) {
			in := s.scratch.get(len(result))
			p.recvLocal(s, p.team.rank(p.me-1), tagReduceScatter, in)
			s.wait()
			s.reduce(op, in, result, k)
		} else {
			p.recvLocal(s, p.team.rank(p.me-1), tagReduceScatter, result)
			s.wait()
			s.reduce(op, operand, result, k)
		}
		out = result
	}
}
