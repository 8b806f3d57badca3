package coll

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Bcast brings the root's buffer to everybody.
func (p *Planner) Bcast(s *Schedule, buf []byte, k datatype.Kind, root int) error {
	s.Reset()
	if err := p.checkRoot(root); err != nil {
		return err
	}
	if err := checkBuffer("the buffer", buf, k); err != nil {
		return err
	}
	if p.remote != nil {
		p.interBcast(s, buf, k, root)
	} else {
		p.bcast(s, buf, k, root)
	}
	s.finish()
	return nil
}

func (p *Planner) bcast(s *Schedule, buf []byte, k datatype.Kind, root int) {
	if p.laned(buf, k) {
		p.bcastLanes(s, buf, k, root)
		return
	}
	from := p.delegate(p.mine, root)
	if !p.single() && p.me == from {
		p.down(s, buf, k, p.m.Number(root), func(i int) int { return p.delegate(i, root) })
	}
	p.bcastTeam(s, buf, k, p.m.Place(from))
}

// down is the phase between clients: the whole buffer in one message, from client
// number rn to the others. stand gives the rank that stands for a client.
// IMPI ch.4, Bcast: the root stands in for its master.
func (p *Planner) down(s *Schedule, buf []byte, k datatype.Kind, rn int, stand func(number int) int) {
	m := p.m.Count()
	if p.linear() {
		if p.mine != rn {
			p.recv(s, stand(rn), tagBcast, buf, k)
			s.wait()
			return
		}
		for i := range m {
			if i != rn {
				p.send(s, stand(i), tagBcast, buf, k)
			}
		}
		return
	}
	w := (p.mine - rn + m) % m
	h, d := hibit(w), dim(m)
	if w > 0 {
		p.recv(s, stand((w-1<<h+rn)%m), tagBcast, buf, k)
		s.wait()
	}
	for i := h + 1; i < d; i++ {
		if c := w + 1<<i; c < m {
			p.send(s, stand((c+rn)%m), tagBcast, buf, k)
		}
	}
}

// bcastTeam is the phase inside a client, from a place of the team.
func (p *Planner) bcastTeam(s *Schedule, buf []byte, k datatype.Kind, root int) {
	n := p.team.size()
	switch {
	case n == 1 || len(buf) == 0:
	case p.few():
		p.bcastFew(s, buf, root)
	case len(buf) < p.profile.Tuning.BcastLong || n == 2:
		p.bcastTree(s, buf, root)
	default:
		p.bcastParts(s, buf, k, root)
	}
}

// bcastTree sends the whole buffer down a binomial tree.
func (p *Planner) bcastTree(s *Schedule, buf []byte, root int) {
	n := p.team.size()
	v := (p.team.me - root + n) % n
	if v > 0 {
		p.recvLocal(s, p.team.rank(v&(v-1)+root), tagBcast, buf)
		s.wait()
	}
	for mask := top(n); mask > 0; mask /= 2 {
		if (v == 0 || mask < v&-v) && v+mask < n {
			p.sendLocal(s, p.team.rank(v+mask+root), tagBcast, buf)
		}
	}
}

// bcastParts scatters the buffer down the tree and then sends the parts around
// a ring, so that no process sends much more than the buffer's length.
func (p *Planner) bcastParts(s *Schedule, buf []byte, k datatype.Kind, root int) {
	n := p.team.size()
	v := (p.team.me - root + n) % n
	b := divided(buf, k, n)
	if v > 0 {
		if part := b.span(v, v+subtree(v, n)); len(part) > 0 {
			p.recvLocal(s, p.team.rank(v&(v-1)+root), tagBcast, part)
			s.wait()
		}
	}
	for mask := top(n); mask > 0; mask /= 2 {
		if (v == 0 || mask < v&-v) && v+mask < n {
			if part := b.span(v+mask, v+mask+subtree(v+mask, n)); len(part) > 0 {
				p.sendLocal(s, p.team.rank(v+mask+root), tagBcast, part)
			}
		}
	}
	p.ringBut(s, tagBcast, &b, v, root)
}

// ring completes a buffer of which each place has its own part; place v is this
// process's. Empty parts do not travel.
func (p *Planner) ring(s *Schedule, tag wire.Tag, b *parts, v int) { p.ringBut(s, tag, b, v, -1) }

// ringBut is ring where one of the team, in place full, has all parts already.
func (p *Planner) ringBut(s *Schedule, tag wire.Tag, b *parts, v, full int) {
	n := p.team.size()
	next := (p.team.me + 1) % n
	for i := range n - 1 {
		s.wait()
		if part := b.at((v - i + n) % n); len(part) > 0 && next != full {
			p.sendLocal(s, p.team.rank(next), tag, part)
		}
		if part := b.at((v - i - 1 + n) % n); len(part) > 0 && p.team.me != full {
			p.recvLocal(s, p.team.rank(p.team.me-1), tag, part)
		}
	}
	s.wait()
}
