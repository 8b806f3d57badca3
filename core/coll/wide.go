package coll

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// maxStripes is the most processes of a client among which one vector is divided between clients.
const maxStripes = 8

// sites describes a communicator of several clients that all run this library: between them the
// planner sends few messages, but not those that IMPI prescribes.
type sites struct {
	ours    bool
	ordered bool // the ranks of each client are consecutive
	equal   bool // all clients have the same number of processes
	// stripes is the number of processes of each client that move parts of a long vector: the first
	// ones of their client.
	stripes int
}

func newSites(m *comm.Masters, ours bool) sites {
	w := sites{ours: ours && m.Count() > 1, ordered: true, equal: true, stripes: maxStripes}
	if !w.ours {
		return sites{}
	}
	for i := range m.Count() {
		n := m.Locals(i).Size()
		last, _ := m.Locals(i).At(n - 1)
		w.ordered = w.ordered && int(last) == m.Rank(i)+n-1
		w.equal = w.equal && n == m.Locals(0).Size()
		w.stripes = min(w.stripes, n)
	}
	return w
}

// combines reports whether the operation may be reduced client by client: it is commutative, or the
// ranks of each client follow each other (MPI-4.1, 6.9.1).
func (p reductions) combines() bool {
	return p.op.Commutative() || p.sites.ours && p.sites.ordered
}

func (p plan) striped(buf []byte) bool {
	return p.sites.stripes > 1 && len(buf) >= p.profile.Tuning.StripesLong && len(buf)/p.k.Size() >= p.sites.stripes
}

// stripe returns the rank in the client of that number that moves the same stripe as this process.
func (p *Planner) stripe(number int) int { return p.carrier(number, p.team.me) }

// carrier returns the rank in the client of that number that moves a stripe, its carrier.
func (p *Planner) carrier(number, stripe int) int {
	rank, _ := p.m.Locals(number).At(stripe)
	return int(rank)
}

func (p *Planner) carries() bool { return p.team.me < p.sites.stripes }

// bcastStripes makes the root scatter the buffer over processes of its client. Each sends its
// part to the process with the same position in the other clients, where the parts are then
// passed around.
func (p bcasts) bcastStripes(buf []byte, root int) {
	stripes := divided(buf, p.k, p.sites.stripes)
	full := -1
	switch rn := p.m.Number(root); {
	case p.me == root:
		full = p.team.me
		for i := range p.sites.stripes {
			if to := p.carrier(p.mine, i); to != root {
				p.sendLocal(to, tagBcast, stripes.at(i))
			}
		}
	case p.mine == rn:
		full = p.m.LocalIndex(root)
		if p.carries() {
			p.recvLocal(root, tagBcast, stripes.at(p.team.me))
			p.wait()
		}
	}
	switch {
	case !p.carries():
	case p.isHosts:
		bcasts{p.over()}.bcastTeam(stripes.at(p.team.me), p.m.Number(root))
	default:
		p.down(stripes.at(p.team.me), p.m.Number(root), p.stripe)
	}
	p.everywhere(tagBcast, &stripes, full)
}

// everywhere brings the stripes from their carriers to all processes of the client, except the one
// in place full, which has them.
func (p plan) everywhere(tag wire.Tag, stripes *parts, full int) {
	if in, ok := p.inside(); ok {
		p.wait()
		bcasts{in}.spreadStripes(stripes, full)
		return
	}
	p.ringBut(tag, stripes, p.team.me, full)
}

func (p reductions) reduceStripes(own, recv []byte, root int) {
	a := p.reduceToStripes(own, recv)
	rn := p.m.Number(root)
	if p.carries() {
		p.up(&a, rn, p.stripe)
	}
	if p.mine != rn {
		return
	}
	result := divided(recv, p.k, p.sites.stripes)
	p.wait() // recv may be own
	switch {
	case p.me != root:
		if p.carries() {
			p.sendLocal(root, tagReduce, a.cur)
		}
		return
	case p.carries():
		p.copy(result.at(p.team.me), a.cur)
	}
	for i := range p.sites.stripes {
		if from := p.carrier(rn, i); from != root {
			p.recvLocal(from, tagReduce, result.at(i))
		}
	}
}

func (p allreductions) allreduceStripes(own, recv []byte) {
	a := p.reduceToStripes(own, recv)
	stripes := divided(recv, p.k, p.sites.stripes)
	if p.carries() {
		p.allSites(&a, stripes.at(p.team.me), p.stripe)
	}
	p.everywhere(tagAllreduce, &stripes, -1)
}

