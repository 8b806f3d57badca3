package coll

import (
	"fmt"
)

// interAllgather collects the blocks of each group at its first member. The two first members
// exchange them, and each broadcasts the other group's blocks in its own.
func (p allgathers) interAllgather(send, recv []byte) error {
	if _, err := equalBlocks("the receive buffer", recv, p.k, p.remote.n); err != nil {
		return err
	}
	p.swap(tagInterGather, p.gathering().collect(send), recv)
	p.bcasting().bcast(recv, 0)
	return nil
}

// interAllgatherv has everybody send to the other group's first member, who knows the counts and
// broadcasts all blocks in its own group.
func (p allgathers) interAllgatherv(send, recv []byte, counts, displs []int) error {
	to, err := p.layout("the receive buffer", recv, counts, displs, p.remote.n)
	if err != nil {
		return err
	}
	if len(send) > 0 {
		p.cast(0, tagInterGather, send)
	}
	if p.me == 0 {
		for r := range p.remote.n {
			if part := to.at(r); len(part) > 0 {
				p.catch(r, tagInterGather, part)
			}
		}
	}
	p.wait()
	p.bcasting().spread(to, p.remote.n, p.me == 0, false)
	return nil
}

// interExchange sends and receives each part directly, empty ones too. Both groups go through as
// many turns as the larger one has members, so that partners meet in the same turn.
func (p plan) interExchange(send, recv func(rank int)) {
	n := max(p.n, p.remote.n)
	for i := range n {
		dest, source := (p.me+i)%n, (p.me-i+n)%n
		if source < p.remote.n {
			recv(source)
		}
		if dest < p.remote.n {
			send(dest)
		}
		if i%atOnce == atOnce-1 {
			p.wait()
		}
	}
}

func (p plan) interParts(from, to *parts) {
	p.interExchange(
		func(r int) { p.cast(r, tagInterAlltoall, from.at(r)) },
		func(r int) { p.catch(r, tagInterAlltoall, to.at(r)) })
}

func (p exchanges) interAlltoall(send, recv []byte) error {
	out, err := equalBlocks("the send buffer", send, p.k, p.remote.n)
	if err != nil {
		return err
	}
	in, err := equalBlocks("the receive buffer", recv, p.k, p.remote.n)
	if err != nil {
		return err
	}
	from, to := even(send, out), even(recv, in)
	p.interParts(&from, &to)
	return nil
}

// interReduce combines one group's operands at its first member, who sends the
// result to the root in the other group.
func (p reductions) interReduce(send, recv []byte, root int) error {
	switch {
	case root == ProcNull:
		return nil
	case root == Root:
		p.catch(0, tagInterReduce, recv)
		return nil
	}
	result := p.combine(send)
	if p.me == 0 {
		p.cast(root, tagInterReduce, result)
	}
	return nil
}

// combine reduces the own group's operands to its first member.
func (p reductions) combine(own []byte) (result []byte) {
	if p.me == 0 {
		result = p.scratch.get(len(own))
	}
	p.reduce(own, result, 0)
	p.wait()
	return result
}

func (p allreductions) interAllreduce(send, recv []byte) error {
	if len(send) != len(recv) {
		return fmt.Errorf("coll: %w: %d bytes to reduce into %d", ErrBuffer, len(send), len(recv))
	}
	p.swap(tagInterReduce, p.combine(send), recv)
	p.bcasting().bcast(recv, 0)
	return nil
}

// interReduceScatter is interAllreduce with the result divided among the group:
// b's counts say how.
func (p allreductions) interReduceScatter(b parts, result []byte) {
	var theirs []byte
	if p.me == 0 {
		theirs = p.scratch.get(len(b.buf))
	}
	p.swap(tagInterReduce, p.combine(b.buf), theirs)
	b.buf = theirs
	p.scatteringv().variedBlocks(result, b, b.counts, 0)
}
