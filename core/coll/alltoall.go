package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// atOnce is the number of partners with which a process exchanges blocks in one round of Alltoall,
// and farAtOnce the number if a round takes as long as the way between sites.
const (
	atOnce    = 16
	farAtOnce = 256
)

type exchanges struct {
	plan
	here bool // blocks inside the client are exchanged already
}

// Alltoall sends block r of everybody's send to rank r, which stores it in the block of recv that
// belongs to the sender's rank (MPI-4.1, 6.8). All blocks have one length. With a nil send the
// blocks to send are in recv, which is overwritten.
func (p *Planner) Alltoall(s *Schedule, send, recv []byte, k datatype.Kind) error {
	o := exchanges{plan: p.begin(s, k)}
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	if o.remote != nil {
		return o.done(o.interAlltoall(send, recv))
	}
	block := len(recv) / o.n
	if block*o.n != len(recv) || block%k.Size() != 0 || send != nil && len(send) != len(recv) {
		return fmt.Errorf("coll: %w: %d bytes to send and %d to receive for %d members", ErrBuffer, len(send), len(recv), o.n)
	}
	if o.ownBlocks(PhaseAlltoall, send, recv) {
		return o.done(nil)
	}
	if send == nil {
		send = o.scratch.get(len(recv))
		o.copy(send, recv)
	}
	from, to := even(send, block), even(recv, block)
	if in, ok := o.inside(); ok && o.single() && (exchanges{plan: in}).bundled(block) {
		o.exchangeTeam(&from, &to)
	} else if o.single() && o.n > 2 && !o.few() && block <= o.profile.Tuning.AlltoallShort {
		o.alltoallDoubling(&from, &to)
	} else if o.bundled(block) {
		o.alltoallBundled(&from, &to)
	} else {
		o.here = o.ownExchange(&from, &to)
		o.exchange(tagAlltoall, &shares{parts: from, kind: k}, &shares{parts: to, kind: k})
	}
	return o.done(nil)
}

// exchange sends and receives each share directly. Empty ones travel only to clients
// of other libraries and from them: both ends know that a share is empty.
//
// The project's profile of IMPI ch.4, Alltoall: one message per ordered pair.
func (p exchanges) exchange(tag wire.Tag, from, to *shares) {
	if !p.here {
		own, _ := from.at(p.me)
		place, _ := to.at(p.me)
		p.copy(place, own)
	}
	most := atOnce
	if p.direct() {
		most = farAtOnce
	}
	for i := 1; i < p.n; i++ {
		dest, source := (p.me+i)%p.n, (p.me-i+p.n)%p.n
		if part, k := to.at(source); p.travels(source, part) {
			p.of(k).recv(source, tag, part)
		}
		if part, k := from.at(dest); p.travels(dest, part) {
			p.of(k).send(dest, tag, part)
		}
		if i%most == 0 {
			p.wait()
		}
	}
}

// travels reports whether a share to or from a rank is a message. Between clients of which one does
// not run this library IMPI says that all of them are.
func (p exchanges) travels(rank int, share []byte) bool {
	if p.m.Local(p.me, rank) {
		return len(share) > 0 && !p.here
	}
	return len(share) > 0 || !p.sites.ours
}

// alltoallDoubling moves small blocks in few messages (Bruck's algorithm). In the rotated buffer
// block i is for the process i places further on; in the round of distance d each block whose i has
// the bit d moves d places.
func (p exchanges) alltoallDoubling(from, to *parts) {
	n, block := p.n, from.block
	if block == 0 {
		return
	}
	all := p.scratch.get(n * block)
	p.copy(all, from.buf[p.me*block:])
	if p.me > 0 {
		p.copy(all[(n-p.me)*block:], from.buf[:p.me*block])
	}
	out, in := p.scratch.get(n*block), p.scratch.get(n*block)
	for d := 1; d < n; d *= 2 {
		size := 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				p.copy(out[size:size+block], all[i*block:][:block])
				size += block
			}
		}
		p.sendLocal(p.team.rank(p.me+d), tagAlltoall, out[:size])
		p.recvLocal(p.team.rank(p.me-d), tagAlltoall, in[:size])
		p.wait()
		size = 0
		for i := d; i < n; i++ {
			if i&d != 0 {
				p.copy(all[i*block:][:block], in[size:size+block])
				size += block
			}
		}
	}
	for i := range n {
		p.copy(to.at((p.me-i+n)%n), all[i*block:][:block])
	}
}

// Alltoallv is Alltoall of blocks of different lengths (MPI-4.1, 6.8; IMPI ch.4, Alltoallv). Counts
// and displacements are in elements, by rank; without displacements the blocks follow each other.
// With a nil send the blocks to send are those of recv, which are overwritten.
func (p *Planner) Alltoallv(s *Schedule, send []byte, scounts, sdispls []int,
	recv []byte, rcounts, rdispls []int, k datatype.Kind) error {
	o := exchanges{plan: p.begin(s, k)}
	if err := checkPair(send, recv, k); err != nil {
		return err
	}
	to, err := o.layout("the receive buffer", recv, rcounts, rdispls, o.partners())
	if err != nil {
		return err
	}
	var from parts
	if send == nil && scounts == nil && o.remote == nil {
		from = to
		from.buf = o.scratch.get(len(recv))
		o.copy(from.buf, recv)
	} else if from, err = o.layout("the send buffer", send, scounts, sdispls, o.partners()); err != nil {
		return err
	}
	if o.remote != nil {
		o.interParts(&from, &to)
		return o.done(nil)
	}
	if from.counts[o.me] != to.counts[o.me] {
		return fmt.Errorf("coll: %w: %d elements to itself, but %d from itself", ErrCount, from.counts[o.me], to.counts[o.me])
	}
	o.exchange(tagAlltoallv, &shares{parts: from, kind: k}, &shares{parts: to, kind: k})
	return o.done(nil)
}
