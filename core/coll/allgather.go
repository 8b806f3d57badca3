package coll

import "github.com/openimpi/impi/core/datatype"

type allgathers struct{ plan }

// Allgather copies the send of each member, all of one length, to everybody's recv, by rank
// (MPI-4.1, 6.7). A nil send means that the own block is in place already.
func (p *Planner) Allgather(s *Schedule, send, recv []byte, k datatype.Kind) error {
	o := allgathers{p.begin(s, k)}
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if o.remote != nil {
		return o.done(o.interAllgather(send, recv))
	}
	own, err := o.ownBlock("the receive buffer", send, recv)
	if err != nil {
		return err
	}
	o.allgather(own, recv)
	return o.done(nil)
}

func (p allgathers) allgather(own, recv []byte) {
	in, hosts := p.inside()
	switch {
	case p.ownAllgather(own, recv):
	case len(own) > 0 && hosts && p.single():
		allgathers{in}.allgather(own, recv)
	case p.single():
		p.allgatherTeam(own, recv)
	case p.isHosts && !p.linear() && len(recv) < p.profile.Tuning.WideLong:
		p.gatherAndBcast(own, recv) // fewer messages than the square of the hosts
	case p.sites.ours:
		p.allgatherWide(own, recv)
	default:
		p.gatherAndBcast(own, recv) // IMPI ch.4, Allgather: no messages of its own
	}
}

func (p allgathers) gatherAndBcast(own, recv []byte) {
	p.gathering().blocks(own, recv, 0)
	p.wait()
	p.bcasting().bcast(recv, 0)
}

func (p allgathers) allgatherTeam(own, recv []byte) {
	b := even(recv, len(own))
	switch {
	case len(own) == 0:
	case len(own) >= p.profile.Tuning.AllgatherLong || p.n <= 2:
		p.ringFrom(tagAllgather, &b, p.me, own)
	default:
		p.allgatherDoubling(own, &b)
	}
}

// allgatherDoubling doubles the number of blocks that everybody has in each round, for any number
// of processes (Bruck's algorithm). The blocks are collected from the own one on, modulo the number
// of processes, and moved to their places in the end.
func (p allgathers) allgatherDoubling(own []byte, b *parts) {
	n, block := p.n, len(own)
	all := p.scratch.get(n * block)
	p.copy(all[:block], own)
	for d := 1; d < n; d *= 2 {
		more := min(d, n-d) * block
		p.sendLocal(p.team.rank(p.me-d), tagAllgather, all[:more])
		p.recvLocal(p.team.rank(p.me+d), tagAllgather, all[d*block:][:more])
		p.wait()
	}
	head := n - p.me
	p.copy(b.buf[p.me*block:], all[:head*block])
	p.copy(b.buf, all[head*block:])
}

// Allgatherv is Allgather of blocks of different lengths (MPI-4.1, 6.7): counts[r] elements of rank
// r are copied to displs[r] of recv, one after the other if displs is nil. All members pass the
// same counts.
func (p *Planner) Allgatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind) error {
	o := allgathers{p.begin(s, k)}
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if o.remote != nil {
		return o.done(o.interAllgatherv(send, recv, counts, displs))
	}
	to, err := o.layout("the receive buffer", recv, counts, displs, o.n)
	if err != nil {
		return err
	}
	own, err := o.ownPart("the send buffer", send, &to)
	if err != nil {
		return err
	}
	in, hosts := o.inside()
	switch {
	case !o.single():
		o.allgathervClients(own, to)
	case hosts:
		allgathers{in}.allgathervClients(own, to)
	default:
		o.ringFrom(tagAllgather, &to, o.me, own)
	}
	return o.done(nil)
}

// allgathervClients is Gatherv to rank 0 and Bcast of all blocks in one message (the project's
// profile of IMPI ch.4, Allgather). Between clients of ours each master gets all blocks, and
// broadcasts them in its client.
func (p allgathers) allgathervClients(own []byte, to parts) {
	if p.sites.ours {
		p.gathervWide(own, to)
		p.bcasting().spread(to, p.n, p.team.me == 0, true)
		return
	}
	p.gatheringv().variedBlocks(own, to, to.counts, 0)
	p.wait()
	p.bcasting().spread(to, p.n, p.me == 0, false)
}

// spread broadcasts n parts as one message from rank 0, or inside the team from its place 0. first
// says that this process is the one that has them.
func (p bcasts) spread(to parts, n int, first, team bool) {
	bcast := p.bcast
	if team {
		bcast = p.bcastTeam
	}
	total, packed := to.packed(n)
	if packed {
		bcast(to.buf[:total:total], 0)
		return
	}
	whole := p.scratch.get(total)
	at := 0
	for r := range n {
		part := to.at(r)
		if first {
			p.copy(whole[at:], part)
		}
		at += len(part)
	}
	bcast(whole, 0)
	p.wait()
	if first {
		return
	}
	for r := range n {
		part := to.at(r)
		p.copy(part, whole[:len(part)])
		whole = whole[len(part):]
	}
}
