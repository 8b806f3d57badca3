package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

type reductions struct {
	plan
	op *datatype.Op
}

// Reduce combines everybody's send, element by element, into the root's recv. At the root a nil
// send means that its operand is in recv. recv matters at the root only (MPI-4.1, 6.9.1).
// Operations that are not commutative combine in rank order.
func (p *Planner) Reduce(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op, root int) error {
	o := reductions{p.begin(s, k), op}
	if err := o.checkRoot(root); err != nil {
		return err
	}
	send, recv = o.significant(send, recv, root)
	own, err := o.operand(send, recv, o.remote == nil && o.me == root)
	if err != nil {
		return err
	}
	if o.remote != nil {
		return o.done(o.interReduce(send, recv, root))
	}
	o.reduce(own, recv, root)
	return o.done(nil)
}

// operand checks the buffers of a reduction and returns the own operand. result says that this
// process gets a result, in recv.
func (p reductions) operand(send, recv []byte, result bool) ([]byte, error) {
	if err := checkPair(send, recv, p.k); err != nil {
		return nil, err
	}
	if err := p.op.Check(p.k); err != nil {
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

// reduce plans the reduction. Only the root has recv.
func (p reductions) reduce(own, recv []byte, root int) {
	switch {
	case p.single():
		p.reduceTeam(own, recv, root)
	case p.op.Commutative() && !p.op.Whole() && p.striped(own):
		p.reduceStripes(own, recv, root)
	case p.op.Commutative():
		p.reduceClients(own, recv, root)
	case p.combines():
		p.reduceInOrder(own, recv, root)
	case p.me == root:
		a := p.accumulate(own, recv)
		a.descend(p.n, p.me, func(r int, into []byte) { p.recv(r, tagReduce, into) })
		p.copy(recv, a.cur)
	default:
		p.send(root, tagReduce, own)
	}
}

// descend combines the values of n members in their order; this process is member me.
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
	a.wait()
	a.cur, a.mine = next, me != n-1 || overwrite
	if n > 1 {
		next = operand(n - 2)
		a.wait()
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
		a.wait()
	}
}

// reduceInOrder is Reduce for an operation that is not commutative, between clients that all run
// this library and whose ranks follow each other: first inside each client, then over the clients,
// and last the result goes to the root.
func (p reductions) reduceInOrder(own, recv []byte, root int) {
	a := p.accumulate(own, recv)
	holder := p.upInOrder(&a, p.m.Number(root))
	switch at := p.m.Rank(holder); {
	case p.me == root && at == root:
		p.copy(recv, a.cur)
	case p.me == root:
		p.wait() // recv may be own
		p.recv(at, tagReduce, recv)
	case p.me == at:
		p.send(root, tagReduce, a.cur)
	}
}

// upInOrder combines in each client and then in order at the master of the number that it returns:
// holder, unless the masters form a tree.
func (p reductions) upInOrder(a *accumulator, holder int) int {
	p.reduceTree(a, 0)
	switch {
	case !p.linear():
		holder = 0 // a tree keeps rank order only if its root is rank 0
		if p.team.me == 0 {
			p.climb(a)
		}
	case p.team.me == 0 && p.mine == holder:
		a.descend(p.m.Count(), holder, func(i int, into []byte) { p.recv(p.m.Rank(i), tagReduce, into) })
	case p.team.me == 0:
		p.send(p.m.Rank(holder), tagReduce, a.cur)
	}
	return holder
}

// climb combines the masters' values up a tree to master 0, in rank order.
func (p reductions) climb(a *accumulator) {
	for mask := 1; mask < p.m.Count(); mask *= 2 {
		if p.mine&mask != 0 {
			p.send(p.m.Rank(p.mine-mask), tagReduce, a.cur)
			return
		}
		if p.mine+mask < p.m.Count() {
			x := a.buffer()
			p.recv(p.m.Rank(p.mine+mask), tagReduce, x)
			a.wait()
			a.after(x)
		}
	}
}

// reduceClients is the commutative operation between clients: each client reduces to its delegate,
// and the delegates to the root.
func (p reductions) reduceClients(own, recv []byte, root int) {
	a := p.accumulate(own, recv)
	p.upTo(&a, root)
	if p.me == root {
		p.copy(recv, a.cur)
	}
}

// upTo combines in each client and then, over the clients' delegates, at the root.
func (p reductions) upTo(a *accumulator, root int) {
	from := p.delegate(p.mine, root)
	p.reduceTree(a, p.m.LocalIndex(from))
	if p.me == from {
		p.up(a, p.m.Number(root), func(i int) int { return p.delegate(i, root) })
	}
}

// up combines the accumulators of the ranks that stand for the clients at that of
// client number rn.
// IMPI ch.4, Reduce: what comes in is the first operand.
func (p reductions) up(a *accumulator, rn int, stand func(number int) int) {
	switch {
	case !p.linear():
		p.upTree(a, rn, stand)
	case p.mine != rn:
		p.send(stand(rn), tagReduce, a.cur)
	default:
		a.fold(p.m.Count()-1, func(i int, into []byte) {
			if i >= rn {
				i++
			}
			p.recv(stand(i), tagReduce, into)
		})
	}
}

func (p reductions) upTree(a *accumulator, rn int, stand func(number int) int) {
	m := p.m.Count()
	w := (p.mine - rn + m) % m
	for i := range dim(m) {
		if w>>i&1 != 0 {
			p.send(stand((w-1<<i+rn)%m), tagReduce, a.cur)
			return
		}
		if c := w + 1<<i; c < m {
			x := a.buffer()
			p.recv(stand((c+rn)%m), tagReduce, x)
			a.wait()
			a.before(x)
		}
	}
}

func (p reductions) reduceTeam(own, recv []byte, root int) {
	if len(own) > 0 && p.own(PhaseReduce, p.op) {
		a := p.accumulate(own, recv)
		p.reduceTree(&a, root)
		if p.me == root {
			p.copy(recv, a.cur)
		}
		return
	}
	if in, ok := p.hostsOf(); ok && len(own) > 0 {
		in.reduce(own, recv, root)
		return
	}
	switch {
	case p.longReduction(own):
		p.reduceParts(own, recv, root)
	case p.op.Commutative() || root == 0:
		a := p.accumulate(own, recv)
		p.reduceTree(&a, root)
		if p.me == root {
			p.copy(recv, a.cur)
		}
	default: // a tree keeps rank order only if its root is rank 0
		a := p.accumulate(own, recv)
		p.reduceTree(&a, 0)
		if p.me == 0 {
			p.sendLocal(root, tagReduce, a.cur)
		} else if p.me == root {
			p.wait() // recv may be own
			p.recvLocal(0, tagReduce, recv)
		}
	}
}

func (p reductions) longReduction(own []byte) bool {
	limit := p.profile.Tuning.AllreduceLong
	if p.few() {
		limit = p.profile.Tuning.FlatAllreduceLong
	}
	return p.op.Commutative() && !p.op.Whole() && p.n > 2 && len(own) >= limit && len(own)/p.k.Size() >= p.n
}

// reduceTree combines the team's values up a tree at the process in place root. Each subtree has
// consecutive places, counted from root, so that rank order is kept if root is 0.
func (p reductions) reduceTree(a *accumulator, root int) {
	n := p.team.size()
	if len(a.cur) == 0 || n == 1 {
		return
	}
	if p.ownReduce(a, root) {
		return
	}
	if in, ok := p.hostsOf(); ok {
		if p.op.Commutative() {
			in.upTo(a, root)
		} else {
			in.upInOrder(a, 0)
		}
		return
	}
	if p.few() && len(a.cur) < p.profile.Tuning.FlatAllreduceLong {
		p.reduceFew(a, root)
		return
	}
	v := (p.team.me - root + n) % n
	for mask := 1; mask < n; mask *= 2 {
		if v&mask != 0 {
			p.sendLocal(p.team.rank(v-mask+root), tagReduce, a.cur)
			return
		}
		if v+mask < n {
			x := a.buffer()
			p.recvLocal(p.team.rank(v+mask+root), tagReduce, x)
			a.wait()
			a.after(x)
		}
	}
}

// reduceParts gives each process a part of the vector to combine and gathers the
// parts at the root.
func (p reductions) reduceParts(own, recv []byte, root int) {
	work := recv
	if p.me != root {
		work = p.scratch.get(len(own))
	}
	p.reduceRing(own, work)
	b := divided(work, p.k, p.n)
	if p.me != root {
		p.sendLocal(root, tagReduceScatter, b.at(p.me))
		return
	}
	for r := range p.n {
		if r != root {
			p.recvLocal(r, tagReduceScatter, b.at(r))
		}
	}
}

// reduceRing leaves in each process's part of work that part of the result. Each part travels once
// around the ring, so its operands are combined in one order for all. work may be own.
func (p reductions) reduceRing(own, work []byte) {
	mine, all := divided(own, p.k, p.n), divided(work, p.k, p.n)
	out := mine.at((p.me - 1 + p.n) % p.n)
	for i := 2; i <= p.n; i++ {
		part := (p.me - i + p.n) % p.n
		operand, result := mine.at(part), all.at(part)
		p.sendLocal(p.team.rank(p.me+1), tagReduceScatter, out)
		if same(own, work) {
			in := p.scratch.get(len(result))
			p.recvLocal(p.team.rank(p.me-1), tagReduceScatter, in)
			p.wait()
			p.apply(in, result)
		} else {
			p.recvLocal(p.team.rank(p.me-1), tagReduceScatter, result)
			p.wait()
			p.apply(operand, result)
		}
		out = result
	}
}
