package coll

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// A client may be of several hosts, between which messages cost more than inside one. What its
// processes do among themselves is then done in two levels, by the same algorithms that serve
// several clients of ours: a planner of the client alone, whose clients are the hosts. IMPI leaves
// that phase to the client (IMPI ch.4, Utility functions), and other clients do not notice it:
// which of its processes exchanges messages with them does not depend on hosts.
//
// docs/decisions/0044-three-levels.md says which operations do so.

// newHostPlanner makes the planner that w uses inside its client, whose clients are the hosts; nil
// if there is one host, or one process on each. several reports whether there is more than one.
func newHostPlanner(w *Planner, hosts *comm.Clients) (l *Planner, several bool) {
	members, err := w.comm.Group().Select(w.team.ranks)
	if err != nil || hosts == nil || members.Size() < 2 {
		return nil, false
	}
	m := comm.NewMasters(members, hosts)
	if m.Count() == 1 || m.Count() == members.Size() {
		return nil, m.Count() > 1
	}
	l = &Planner{comm: w.comm, m: m, profile: w.profile, n: members.Size(), me: w.team.me, isHosts: true, scattered: true}
	l.profile.AllImpi = true
	if !w.single() {
		l.ranks = w.team.ranks
	}
	l.mine = m.Number(l.me)
	l.team = team{ranks: m.Locals(l.mine), me: m.LocalIndex(l.me)}
	l.sites = newSites(m, true)
	if l.team.me < l.sites.stripes {
		l.samePlace = newColumn(l)
	}
	return l, true
}

// newColumn makes the planner of the processes that have this one's place on their
// hosts. Its ranks are the numbers of the hosts.
func newColumn(l *Planner) *Planner {
	n := l.m.Count()
	places := make([]comm.Proc, n)
	for i := range places {
		places[i] = comm.Proc(l.carrier(i, l.team.me))
	}
	ranks, err := comm.GroupOf(places)
	if err == nil && l.ranks != nil {
		ranks, err = l.ranks.Select(ranks)
	}
	if err != nil {
		return nil // no two hosts have one process
	}
	all := comm.NewGroup(0, n)
	p := &Planner{comm: l.comm, profile: l.profile, n: n, me: l.mine, ranks: ranks, isHosts: true, scattered: true,
		m: comm.NewMasters(all, comm.NewClients(make([]wire.ClientRank, n)))}
	p.profile.AllImpi, p.profile.Tuning.FlatProcs = false, 0
	p.team = team{ranks: all, me: p.me}
	return p
}

// inside returns the plan of the own client, in which its hosts take the place of clients; ok is
// false if the client has one host. Ranks in that plan are places in the client.
func (p plan) inside() (in plan, ok bool) {
	if p.betweenHosts == nil {
		return plan{}, false
	}
	return plan{p.betweenHosts, p.Schedule, p.k}, true
}

// hostsOf is inside for a reduction; ok is false if it may not be done host by host, since that
// would change the order of the operands.
func (p reductions) hostsOf() (in reductions, ok bool) {
	l, ok := p.inside()
	in = reductions{l, p.op}
	return in, ok && in.combines()
}

// over returns the plan of the processes with this one's place on their hosts, one of each host.
func (p plan) over() plan { return plan{p.samePlace, p.Schedule, p.k} }

// agent returns the process that handles a stripe on a host. On the host of the stripe's carrier,
// the process of the client whose place is the stripe's number, it is the carrier; on others it is
// a process that does the carrier's work there.
func (p plan) agent(host, stripe int) int {
	if p.m.Number(stripe) == host {
		return stripe
	}
	return p.carrier(host, stripe%p.m.Locals(host).Size())
}

// reduceToCarriers is reduceToStripes of a client of several hosts: each host combines every stripe
// at its agent there, and the agents' values are combined at the carrier.
func (p reductions) reduceToCarriers(own, recv []byte, stripes int) (carried accumulator) {
	var acc [maxStripes]accumulator
	from, to := divided(own, p.k, stripes), divided(recv, p.k, stripes)
	mine := func(j int) bool { return p.agent(p.mine, j) == p.me }
	for j := range stripes {
		var into []byte
		if j == p.me && recv != nil && !same(own, recv) {
			into = to.at(j)
		}
		acc[j] = p.accumulate(from.at(j), into)
	}
	n := p.team.size()
	for i := 1; i < n; i++ {
		source, dest := p.team.rank(p.team.me-i), p.team.rank(p.team.me+i)
		var operands [maxStripes][]byte
		for j := range stripes {
			switch p.agent(p.mine, j) {
			case dest:
				p.sendLocal(dest, tagReduceScatter, from.at(j))
			case p.me:
				operands[j] = acc[j].buffer()
				p.recvLocal(source, tagReduceScatter, operands[j])
			}
		}
		p.wait()
		for j := range stripes {
			if mine(j) {
				acc[j].before(operands[j])
			}
		}
	}
	for j := range stripes {
		if mine(j) {
			p.up(&acc[j], p.m.Number(j), func(host int) int { return p.agent(host, j) })
		}
	}
	p.wait()
	if p.me < stripes {
		carried = acc[p.me]
	}
	return carried
}

// spreadStripes brings the stripes of a buffer from their carriers to all processes of a client of
// several hosts. Each stripe goes to every host once. The process in place full has all stripes
// already.
func (p bcasts) spreadStripes(b *parts, full int) {
	for j := range b.n {
		if p.agent(p.mine, j) != p.me {
			continue
		}
		stripe := b.at(j)
		if p.me == full {
			stripe = p.scratch.get(len(stripe))
			p.copy(stripe, b.at(j))
		}
		p.down(stripe, p.m.Number(j), func(host int) int { return p.agent(host, j) })
	}
	p.wait()
	n := p.team.size()
	for i := 1; i < n; i++ {
		source, dest := p.team.rank(p.team.me-i), p.team.rank(p.team.me+i)
		for j := range b.n {
			switch agent := p.agent(p.mine, j); {
			case agent == p.me && dest != full:
				p.sendLocal(dest, tagBcast, b.at(j))
			case agent == source && p.me != full:
				p.recvLocal(source, tagBcast, b.at(j))
			}
		}
	}
	p.wait()
}

// byPlace returns counts by place in the client, from counts by rank.
func (p plan) byPlace(counts []int) []int {
	if p.single() {
		return counts
	}
	places := p.ints(p.team.size())
	for i := range places {
		places[i] = counts[p.team.rank(i)]
	}
	return places
}

// following returns parts of a buffer that follow each other and have these counts.
func (p plan) following(buf []byte, counts []int) parts {
	b := parts{buf: buf, counts: counts, size: p.k.Size(), starts: p.ints(len(counts))}
	at := 0
	for i, c := range counts {
		b.starts[i] = at
		at += c * b.size
	}
	return b
}
