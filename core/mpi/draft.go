package mpi

import (
	"math"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// The draft of March 1999 has one context ID for a communicator where we have
// two, and no ranks in packets; core/message tells how that is written. What is
// left to do here is to know which rank a proc has, and to agree on new contexts in
// the draft's numbers.

// enroll notes whom the contexts of c are for.
func (p *process) enroll(c *comm.Comm) {
	if p.job.Dialect != wire.Draft {
		return
	}
	p.groups.Store(c.Context(), c.Partners())
	if c.Inter() {
		p.enroll(c.Local())
	}
}

// strike forgets c.
func (p *process) strike(c *comm.Comm) {
	if p.job.Dialect != wire.Draft {
		return
	}
	p.groups.Delete(c.Context())
	if c.Inter() {
		p.strike(c.Local())
	}
}

// rankIn gives the rank of a peer among those whom a context is for. Where nobody
// knows it any more, it is that in the world.
func (p *process) rankIn(context wire.ContextID, peer message.Peer) wire.CommRank {
	if g, ok := p.groups.Load(context &^ 1); ok {
		if rank, ok := g.(*comm.Group).Rank(comm.Proc(peer)); ok {
			return wire.CommRank(rank)
		}
	}
	return wire.CommRank(peer)
}

// draftAgreement has agree work on context IDs as the draft has them: one for each
// communicator, where the largest of ours belongs to the second of a pair.
func draftAgreement(agree func(wire.ContextID) (wire.ContextID, error)) func(wire.ContextID) (wire.ContextID, error) {
	return func(mine wire.ContextID) (wire.ContextID, error) {
		agreed, err := agree(mine >> 1)
		if agreed >= comm.ContextLimit>>1 {
			return math.MaxUint64, err // there are none left
		}
		return agreed<<1 | 1, err
	}
}
