package coll

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// rooted plans operations in which the root has all blocks and everybody else one:
// Gather, whose blocks go to the root, and Scatter, its reverse, whose blocks come
// from there. Both make the same decisions.
type rooted struct {
	plan
	scatter  bool
	tag      wire.Tag
	interTag wire.Tag // between the groups of an intercommunicator
}

func (p plan) gathering() rooted   { return rooted{p, false, tagGather, tagInterGather} }
func (p plan) scattering() rooted  { return rooted{p, true, tagScatter, tagInterScatter} }
func (p plan) gatheringv() rooted  { return rooted{p, false, tagGatherv, tagInterGather} }
func (p plan) scatteringv() rooted { return rooted{p, true, tagScatterv, tagInterScatter} }

// up moves a block between this process and one nearer to the root: sends it for Gather, receives
// it for Scatter.
func (p rooted) up(rank int, block []byte) { p.move(!p.scatter, rank, block) }

// down moves a block between this process and one farther from the root: receives it for Gather,
// sends it for Scatter.
func (p rooted) down(rank int, block []byte) { p.move(p.scatter, rank, block) }

func (p rooted) move(out bool, rank int, block []byte) {
	if out {
		p.send(rank, p.tag, block)
	} else {
		p.recv(rank, p.tag, block)
	}
}

// across is up or down to a process of the other group of an intercommunicator.
func (p rooted) across(up bool, rank int, block []byte) {
	if up != p.scatter {
		p.cast(rank, p.interTag, block)
	} else {
		p.catch(rank, p.interTag, block)
	}
}

// keep copies the own block to its place among all, or for Scatter from there.
func (p rooted) keep(own, place []byte) {
	if p.scatter {
		p.copy(own, place)
	} else {
		p.copy(place, own)
	}
}

func (p rooted) names() (part, whole string) {
	if p.scatter {
		return "the receive buffer", "the send buffer"
	}
	return "the send buffer", "the receive buffer"
}

// check checks the root and the buffers, and returns those buffers that matter in this process.
func (p rooted) check(part, whole []byte, root int) ([]byte, []byte, error) {
	if err := p.checkRoot(root); err != nil {
		return nil, nil, err
	}
	part, whole = p.significant(part, whole, root)
	if p.scatter {
		return part, whole, checkPair(whole, part, p.k)
	}
	return part, whole, checkPair(part, whole, p.k)
}

// Gather brings everybody's send, all of one length, to the root's recv, by rank. At the root a nil
// send means that its block is in place already. recv matters at the root only (MPI-4.1, 6.5).
func (p *Planner) Gather(s *Schedule, send, recv []byte, k datatype.Kind, root int) error {
	return p.begin(s, k).gathering().equal(send, recv, root)
}

// Scatter brings the blocks of the root's send, all of one length, to everybody's recv, by rank. At
// the root a nil recv means that its block stays in place. send matters at the root only (MPI-4.1,
// 6.6).
func (p *Planner) Scatter(s *Schedule, send, recv []byte, k datatype.Kind, root int) error {
	return p.begin(s, k).scattering().equal(recv, send, root)
}

func (p rooted) equal(part, whole []byte, root int) error {
	part, whole, err := p.check(part, whole, root)
	if err == nil && p.remote != nil {
		err = p.equalBetween(part, whole, root)
		p.finish()
		return err
	}
	if err == nil && p.me == root {
		_, name := p.names()
		part, err = p.ownBlock(name, part, whole)
	}
	if err != nil {
		return err
	}
	p.blocks(part, whole, root)
	return p.done(nil)
}

// blocks is equal for an own block that is not nil. Blocks shorter than XSIZE go by way of the
// masters, one message for each client; others directly (IMPI ch.4, Collective crossovers).
//
// The project's profile of IMPI ch.4, Gather and Scatter.
func (p rooted) blocks(own, whole []byte, root int) {
	p.blocksOf(own, even(whole, len(own)), root)
}

// blocksOf is blocks for blocks that need not follow each other in the root's memory: all has them
// by rank.
func (p rooted) blocksOf(own []byte, all parts, root int) {
	if p.m.Local(p.me, root) {
		p.foreign(all, root)
		p.inTeam(own, all.of(p.team.ranks), p.m.LocalIndex(root))
		return
	}
	if !p.short(len(own) / p.k.Size()) {
		p.up(root, own)
		return
	}
	bundle := own
	if p.team.me == 0 {
		if n := p.team.size(); n > 1 {
			bundle = p.scratch.get(n * len(own))
		}
		if p.scatter {
			p.up(root, bundle)
			p.wait()
		}
	}
	p.inTeam(own, even(bundle, len(own)), 0)
	if !p.scatter && p.team.me == 0 {
		p.wait()
		p.up(root, bundle)
	}
}

// foreign plans, at the root, the messages from or to other clients.
func (p rooted) foreign(all parts, root int) {
	if p.me != root {
		return
	}
	if p.short(all.block / p.k.Size()) {
		for i := range p.m.Count() {
			if i != p.mine {
				p.bundle(chosen{parts: all, ranks: p.m.Locals(i)})
			}
		}
		return
	}
	for r := range p.n {
		if !p.m.Local(r, root) {
			p.down(r, all.at(r))
		}
	}
}

