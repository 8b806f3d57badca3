package coll

import (
	"github.com/openimpi/impi/core/datatype"
)

type bcasts struct{ plan }

func (p plan) bcasting() bcasts { return bcasts{p} }

// Bcast copies the root's buffer to the buffer of every member (MPI-4.1, 6.4).
func (p *Planner) Bcast(s *Schedule, buf []byte, k datatype.Kind, root int) error {
	o := bcasts{p.begin(s, k)}
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if err := checkBuffer("the buffer", buf, k); err != nil {
		return err
	}
	if o.remote != nil {
		o.interBcast(buf, root)
	} else {
		o.bcast(buf, root)
	}
	return o.done(nil)
}

func (p bcasts) bcast(buf []byte, root int) {
	if p.striped(buf) {
		p.bcastStripes(buf, root)
		return
	}
	from := p.delegate(p.mine, root)
	if !p.single() && p.me == from {
		p.down(buf, p.m.Number(root), func(i int) int { return p.delegate(i, root) })
	}
	p.bcastTeam(buf, p.m.LocalIndex(from))
}

// down is the phase between clients: the whole buffer in one message, from the client with number
// rn to the others. stand returns the rank that sends and receives for a client. IMPI ch.4, Bcast:
// the root stands in for its master.
func (p bcasts) down(buf []byte, rn int, stand func(number int) int) {
	m := p.m.Count()
	if p.linear() {
		if p.mine != rn {
			p.recv(stand(rn), tagBcast, buf)
			p.wait()
			return
		}
		for i := range m {
			if i != rn {
				p.send(stand(i), tagBcast, buf)
			}
		}
		return
	}
	w := (p.mine - rn + m) % m
	h, d := hibit(w), dim(m)
	if w > 0 {
		p.recv(stand((w-1<<h+rn)%m), tagBcast, buf)
		p.wait()
	}
	for i := h + 1; i < d; i++ {
		if c := w + 1<<i; c < m {
			p.send(stand((c+rn)%m), tagBcast, buf)
		}
	}
}

// bcastTeam broadcasts inside a client, from the process at place root of the team.
func (p bcasts) bcastTeam(buf []byte, root int) {
	n := p.team.size()
	if len(buf) > 0 && p.own(PhaseBcast, nil) {
		p.phase(PhaseBcast, root, nil, buf)
		return
	}
	if in, ok := p.inside(); ok && len(buf) > 0 {
		bcasts{in}.bcast(buf, root)
		return
	}
	switch {
	case n == 1 || len(buf) == 0:
	case p.few():
		p.bcastFew(buf, root)
	case len(buf) < p.profile.Tuning.BcastLong || n == 2:
		p.bcastTree(buf, root)
	default:
		p.bcastParts(buf, root)
	}
}

func (p bcasts) bcastTree(buf []byte, root int) {
	n := p.team.size()
	v := (p.team.me - root + n) % n
	if v > 0 {
		p.recvLocal(p.team.rank(v&(v-1)+root), tagBcast, buf)
		p.wait()
	}
	for mask := top(n); mask > 0; mask /= 2 {
		if (v == 0 || mask < v&-v) && v+mask < n {
			p.sendLocal(p.team.rank(v+mask+root), tagBcast, buf)
		}
	}
}

// bcastParts scatters the buffer down the tree and then sends the parts around
// a ring, so that no process sends much more than the buffer's length.
func (p bcasts) bcastParts(buf []byte, root int) {
	n := p.team.size()
	v := (p.team.me - root + n) % n
	b := divided(buf, p.k, n)
	if v > 0 {
		if part := b.span(v, v+subtree(v, n)); len(part) > 0 {
			p.recvLocal(p.team.rank(v&(v-1)+root), tagBcast, part)
			p.wait()
		}
	}
	for mask := top(n); mask > 0; mask /= 2 {
		if (v == 0 || mask < v&-v) && v+mask < n {
			if part := b.span(v+mask, v+mask+subtree(v+mask, n)); len(part) > 0 {
				p.sendLocal(p.team.rank(v+mask+root), tagBcast, part)
			}
		}
	}
	p.ringBut(tagBcast, &b, v, root)
}
