package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// ReduceScatter combines everybody's send, element by element, and stores in the recv of rank r the
// next counts[r] elements of the result (MPI-4.1, 6.10.2). All members pass the same counts. With a
// nil send the operand is in recv, which the result overwrites from its start.
func (p *Planner) ReduceScatter(s *Schedule, send, recv []byte, counts []int, k datatype.Kind, op *datatype.Op) error {
	o := allreductions{reductions{p.begin(s, k), op}}
	own, err := o.operand(send, recv, false)
	if err != nil {
		return err
	}
	if send == nil && o.remote == nil {
		own = recv
	}
	b, err := o.layout("the send buffer", own, counts, nil, o.n)
	if err != nil {
		return err
	}
	total, _ := b.packed(o.n)
	result := counts[o.me] * k.Size()
	if total != len(own) || len(recv) < result || (send != nil || o.remote != nil) && len(recv) != result {
		return fmt.Errorf("coll: %w: %d bytes to reduce and %d for the result, the counts say %d and %d",
			ErrBuffer, len(own), len(recv), total, result)
	}
	b.buf = own
	o.reduceScatter(b, recv[:result:result])
	return o.done(nil)
}

// ReduceScatterBlock is ReduceScatter with equal blocks, as long as recv (MPI-4.1, 6.10.1). With a
// nil send recv has the operand, which is all blocks.
func (p *Planner) ReduceScatterBlock(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	o := allreductions{reductions{p.begin(s, k), op}}
	own, err := o.operand(send, recv, false)
	if err != nil {
		return err
	}
	block := len(recv)
	if send == nil && o.remote == nil {
		own, block = recv, len(recv)/o.n
	}
	if block*o.n != len(own) || block%k.Size() != 0 {
		return fmt.Errorf("coll: %w: %d bytes to reduce, blocks of %d bytes for %d members", ErrBuffer, len(own), block, o.n)
	}
	counts := o.ints(o.n)
	for i := range counts {
		counts[i] = block / k.Size()
	}
	b, err := o.layout("the send buffer", own, counts, nil, o.n)
	if err != nil {
		return err
	}
	o.reduceScatter(b, recv[:block:block])
	return o.done(nil)
}

func (p allreductions) reduceScatter(b parts, result []byte) {
	own := b.buf
	in, hosts := p.hostsOf()
	switch {
	case p.remote != nil:
		p.interReduceScatter(b, result)
	case p.sites.ours && p.combines():
		p.reduceScatterWide(b, result)
	case !p.single():
		// IMPI has no tag for Reduce_scatter: it is Reduce to rank 0 (IMPI ch.4, Reduce), and
		// Scatterv from it.
		var all []byte
		if p.me == 0 {
			all = p.scratch.get(len(own))
		}
		p.reduce(own, all, 0)
		p.wait()
		from := b
		from.buf = all
		p.scatteringv().variedBlocks(result, from, b.counts, 0)
	case hosts:
		allreductions{in}.reduceScatterWide(b, result)
	case p.op.Commutative() && len(own) >= p.profile.Tuning.ReduceScatterLong:
		p.reduceScatterDirect(b, result)
	default:
		all := p.scratch.get(len(own))
		p.agree(own, all)
		p.wait()
		start, end := b.where(p.me)
		p.copy(result, all[start:end])
	}
}

// reduceScatterDirect sends each part to the process that gets its result, which combines what
// comes.
func (p allreductions) reduceScatterDirect(b parts, result []byte) {
	mine := b.at(p.me)
	var into []byte
	if !Overlap(b.buf, result) {
		into = result
	}
	a := p.accumulate(mine, into)
	send := func(i int) {
		if part := b.at((p.me + i) % p.n); len(part) > 0 {
			p.sendLocal(p.team.rank(p.me+i), tagReduceScatter, part)
		}
	}
	for i := 1; i < p.n; i++ {
		send(i)
		if len(mine) == 0 {
			continue
		}
		x := a.buffer()
		p.recvLocal(p.team.rank(p.me-i), tagReduceScatter, x)
		p.wait()
		a.after(x) // the first operand is used in place, without a copy to mine
	}
	p.wait()
	p.copy(result, a.cur)
}
