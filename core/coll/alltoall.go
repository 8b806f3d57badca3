package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// atOnce is how many partners a process exchanges with in one round of Alltoall.
const atOnce = 16

// Alltoall sends block r of everybody's send to rank r, which finds it at the
// sender's place in recv. All blocks have one length. With a nil send the blocks
// to send are in recv, which is overwritten.
func (p *Planner) Alltoall(s *Schedule, send, recv []byte, k datatype.Kind) error {
	s.Reset()
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if p.remote != nil {
		err := p.interAlltoall(s, send, recv, k)
		s.finish()
		return err
	}
	block := len(recv) / p.n
	if block*p.n != len(recv) || block%k.Size() != 0 || send != nil && len(send) != len(recv) {
		return fmt.Errorf("coll: %w: %d bytes to send and %d to receive for %d members", ErrBuffer, len(send), len(recv), p.n)
	}
	if send == nil {
		send = s.scratch.get(len(recv))
		s.copy(send, recv)
	}
	from, to := even(send, block), even(recv, block)
	if p.single() && p.n > 2 && !p.few() && block <= p.profile.Tuning.AlltoallShort {
		p.alltoallDoubling(s, &from, &to)
	} else if p.bundled(block) {
		p.alltoallBundled(s, &from, &to, k)
	} else {
		p.exchange(s, tagAlltoall, &from, &to, k)
	}
	s.finish()
	return nil
}

// exchange sends and receives each part directly. Empty parts travel between
// clients only.
//
// The project's profile of IMPI ch.4, Alltoall: one message per ordered pair.
func (p *Planner) exchange(s *Schedule, tag wire.Tag, from, to *parts, k datatype.Kind) {
	s.copy(to.at(p.me), from.at(p.me))
	for i := 1; i < p.n; i++ {
		dest, source := (p.me+i)%p.n, (p.me-i+p.n)%p.n
		if part := to.at(source); len(part) > 0 || !p.m.Local(p.me, source) {
			p.recv(s, source, tag, part, k)
		}
		if part := from.at(dest); len(part) > 0 || !p.m.Local(p.me, dest) {
			p.send(s, dest, tag, part, k)
		}
		if i%atOnce == 0 {
			s.wait()
		}
	}
}

// alltoallDoubling moves small blocks in few messages (Bruck): block i of the
// turned buffer has i places to go, and in the round of distance d all blocks
// whose i has that bit go d places.
func (p *Planner) alltoallDoubling(s *Schedule, from, to *parts) {
	n, block := p.n, from.block
	if block == 0 {
		return
	}
	all := s.scratch.get(n * block)
	s.copy(all, from.buf[p.me*block:])
	if p.me > 0 {
		s.copy(all[(n-p.me)*block:], from.buf[:p.me*block])
	}
	out, in := s.scratch.get(n*block), s.scratch.get(n*block)
	for d := 1; d < n; d *= 2 {
		size := 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				s.copy(out[size:size+block], all[i*block:][:block])
				size += block
			}
		}
		p.sendLocal(s, p.team.rank(p.me+d), tagAlltoall, out[:size])
		p.recvLocal(s, p.team.rank(p.me-d), tagAlltoall, in[:size])
		s.wait()
		size = 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				s.copy(all[i*block:][:block], in[size:size+block])
				size += block
			}
		}
	}
	for i := range n {
		s.copy(to.at((p.me-i+n)%n), all[i*block:][:block])
	}
}

// Alltoallv is Alltoall of blocks of different lengths. Counts and displacements
// are in elements, by rank; without displacements the blocks follow each other.
// With a nil send the blocks to send are those of recv, which are overwritten.
func (p *Planner) Alltoallv(s *Schedule, send []byte, scounts, sdispls []int,
	recv []byte, rcounts, rdispls []int, k datatype.Kind) error {
	s.Reset()
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	to, err := s.layout("the receive buffer", recv, rcounts, rdispls, k, p.partners())
	if err != nil {
		return err
	}
	var from parts
	if send == nil && scounts == nil && p.remote == nil {
		from = to
		from.buf = s.scratch.get(len(recv))
		s.copy(from.buf, recv)
	} else if from, err = s.layout("the send buffer", send, scounts, sdispls, k, p.partners()); err != nil {
		return err
	}
	if p.remote != nil {
		p.interParts(s, &from, &to, k)
		s.finish()
		return nil
	}
	if from.counts[p.me] != to.counts[p.me] {
		return fmt.Errorf("coll: %w: %d elements to itself, but %d from itself", ErrCount, from.counts[p.me], to.counts[p.me])
	}
	p.exchange(s, tagAlltoallv, &from, &to, k)
	s.finish()
	return nil
}
