package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// interAllgather collects the blocks of each group at its first member. These
// exchange them, and each gives the other group's to its own.
func (p *Planner) interAllgather(s *Schedule, send, recv []byte, k datatype.Kind) error {
	if _, err := equalBlocks("the receive buffer", recv, k, p.remote.n); err != nil {
		return err
	}
	p.swap(s, tagInterGather, p.collect(s, send, k), recv, k)
	p.bcast(s, recv, k, 0)
	return nil
}

// interAllgatherv has everybody send to the other group's first member, who
// knows the counts and gives all blocks to its own group.
func (p *Planner) interAllgatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind) error {
	to, err := s.layout("the receive buffer", recv, counts, displs, k, p.remote.n)
	if err != nil {
		return err
	}
	if len(send) > 0 {
		p.cast(s, 0, tagInterGather, send, k)
	}
	if p.me == 0 {
		for r := range p.remote.n {
			if part := to.at(r); len(part) > 0 {
				p.catch(s, r, tagInterGather, part, k)
			}
		}
	}
	s.wait()
	p.spread(s, to, p.remote.n, k, p.me == 0, p.bcast)
	return nil
}

// interExchange sends and receives each part directly, empty ones too. The
// groups take turns as if both had as many members as the larger.
func (p *Planner) interExchange(s *Schedule, send, recv func(s *Schedule, rank int)) {
	n := max(p.n, p.remote.n)
	for i := range n {
		dest, source := (p.me+i)%n, (p.me-i+n)%n
		if source < p.remote.n {
			recv(s, source)
		}
		if dest < p.remote.n {
			send(s, dest)
		}
		if i%atOnce == atOnce-1 {
			s.wait()
		}
	}
}

func (p *Planner) interParts(s *Schedule, from, to *parts, k datatype.Kind) {
	p.interExchange(s,
		func(s *Schedule, r int) { p.cast(s, r, tagInterAlltoall, from.at(r), k) },
		func(s *Schedule, r int) { p.catch(s, r, tagInterAlltoall, to.at(r), k) })
}

func (p *Planner) interAlltoall(s *Schedule, send, recv []byte, k datatype.Kind) error {
	out, err := equalBlocks("the send buffer", send, k, p.remote.n)
	if err != nil {
		return err
	}
	in, err := equalBlocks("the receive buffer", recv, k, p.remote.n)
	if err != nil {
		return err
	}
	from, to := even(send, out), even(recv, in)
	p.interParts(s, &from, &to, k)
	return nil
}

// interReduce combines one group's operands at its first member, who sends the
// result to the root in the other group.
func (p *Planner) interReduce(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op, root int) error {
	switch {
	case root == ProcNull:
		return nil
	case root == Root:
		p.catch(s, 0, tagInterReduce, recv, k)
		return nil
	}
	result := p.combine(s, send, k, op)
	if p.me == 0 {
		p.cast(s, root, tagInterReduce, result, k)
	}
	return nil
}

// combine reduces the own group's operands to its first member.
func (p *Planner) combine(s *Schedule, own []byte, k datatype.Kind, op *datatype.Op) (result []byte) {
	if p.me == 0 {
		result = s.scratch.get(len(own))
	}
	p.reduce(s, own, result, k, op, 0)
	s.wait()
	return result
}

// interAllreduce gives each group the combination of the other's operands.
func (p *Planner) interAllreduce(s *Schedule, send, recv []byte, k datatype.Kind, op *datatype.Op) error {
	if len(send) != len(recv) {
		return fmt.Errorf("coll: %w: %d bytes to reduce into %d", ErrBuffer, len(send), len(recv))
	}
	p.swap(s, tagInterReduce, p.combine(s, send, k, op), recv, k)
	p.bcast(s, recv, k, 0)
	return nil
}

// interReduceScatter is interAllreduce with the result divided among the group:
// b's counts say how.
func (p *Planner) interReduceScatter(s *Schedule, b parts, result []byte, k datatype.Kind, op *datatype.Op) {
	var theirs []byte
	if p.me == 0 {
		theirs = s.scratch.get(len(b.buf))
	}
	p.swap(s, tagInterReduce, p.combine(s, b.buf, k, op), theirs, k)
	b.buf = theirs
	p.scatterv(s, b, result, b.counts, k, 0)
}
