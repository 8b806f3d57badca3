package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Roots of operations on intercommunicators, with the values of the MPI ABI: the
// root itself gives Root, the others of its group ProcNull, and the members of
// the other group the root's rank.
const (
	ProcNull = -3
	Root     = -4
)

// The tags between the groups of an intercommunicator. Those inside a group are
// as in an intracommunicator. IMPI knows no such operations; this is the
// project's own profile, also towards others.
const (
	tagInterBarrier  wire.Tag = 400
	tagInterBcast    wire.Tag = 410
	tagInterGather   wire.Tag = 420
	tagInterScatter  wire.Tag = 430
	tagInterAlltoall wire.Tag = 440
	tagInterReduce   wire.Tag = 450
	tagInterCheck    wire.Tag = 460
)

// remote is the other group of an intercommunicator.
type remote struct {
	m     *comm.Masters
	n     int
	peers []Peer // by master number
	own   wire.ClientRank
}

// NewInterPlanner makes the planner of an intercommunicator; to has the masters of
// its remote group. Of such a planner the operations are those of MPI-2 between
// two groups: what one contributes, the other gets. Nothing is in place: a nil
// buffer has no elements.
func NewInterPlanner(c *comm.Comm, to *comm.Masters, p Profile) *Planner {
	pl := NewPlanner(c, p)
	pl.remote = &remote{m: to, n: c.Remote().Size(), own: pl.m.Client(pl.mine)}
	for i := range to.Count() {
		pl.remote.peers = append(pl.remote.peers, p.peer(to.Client(i)))
	}
	return pl
}

// partners is how many members there are to exchange with.
func (p *Planner) partners() int {
	if p.remote != nil {
		return p.remote.n
	}
	return p.n
}

// rep is how data travels to and from a rank of the remote group.
func (r *remote) rep(rank int) datatype.Representation {
	i := r.m.Number(rank)
	if r.m.Client(i) == r.own {
		return datatype.Native
	}
	return r.peers[i].Rep
}

// cast adds a message to a rank of the remote group.
func (p *Planner) cast(s *Schedule, rank int, tag wire.Tag, buf []byte, k datatype.Kind) {
	s.add(Step{Action: Send, Remote: true, Peer: wire.CommRank(rank), Tag: tag, Kind: k,
		Context: p.comm.CollectiveContext(), Src: s.encode(p.remote.rep(rank), buf, k)})
}

// catch adds the receipt of a message that cast has sent.
func (p *Planner) catch(s *Schedule, rank int, tag wire.Tag, buf []byte, k datatype.Kind) {
	s.add(Step{Action: Recv, Remote: true, Peer: wire.CommRank(rank), Tag: tag, Kind: k,
		Context: p.comm.CollectiveContext(), Dst: s.landing(p.remote.rep(rank), buf, k)})
}

// swap has the first ranks of both groups exchange buffers.
func (p *Planner) swap(s *Schedule, tag wire.Tag, out, in []byte, k datatype.Kind) {
	s.wait()
	if p.me == 0 {
		p.catch(s, 0, tag, in, k)
		p.cast(s, 0, tag, out, k)
		s.wait()
	}
}

// interRoot checks the root of an operation between groups.
func (p *Planner) interRoot(root int) error {
	if root != Root && root != ProcNull && uint(root) >= uint(p.remote.n) {
		return fmt.Errorf("coll: %w: %d, the remote group has %d members", ErrRoot, root, p.remote.n)
	}
	return nil
}

// only reports an operation that intercommunicators do not have.
func (p *Planner) only(what string) error {
	if p.remote == nil {
		return nil
	}
	return fmt.Errorf("coll: %w: %s on an intercommunicator", comm.ErrComm, what)
}

// interBarrier has each group wait for its own members, and its first member for
// that of the other group.
func (p *Planner) interBarrier(s *Schedule) {
	p.barrier(s)
	p.swap(s, tagInterBarrier, nil, nil, datatype.Byte)
	p.bcast(s, s.scratch.get(1), datatype.Byte, 0)
}

