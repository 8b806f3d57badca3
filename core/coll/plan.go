package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// plan is an operation that is being planned: the communicator, the schedule so far, and the kind
// of the elements. The types that plan families of operations, such as bcasts and reductions, embed
// it.
type plan struct {
	*Planner
	*Schedule
	k datatype.Kind
}

func (p *Planner) begin(s *Schedule, k datatype.Kind) plan {
	s.Reset()
	return plan{p, s, k}
}

func (p plan) done(err error) error {
	p.finish()
	return err
}

func (p plan) of(k datatype.Kind) plan {
	p.k = k
	return p
}

// short reports whether a block of n elements is shorter than XSIZE, and so goes by way of the
// masters (IMPI ch.4, Collective crossovers).
func (p plan) short(n int) bool {
	limit := p.profile.XSize
	if p.sites.ours {
		limit = p.profile.Tuning.WideLong
	}
	return n*datatype.External32.Size(p.k) < limit
}

// send adds a message to rank: as it is in memory to a process of the own client, to others in the
// representation that their client takes (IMPI ch.1, Data Format).
func (p plan) send(rank int, tag wire.Tag, buf []byte) {
	if p.isHosts || p.m.Local(p.me, rank) {
		p.sendLocal(rank, tag, buf)
		return
	}
	peer := &p.peers[p.m.Number(rank)]
	p.add(Step{Action: Send, Peer: p.commRank(rank), Tag: tag, Kind: p.k,
		Context: p.context(peer, tag), Src: p.encode(peer.Rep, buf, p.k)})
}

func (p plan) sendLocal(rank int, tag wire.Tag, buf []byte) {
	p.add(Step{Action: Send, Peer: p.commRank(rank), Tag: tag + inner,
		Context: p.comm.CollectiveContext(), Src: buf})
}

// recv adds the receive of a message that rank sends with send. The elements are in buf after the
// round.
func (p plan) recv(rank int, tag wire.Tag, buf []byte) {
	if p.isHosts || p.m.Local(p.me, rank) {
		p.recvLocal(rank, tag, buf)
		return
	}
	peer := &p.peers[p.m.Number(rank)]
	p.add(Step{Action: Recv, Peer: p.commRank(rank), Tag: tag, Kind: p.k,
		Context: p.context(peer, tag), Dst: p.landing(peer.Rep, buf, p.k)})
}

func (p plan) recvLocal(rank int, tag wire.Tag, buf []byte) {
	p.add(Step{Action: Recv, Peer: p.commRank(rank), Tag: tag + inner,
		Context: p.comm.CollectiveContext(), Dst: buf})
}

// ownBlock returns this process's block: part, or if that is nil its place in whole, which has a
// block for each member.
func (p plan) ownBlock(name string, part, whole []byte) ([]byte, error) {
	block := len(part)
	if part == nil {
		block = len(whole) / p.n
	}
	if block*p.n != len(whole) || block%p.k.Size() != 0 {
		return nil, fmt.Errorf("coll: %w: %s of %d bytes for %d blocks of %d bytes", ErrBuffer, name, len(whole), p.n, block)
	}
	if part == nil {
		part = whole[p.me*block:][:block:block]
	}
	return part, nil
}

// ownPart returns this process's part: part, or if that is nil its place in b. It checks the
// length.
func (p plan) ownPart(name string, part []byte, b *parts) ([]byte, error) {
	place := b.at(p.me)
	if part == nil {
		return place, nil
	}
	if len(part) != len(place) {
		return nil, fmt.Errorf("coll: %w: %s has %d bytes, its count says %d", ErrBuffer, name, len(part), len(place))
	}
	return part, nil
}

// ring passes parts around the team until all have the whole buffer, of which the process at place
// v has part v. Empty parts do not travel.
func (p plan) ring(tag wire.Tag, b *parts, v int) { p.ringBut(tag, b, v, -1) }

// ringFrom is ring where the process has its part in own, from where it sends it. The copy in b is
// made meanwhile. Nobody else reads it, or only once it is in memory: until then reading it takes
// several times as long as reading own, which has not changed, and so does writing it again.
func (p plan) ringFrom(tag wire.Tag, b *parts, v int, own []byte) {
	n := p.team.size()
	if n > 1 && len(own) > 0 {
		p.wait()
		p.sendLocal(p.team.rank(p.team.me+1), tag, own)
		if part := b.at((v - 1 + n) % n); len(part) > 0 {
			p.recvLocal(p.team.rank(p.team.me-1), tag, part)
		}
		p.copy(b.at(v), own)
		p.ringOn(tag, b, v, -1, 1)
		return
	}
	p.copy(b.at(v), own)
	p.ring(tag, b, v)
}

// ringBut is ring where one process, the one with part full, has all parts already.
func (p plan) ringBut(tag wire.Tag, b *parts, v, full int) { p.ringOn(tag, b, v, full, 0) }

// ringOn is ringBut from round first on.
func (p plan) ringOn(tag wire.Tag, b *parts, v, full, first int) {
	n := p.team.size()
	next := (p.team.me + 1) % n
	for i := first; i < n-1; i++ {
		p.wait()
		if part := b.at((v - i + n) % n); len(part) > 0 && next != full {
			p.sendLocal(p.team.rank(next), tag, part)
		}
		if part := b.at((v - i - 1 + n) % n); len(part) > 0 && p.team.me != full {
			p.recvLocal(p.team.rank(p.team.me-1), tag, part)
		}
	}
	p.wait()
}