// bundle moves the chosen parts in one message from or to their client's master.
func (p rooted) bundle(c chosen) {
	whole, own := p.together(&c)
	if p.scatter && !own {
		p.pack(&c, whole)
	}
	p.down(c.master(), whole)
	if !p.scatter && !own {
		p.unpack(&c, whole)
	}
}

// inTeam moves the blocks of one client to or from the place root, which has parts by place. Long
// blocks go directly, short ones along a tree.
func (p rooted) inTeam(own []byte, all parts, root int) {
	if p.ownGather(own, all, root) {
		return
	}
	n := p.team.size()
	if in, ok := p.inside(); ok && len(own) > 0 {
		p.plan = in.of(datatype.Byte) // the root may have another kind for the same bytes
		p.blocksOf(own, all, root)
		return
	}
	if p.team.me == root {
		p.keep(own, all.at(root))
	}
	switch {
	case len(own) == 0 || n == 1:
	case len(own) < p.profile.Tuning.GatherLong && !p.few():
		p.tree(own, all, root)
	case p.team.me != root:
		p.up(p.team.rank(root), own)
	default:
		for i := range n {
			if i != root {
				p.down(p.team.rank(i), all.at(i))
			}
		}
	}
}

// tree moves the blocks along a binomial tree. Its inner processes hold the blocks of their
// subtrees in scratch memory.
func (p rooted) tree(own []byte, all parts, root int) {
	n, block := p.team.size(), len(own)
	v := (p.team.me - root + n) % n
	parent := p.team.rank(v&(v-1) + root)
	whole := own
	if sub := subtree(v, n); v > 0 && sub > 1 {
		whole = p.scratch.get(sub * block)
	}
	if p.scatter {
		if v > 0 {
			p.up(parent, whole)
			p.wait()
		}
		for mask := top(n); mask > 0; mask /= 2 {
			if (v == 0 || mask < v&-v) && v+mask < n {
				p.branch(whole, all, v, mask, root)
			}
		}
		if v > 0 {
			p.copy(own, whole[:block])
		}
		return
	}
	if v > 0 {
		p.copy(whole[:block], own)
	}
	for mask := 1; v&mask == 0 && v+mask < n; mask *= 2 {
		p.branch(whole, all, v, mask, root)
	}
	p.wait()
	if v > 0 {
		p.up(parent, whole)
	}
}

// branch moves the blocks of the subtree at place v+mask between its process and that at v, which
// has them in whole, or in all if it is the root.
func (p rooted) branch(whole []byte, all parts, v, mask, root int) {
	n, block := p.team.size(), all.block
	first, sub := v+mask+root, subtree(v+mask, n)
	if v > 0 {
		p.down(p.team.rank(first), whole[mask*block:][:sub*block])
		return
	}
	piece, own := p.piece(all, first, sub)
	for i := 0; i < sub && !own; i++ {
		part, place := all.at((first+i)%n), piece[i*block:][:block]
		if p.scatter {
			p.copy(place, part)
		} else {
			p.afterwards(Step{Action: Copy, Dst: part, Src: place})
		}
	}
	p.down(p.team.rank(first), piece)
}

// piece returns a buffer for the parts of sub places from first on, after the last place from 0 on:
// their place in b's buffer if that is in one piece (own), else scratch memory.
func (p rooted) piece(b parts, first, sub int) (piece []byte, own bool) {
	n := p.team.size()
	first %= n
	if first+sub <= n {
		start, _ := b.where(first)
		if _, end := b.where(first + sub - 1); end == start+sub*b.block {
			return b.buf[start:end:end], true
		}
	}
	return p.scratch.get(sub * b.block), false
}

// equalBetween is equal between the groups of an intercommunicator (MPI-4.1, 6.2.3). Short blocks
// go by way of the first member of the group that has one block each.
func (p rooted) equalBetween(part, whole []byte, root int) error {
	switch {
	case root == ProcNull:
	case root == Root:
		_, name := p.names()
		block, err := equalBlocks(name, whole, p.k, p.remote.n)
		switch {
		case err != nil:
			return err
		case !p.sendsSeparately(block):
			p.across(false, 0, whole)
		default:
			all := even(whole, block)
			for r := range p.remote.n {
				p.across(false, r, all.at(r))
			}
		}
	case p.sendsSeparately(len(part)):
		p.across(true, root, part)
	case p.scatter:
		if p.me == 0 {
			whole = p.scratch.get(p.n * len(part))
			p.across(true, root, whole)
			p.wait()
		}
		p.blocks(part, whole, 0)
	default:
		if whole = p.collect(part); p.me == 0 {
			p.across(true, root, whole)
		}
	}
	return nil
}

// collect gathers the blocks of the own group at its first member, which returns them.
func (p rooted) collect(own []byte) (whole []byte) {
	if p.me == 0 {
		whole = p.scratch.get(p.n * len(own))
	}
	p.blocks(own, whole, 0)
	p.wait()
	return whole
}
