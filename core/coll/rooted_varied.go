package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Gatherv is Gather of blocks of different lengths (MPI-4.1, 6.5): the root puts counts[r] elements
// of rank r at displs[r] of recv, one after the other if displs is nil. recv, counts and displs
// matter at the root only and must not change before the schedule has been executed.
func (p *Planner) Gatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind, root int) error {
	return p.begin(s, k).gatheringv().varied(send, recv, counts, displs, root)
}

// Scatterv is Scatter of blocks of different lengths (MPI-4.1, 6.6): counts[r] elements from
// displs[r] of the root's send go to rank r, whose recv has exactly that length. Without displs the
// blocks follow each other. send, counts and displs matter at the root only and must not change
// before the schedule has been executed.
func (p *Planner) Scatterv(s *Schedule, send []byte, counts, displs []int, recv []byte, k datatype.Kind, root int) error {
	return p.begin(s, k).scatteringv().varied(recv, send, counts, displs, root)
}

func (p rooted) varied(part, whole []byte, counts, displs []int, root int) error {
	part, whole, err := p.check(part, whole, root)
	if err != nil {
		return err
	}
	partName, wholeName := p.names()
	if p.remote != nil {
		return p.done(p.variedBetween(wholeName, part, whole, counts, displs, root))
	}
	var all parts
	if p.me == root {
		if all, err = p.layout(wholeName, whole, counts, displs, p.n); err != nil {
			return err
		}
		if part, err = p.ownPart(partName, part, &all); err != nil {
			return err
		}
	}
	p.variedBlocks(part, all, nil, root)
	return p.done(nil)
}

// variedBlocks decides for each block by its own length: short ones go by way of the master, long
// ones directly, and empty ones not at all. Of two messages between a master and the root, the one
// with its client's short blocks is first. counts is nil if only the root knows them all.
//
// The project's profile of IMPI ch.4, Gatherv and Scatterv.
func (p rooted) variedBlocks(own []byte, all parts, counts []int, root int) {
	if in, ok := p.inside(); ok && p.single() {
		if p.plan = in; counts == nil {
			p.plan = in.of(datatype.Byte) // a process without elements may not know the kind
		}
		p.variedBlocks(own, all, counts, root)
		return
	}
	if p.m.Local(p.me, root) {
		p.variedRoot(own, all, root)
		return
	}
	n := len(own) / p.k.Size()
	if p.team.me > 0 {
		if counts == nil {
			p.sendLength(n * datatype.External32.Size(p.k))
		}
		switch {
		case n == 0:
		case p.short(n):
			p.up(p.team.rank(0), own)
		default:
			p.up(root, own)
		}
		return
	}
	if counts != nil || p.team.size() == 1 {
		p.variedMaster(own, p.lengths(n, counts), root)
		return
	}
	p.recvLengths(n, func(lengths []int) { p.variedMaster(own, lengths, root) })
}

func (p rooted) variedRoot(own []byte, all parts, root int) {
	if p.me != root {
		if len(own) > 0 {
			p.up(root, own)
		}
		return
	}
	p.keep(own, all.at(root))
	for i := range p.m.Count() {
		c := chosen{parts: all, ranks: p.m.Locals(i), short: true, plan: p.plan}
		if i == p.mine {
			continue
		}
		if c.any() {
			p.bundle(c)
		}
	}
	for r := range p.n {
		part := all.at(r)
		if r != root && len(part) > 0 && (p.m.Local(r, root) || !p.short(len(part)/p.k.Size())) {
			p.down(r, part)
		}
	}
}

// variedMaster plans, at a master that knows the lengths of its client's blocks (in elements, by
// place), one message with all short ones between itself and the root.
func (p rooted) variedMaster(own []byte, lengths []int, root int) {
	total := 0
	for _, n := range lengths {
		if p.short(n) {
			total += n * p.k.Size()
		}
	}
	bundle := p.scratch.get(total)
	if p.scatter {
		p.variedUp(own, bundle, root)
		p.wait()
	}
	rest := bundle
	for i, n := range lengths {
		if n == 0 || !p.short(n) {
			continue
		}
		piece := rest[:n*p.k.Size()]
		rest = rest[len(piece):]
		if i == 0 {
			p.keep(own, piece)
		} else {
			p.down(p.team.rank(i), piece)
		}
	}
	if !p.scatter {
		p.wait()
		p.variedUp(own, bundle, root)
	}
}

// variedUp moves a client's short blocks, and its master's own if that is long.
func (p rooted) variedUp(own, bundle []byte, root int) {
	if len(bundle) > 0 {
		p.up(root, bundle)
	}
	if len(own) > 0 && !p.short(len(own)/p.k.Size()) {
		p.up(root, own)
	}
}

// lengths returns the lengths of the team's blocks by place, in elements, if they are known before
// any message: from the counts of all ranks, or because the team has one process.
func (p rooted) lengths(own int, counts []int) []int {
	lengths := p.ints(p.team.size())
	lengths[0] = own
	if counts != nil {
		for i := range lengths {
			lengths[i] = counts[p.team.rank(i)]
		}
	}
	return lengths
}

// sendLength tells the master the length of this process's block, in bytes of external32, since
// only the client's own processes know it.
func (p rooted) sendLength(n int) {
	b := p.scratch.get(8)
	putLength(b, n)
	p.sendLocal(p.team.rank(0), tagLengths, b)
}

// recvLengths receives at the master what sendLength sends, and calls then with the lengths in
// elements, by place, to plan the rest. Nothing may be planned between recvLengths and that call.
func (p rooted) recvLengths(own int, then func([]int)) {
	size := p.team.size()
	b := p.scratch.get(8 * size)
	for i := 1; i < size; i++ {
		p.recvLocal(p.team.rank(i), tagLengths, b[8*i:8*i+8])
	}
	p.more = func() error {
		lengths := p.ints(size)
		lengths[0] = own
		external := uint64(datatype.External32.Size(p.k))
		for i := 1; i < size; i++ {
			n := length(b[8*i:])
			if n%external != 0 || n > uint64(maxInt) {
				return fmt.Errorf("coll: %w: rank %d has a block of %d bytes of %v", ErrCount, p.team.rank(i), n, p.k)
			}
			lengths[i] = int(n / external)
		}
		then(lengths)
		return nil
	}
}

const maxInt = int(^uint(0) >> 1)

// variedBetween plans a message between the root, which is in the one group, and every member of
// the other (MPI-4.1, 6.2.3). Empty blocks do not travel.
func (p rooted) variedBetween(name string, part, whole []byte, counts, displs []int, root int) error {
	switch {
	case root == ProcNull:
	case root == Root:
		all, err := p.layout(name, whole, counts, displs, p.remote.n)
		if err != nil {
			return err
		}
		for r := range p.remote.n {
			if part := all.at(r); len(part) > 0 {
				p.across(false, r, part)
			}
		}
	case len(part) > 0:
		p.across(true, root, part)
	}
	return nil
}
