package coll

// mostPieces is how many blocks a master may have to sort by destination.
const mostPieces = 1 << 14

// bundled reports whether the blocks of Alltoall go by way of the masters: all blocks from one
// client to another in one message.
func (p exchanges) bundled(block int) bool {
	if !p.sites.ours || block == 0 || block > p.profile.Tuning.AlltoallWide {
		return false
	}
	most := 0
	for i := range p.m.Count() {
		most = max(most, p.m.Locals(i).Size())
	}
	return most*p.n <= mostPieces
}

// alltoallBundled gives the blocks for other clients to the master, which sorts them by client,
// exchanges them with the other masters, and distributes what came.
func (p exchanges) alltoallBundled(from, to *parts) {
	away := (p.n - p.team.size()) * from.block
	out := p.scratch.get(away)
	rest := out
	p.eachAway(func(_, r int) {
		p.copy(rest[:from.block], from.at(r))
		rest = rest[from.block:]
	})
	in := p.scratch.get(away)
	var outs, ins []byte // blocks of all in the client: to other clients, and from them
	if p.team.me == 0 {
		outs, ins = p.scratch.get(p.team.size()*away), p.scratch.get(p.team.size()*away)
	}
	rooted{plan: p.plan, tag: tagAlltoallv}.inTeam(out, even(outs, away), 0)
	p.wait()
	bundles := p.swapBundles(outs, away, from.block)
	p.exchangeTeam(from, to)
	p.wait()
	p.sortBundles(bundles, ins, away, from.block)
	rooted{plan: p.plan, tag: tagAlltoallv, scatter: true}.inTeam(in, even(ins, away), 0)
	p.wait()
	p.eachAway(func(_, r int) {
		p.copy(to.at(r), in[:from.block])
		in = in[from.block:]
	})
}

func (p exchanges) eachAway(f func(number, rank int)) {
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		for r := range p.m.Locals(i).All() {
			f(i, int(r))
		}
	}
}

// swapBundles begins the exchange between the masters: outs has the blocks of all in the client for
// other clients, away bytes of each process. It returns the memory that the other masters' messages
// are received into.
func (p exchanges) swapBundles(outs []byte, away, block int) (bundles []byte) {
	if p.team.me != 0 {
		return nil
	}
	n := p.team.size()
	bundle, bundles := p.scratch.get(n*away), p.scratch.get(n*away)
	at, start := 0, 0 // offsets in the bundles, and in each process's blocks for other clients
	for i := range p.m.Count() {
		if i == p.mine {
			continue
		}
		theirs := p.m.Locals(i).Size() * block
		for q := range n {
			p.copy(bundle[at+q*theirs:][:theirs], outs[q*away+start:][:theirs])
		}
		p.send(p.m.Rank(i), tagAlltoall, bundle[at:at+n*theirs:at+n*theirs])
		p.recv(p.m.Rank(i), tagAlltoall, bundles[at:at+n*theirs:at+n*theirs])
		at += n * theirs
		start += theirs
	}
	return bundles
}

// sortBundles sorts what the master got from the others by the processes of its client that it is
// for.
func (p exchanges) sortBundles(bundles, ins []byte, away, block int) {
	if p.team.me != 0 {
		return
	}
	n := p.team.size()
	// For each rank here there is a block from each rank of the other clients.
	for j := range away / block {
		for q := range n {
			p.copy(ins[q*away+j*block:][:block], bundles[(j*n+q)*block:][:block])
		}
	}
}

func (p exchanges) exchangeTeam(from, to *parts) {
	if p.ownExchange(from, to) {
		return
	}
	if in, ok := p.inside(); ok && (exchanges{plan: in}).bundled(from.block) {
		f, t := from.of(p.team.ranks), to.of(p.team.ranks)
		exchanges{plan: in}.alltoallBundled(&f, &t)
		return
	}
	p.copy(to.at(p.me), from.at(p.me))
	n := p.team.size()
	for i := 1; i < n; i++ {
		source, dest := p.team.rank(p.team.me-i), p.team.rank(p.team.me+i)
		p.recvLocal(source, tagAlltoall, to.at(source))
		p.sendLocal(dest, tagAlltoall, from.at(dest))
		if i%atOnce == 0 {
			p.wait()
		}
	}
}