func (p *Planner) interBcast(s *Schedule, buf []byte, k datatype.Kind, root int) {
	switch {
	case root == ProcNull:
	case root == Root:
		p.cast(s, 0, tagInterBcast, buf, k)
	default:
		if p.me == 0 {
			p.catch(s, root, tagInterBcast, buf, k)
			s.wait()
		}
		p.bcast(s, buf, k, 0)
	}
}

// apart says that blocks of that length are better sent one by one than collected.
// Both groups know it, as all blocks have one length.
func (p *Planner) apart(k datatype.Kind, bytes int) bool {
	return bytes/k.Size()*datatype.External32.Size(k) >= p.profile.Tuning.WideLong
}

// interGather collects short blocks at the first member, who sends them on.
func (p *Planner) interGather(s *Schedule, send, recv []byte, k datatype.Kind, root int) error {
	switch {
	case root == ProcNull:
	case root == Root:
		block, err := equalBlocks("the receive buffer", recv, k, p.remote.n)
		switch {
		case err != nil:
			return err
		case !p.apart(k, block):
			p.catch(s, 0, tagInterGather, recv, k)
		default:
			from := even(recv, block)
			for r := range p.remote.n {
				p.catch(s, r, tagInterGather, from.at(r), k)
			}
		}
	case p.apart(k, len(send)):
		p.cast(s, root, tagInterGather, send, k)
	default:
		whole := p.collect(s, send, k)
		if p.me == 0 {
			p.cast(s, root, tagInterGather, whole, k)
		}
	}
	return nil
}

// collect brings the blocks of the own group to its first member.
func (p *Planner) collect(s *Schedule, own []byte, k datatype.Kind) (whole []byte) {
	if p.me == 0 {
		whole = s.scratch.get(p.n * len(own))
	}
	p.gather(s, own, whole, k, 0)
	s.wait()
	return whole
}

func (p *Planner) interScatter(s *Schedule, send, recv []byte, k datatype.Kind, root int) error {
	switch {
	case root == ProcNull:
	case root == Root:
		block, err := equalBlocks("the send buffer", send, k, p.remote.n)
		switch {
		case err != nil:
			return err
		case !p.apart(k, block):
			p.cast(s, 0, tagInterScatter, send, k)
		default:
			to := even(send, block)
			for r := range p.remote.n {
				p.cast(s, r, tagInterScatter, to.at(r), k)
			}
		}
	case p.apart(k, len(recv)):
		p.catch(s, root, tagInterScatter, recv, k)
	default:
		var whole []byte
		if p.me == 0 {
			whole = s.scratch.get(p.n * len(recv))
			p.catch(s, root, tagInterScatter, whole, k)
			s.wait()
		}
		p.scatter(s, whole, recv, k, 0)
	}
	return nil
}

// equalBlocks divides a buffer among n members.
func equalBlocks(name string, buf []byte, k datatype.Kind, n int) (block int, err error) {
	block = len(buf) / n
	if block*n != len(buf) || block%k.Size() != 0 {
		return 0, fmt.Errorf("coll: %w: %s of %d bytes for %d blocks", ErrBuffer, name, len(buf), n)
	}
	return block, nil
}

// interGatherv has everybody send to the root. Empty blocks do not travel.
func (p *Planner) interGatherv(s *Schedule, send, recv []byte, counts, displs []int, k datatype.Kind, root int) error {
	switch {
	case root == ProcNull:
	case root == Root:
		to, err := s.layout("the receive buffer", recv, counts, displs, k, p.remote.n)
		if err != nil {
			return err
		}
		for r := range p.remote.n {
			if part := to.at(r); len(part) > 0 {
				p.catch(s, r, tagInterGather, part, k)
			}
		}
	case len(send) > 0:
		p.cast(s, root, tagInterGather, send, k)
	}
	return nil
}

func (p *Planner) interScatterv(s *Schedule, send []byte, counts, displs []int, recv []byte, k datatype.Kind, root int) error {
	switch {
	case root == ProcNull:
	case root == Root:
		from, err := s.layout("the send buffer", send, counts, displs, k, p.remote.n)
		if err != nil {
			return err
		}
		for r := range p.remote.n {
			if part := from.at(r); len(part) > 0 {
				p.cast(s, r, tagInterScatter, part, k)
			}
		}
	case len(recv) > 0:
		p.catch(s, root, tagInterScatter, recv, k)
	}
	return nil
}