// reduceToStripes combines each stripe inside each client at its carrier. The accumulator that it
// returns has the carrier's stripe.
func (p reductions) reduceToStripes(own, recv []byte) accumulator {
	if in, ok := p.hostsOf(); ok {
		return in.reduceToCarriers(own, recv, p.sites.stripes)
	}
	from := divided(own, p.k, p.sites.stripes)
	var mine, into []byte
	if p.carries() {
		mine = from.at(p.team.me)
		if recv != nil && !same(own, recv) {
			b := divided(recv, p.k, p.sites.stripes)
			into = b.at(p.team.me)
		}
	}
	a := p.accumulate(mine, into)
	n := p.team.size()
	for i := 1; i < n; i++ {
		if part := from.at((p.team.me + i) % n); len(part) > 0 {
			p.sendLocal(p.team.rank(p.team.me+i), tagReduceScatter, part)
		}
		if p.carries() {
			x := a.buffer()
			p.recvLocal(p.team.rank(p.team.me-i), tagReduceScatter, x)
			p.wait()
			a.before(x)
		}
	}
	p.wait()
	return a
}

// allSites combines the accumulators of the ranks that send and receive for the clients, and leaves
// the combination in result at each of them. Up to Direct clients exchange theirs, long ones part
// by part; of more, each sends one message up a tree and gets one down. Between hosts, where
// messages cost less, more messages in fewer rounds are exchanged.
func (p allreductions) allSites(a *accumulator, result []byte, stand func(number int) int) {
	switch {
	case p.isHosts:
		allreductions{reductions{p.over(), p.op}}.allreduce(a.cur, result)
		p.wait()
	case p.direct() && p.m.Count() > 2 && len(a.cur) >= p.profile.Tuning.DirectLong && !p.op.Whole():
		p.partsOfSites(a, result, stand)
	case p.swapsValues():
		p.swapValues(a, stand)
		a.copy(result, a.cur)
	default:
		p.up(a, 0, stand)
		a.wait()
		if p.mine == 0 {
			a.copy(result, a.cur)
		}
		p.bcasting().down(result, 0, stand)
	}
}

// swapsValues reports whether short vectors are reduced by swapValues: if clients exchange messages
// all at once, or there are two clients of ours, and the operation is exact.
func (p reductions) swapsValues() bool {
	return (p.direct() || p.sites.ours && p.m.Count() == 2) && exact(p.op, p.k)
}

// swapValues makes each client send its value to all others, which takes one way between sites.
// Each combines all of them in one order, from the last to the first, so that all get the same
// bits.
func (p allreductions) swapValues(a *accumulator, stand func(number int) int) {
	n, m := len(a.cur), p.m.Count()
	values := p.scratch.get(m * n)
	value := func(i int) []byte { return values[i*n:][:n:n] }
	for i := range m {
		if i != p.mine {
			p.recv(stand(i), tagAllreduce, value(i))
			p.send(stand(i), tagAllreduce, a.cur)
		}
	}
	p.wait()
	p.copy(value(p.mine), a.cur)
	p.inOrder(m, value)
	a.cur, a.mine, a.spare = value(m-1), true, nil
}

// inOrder leaves the combination of m values in the last of them.
func (p reductions) inOrder(m int, value func(i int) []byte) {
	for i := m - 2; i >= 0; i-- {
		p.apply(value(i), value(m-1))
	}
}

// partsOfSites makes each client combine one part of the vectors and send it to all others. That
// takes a round trip, but the bytes that leave a client are twice the vector at most, however many
// clients there are.
func (p allreductions) partsOfSites(a *accumulator, result []byte, stand func(number int) int) {
	m := p.m.Count()
	from, to := divided(a.cur, p.k, m), divided(result, p.k, m)
	mine := from.at(p.mine)
	n := len(mine)
	values := p.scratch.get(m * n)
	value := func(i int) []byte { return values[i*n:][:n:n] }
	others := func(tag wire.Tag, out func(i int) []byte, in func(i int) []byte) {
		for i := range m {
			if i == p.mine {
				continue
			}
			if part := in(i); len(part) > 0 {
				p.recv(stand(i), tag, part)
			}
			if part := out(i); len(part) > 0 {
				p.send(stand(i), tag, part)
			}
		}
		p.wait()
	}
	others(tagAllreduce, from.at, value)
	p.copy(value(p.mine), mine)
	p.inOrder(m, value)
	others(tagBcast, func(int) []byte { return value(m - 1) }, to.at)
	p.copy(to.at(p.mine), value(m-1))
}

// exact reports whether an operation gives the same bits on all machines, also where a compiler
// makes one instruction of a multiplication and an addition.
func exact(op *datatype.Op, k datatype.Kind) bool {
	return op.Predefined() && k != datatype.Complex64 && k != datatype.Complex128
}
