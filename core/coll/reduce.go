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
	if p.me != root {
		recv = nil
	}
	own, err := p.operand(send, recv, k, op, p.me == root)
	if err != nil {
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
	case op.Commutative():
		p.reduceClients(s, own, recv, k, op, root)
	case p.me == root:
		p.reduceOrdered(s, own, recv, k, op)
	default:
		p.send(s, root, tagReduce, own, k)
	}
}

// reduceOrdered is the root's part of an operation that is not commutative
// between clients: everybody sends straight to it.
// IMPI ch.4, Reduce: received and combined from the last rank to the first.
func (p *Planner) reduceOrdered(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op) {
	a := p.accumulate(s, own, recv, k, op)
	operand := func(r int) []byte {
		if r == p.me {
			return own
		}
		b := a.buffer()
		p.recv(s, r, tagReduce, b, k)
		return b
	}
	next := operand(p.n - 1)
	s.wait()
	a.cur, a.mine = next, p.me != p.n-1
	if p.n > 1 {
		next = operand(p.n - 2)
		s.wait()
	}
	for r := p.n - 2; r >= 0; r-- {
		x := next
		if r > 0 {
			next = operand(r - 1)
		}
		if r == p.me {
			a.operand(x)
		} else {
			a.before(x)
		}
		s.wait()
	}
	s.copy(recv, a.cur)
}

// reduceClients is the commutative operation between clients: each reduces to
// its delegate, and the delegates to the root.
// IMPI ch.4, Reduce: what comes in is the first operand.
func (p *Planner) reduceClients(s *Schedule, own, recv []byte, k datatype.Kind, op *datatype.Op, root int) {
	from := p.delegate(p.mine, root)
	a := p.accumulate(s, own, recv, k, op)
	p.reduceTree(&a, p.m.Place(from))
	if p.me != from {
		return
	}
	m, rn := p.m.Count(), p.m.Number(root)
	switch {
	case !p.linear():
		p.reduceMasters(&a, root)
	case p.me != root:
		p.send(s, root, tagReduce, a.cur, k)
	default:
		a.fold(m-1, func(i int, into []byte) {
			if i >= rn {
				i++
			}
			p.recv(s, p.m.Rank(i), tagReduce, into, k)
		})
	}
	if p.me == root {
		s.copy(recv, a.cur)
	}
}

// reduceMasters is the tree between clients.
func (p *Planner) reduceMasters(a *accumulator, root int) {
	m, rn := p.m.Count(), p.m.Number(root)
	w := (p.mine - rn + m) % m
	for i := range dim(m) {
		if w>>i&1 != 0 {
			p.send(a.s, p.delegate((w-1<<i+rn)%m, root), tagReduce, a.cur, a.k)
			return
		}
		if c := w + 1<<i; c < m {
			x := a.buffer()
			p.recv(a.s, p.m.Rank((c+rn)%m), tagReduce, x, a.k)
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
	return op.Commutative() && p.n > 2 && len(own) >= p.profile.Tuning.AllreduceLong && len(own)/k.Size() >= p.n
}

// reduceTree combines the team's values up a tree to a place. Each subtree is of
// consecutive places counted from root, so that from root 0 the order is kept.
func (p *Planner) reduceTree(a *accumulator, root int) {
	n := p.team.size()
	if len(a.cur) == 0 || n == 1 {
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
