package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// Roots of operations on intercommunicators (MPI-4.1, 6.2.3), with the values of the MPI ABI: the
// root itself passes Root, the others of its group ProcNull, and the members of the other group the
// root's rank.
const (
	ProcNull = -3
	Root     = -4
)

// The tags between the groups of an intercommunicator. Inside a group the tags are those of an
// intracommunicator. IMPI has no such operations; these tags are the project's own, also with
// clients of other libraries.
const (
	tagInterBarrier  wire.Tag = 400
	tagInterBcast    wire.Tag = 410
	tagInterGather   wire.Tag = 420
	tagInterScatter  wire.Tag = 430
	tagInterAlltoall wire.Tag = 440
	tagInterReduce   wire.Tag = 450
	tagInterCheck    wire.Tag = 460
)

type remote struct {
	m     *comm.Masters
	n     int
	peers []Peer // by master number
	own   wire.ClientRank
}

// NewInterPlanner returns the planner of an intercommunicator; to contains the masters of its
// remote group. Its operations are those between two groups (MPI-4.1, 6.2.2): each group receives
// what the other one contributes. There is no MPI_IN_PLACE: a nil buffer is a buffer without
// elements.
func NewInterPlanner(c *comm.Comm, to *comm.Masters, p Profile) *Planner {
	pl := NewPlanner(c, p)
	pl.remote = &remote{m: to, n: c.Remote().Size(), own: pl.m.Client(pl.mine)}
	for i := range to.Count() {
		pl.remote.peers = append(pl.remote.peers, p.peer(to.Client(i)))
	}
	return pl
}

// partners returns how many members there are to exchange with: all, or those of the remote group.
func (p *Planner) partners() int {
	if p.remote != nil {
		return p.remote.n
	}
	return p.n
}

// rep returns the representation of data that travel to and from a rank of the remote group.
func (r *remote) rep(rank int) datatype.Representation {
	i := r.m.Number(rank)
	if r.m.Client(i) == r.own {
		return datatype.Native
	}
	return r.peers[i].Rep
}

// cast adds a message to a rank of the remote group.
func (p plan) cast(rank int, tag wire.Tag, buf []byte) {
	p.add(Step{Action: Send, Remote: true, Peer: wire.CommRank(rank), Tag: tag, Kind: p.k,
		Context: p.comm.CollectiveContext(), Src: p.encode(p.remote.rep(rank), buf, p.k)})
}

// catch adds the receipt of a message that cast has sent.
func (p plan) catch(rank int, tag wire.Tag, buf []byte) {
	p.add(Step{Action: Recv, Remote: true, Peer: wire.CommRank(rank), Tag: tag, Kind: p.k,
		Context: p.comm.CollectiveContext(), Dst: p.landing(p.remote.rep(rank), buf, p.k)})
}

// swap makes the first ranks of both groups exchange buffers.
func (p plan) swap(tag wire.Tag, out, in []byte) {
	p.wait()
	if p.me == 0 {
		p.catch(0, tag, in)
		p.cast(0, tag, out)
		p.wait()
	}
}

func (p plan) interRoot(root int) error {
	if root != Root && root != ProcNull && uint(root) >= uint(p.remote.n) {
		return fmt.Errorf("coll: %w: %d, the remote group has %d members", ErrRoot, root, p.remote.n)
	}
	return nil
}

// only returns an error on an intercommunicator, which does not have the operation what.
func (p *Planner) only(what string) error {
	if p.remote == nil {
		return nil
	}
	return fmt.Errorf("coll: %w: %s on an intercommunicator", comm.ErrComm, what)
}

// interBarrier makes each group wait for its own members, and its first member for
// that of the other group.
func (p barriers) interBarrier() {
	p.barrier()
	p.swap(tagInterBarrier, nil, nil)
	p.bcasting().bcast(p.scratch.get(1), 0)
}

func (p bcasts) interBcast(buf []byte, root int) {
	switch {
	case root == ProcNull:
	case root == Root:
		p.cast(0, tagInterBcast, buf)
	default:
		if p.me == 0 {
			p.catch(root, tagInterBcast, buf)
			p.wait()
		}
		p.bcast(buf, 0)
	}
}

// sendsSeparately says that blocks of that length are better sent one by one than collected.
// Both groups know it, as all blocks have one length.
func (p plan) sendsSeparately(bytes int) bool {
	return bytes/p.k.Size()*datatype.External32.Size(p.k) >= p.profile.Tuning.WideLong
}

func equalBlocks(name string, buf []byte, k datatype.Kind, n int) (block int, err error) {
	block = len(buf) / n
	if block*n != len(buf) || block%k.Size() != 0 {
		return 0, fmt.Errorf("coll: %w: %s of %d bytes for %d blocks", ErrBuffer, name, len(buf), n)
	}
	return block, nil
}
