package construct

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/openimpi/impi/core/agree"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// shrinkFree is set in the flags of a shrink of which nobody is in another agreement on context
// IDs.
const shrinkFree = 1

// shrink begins an agreement on the members that are left and the context of their communicator.
func shrink(c *proc.Comm, made func(s comm.Spec) error) (*deal, error) {
	p := c.Process()
	mine := p.Comms.Contexts.BeginAgreement(!c.Wide())
	private := mine.Private
	if c.Wide() {
		private = p.Comms.Contexts.Confirm(true).Propose().Private
	}
	x := agree.Contribution{Flags: math.MaxUint64, Max: [2]uint64{uint64(mine.Max), uint64(private)}}
	if mine.Busy {
		x.Flags &^= shrinkFree
	}
	n := comm.IntraContexts
	if c.Inter() {
		n = comm.InterContexts
	}
	o, err := begin(c, x, func(o *deal) error {
		d := o.decision
		all := comm.ContextUse{Max: wire.ContextID(d.Max[0]), Private: wire.ContextID(d.Max[1]), Busy: d.Flags&shrinkFree == 0}
		context, err := p.Comms.Contexts.Conclude(mine, all, n)
		if err != nil {
			return err
		}
		// The context ID is a hash of 60 bits, of a kind that no member has drawn before: a
		// collision is too unlikely to be worth another round.
		if context >= comm.WideLimit && !p.Comms.Contexts.Claim(context) {
			return fmt.Errorf("%w: %d", comm.ErrContextRace, uint64(context))
		}
		s, err := left(c, o)
		if s.Context = context; err == nil {
			err = made(s)
		}
		if err != nil {
			Release(p, context)
		}
		return err
	})
	if err != nil {
		p.Comms.Contexts.Withdraw(mine)
	}
	return o, err
}

// left returns the groups of those that an agreement has not found lost.
func left(c *proc.Comm, o *deal) (s comm.Spec, err error) {
	var failed []comm.Proc
	for rank := range o.decision.Failed.All() {
		x, _ := o.of.group.At(rank)
		failed = append(failed, x)
	}
	lost, err := comm.GroupOf(failed)
	if err != nil {
		return s, err
	}
	s.Group = c.Comm.Group().Difference(lost)
	if !c.Inter() {
		return s, nil
	}
	if s.Remote = c.Remote().Difference(lost); s.Remote.Size() == 0 {
		return s, fmt.Errorf("%w: nobody of the remote group is left, so there is no intercommunicator; go on with a communicator of the own group, such as the one that has spawned", proc.ErrProcFailed)
	}
	return s, nil
}

// A word about losses has, after its head, the world of the lost procs, the first rank, their
// number, and the reason.
const (
	lossSize = dynamic.WorldIDSize + 2*4
	maxWhy   = 1 << 10
)

// ReportLost implements proc.Recovery. The nodes report losses to procs of this job.
func (r *recovery) ReportLost(first, last message.Peer, why string) {
	if r.p.Worlds.Description == nil {
		return // there are no other worlds
	}
	who := r.p.Worlds.Member(comm.Proc(first))
	text := append(headOf(wordLost, 0), who.World[:]...)
	text = binary.BigEndian.AppendUint32(text, uint32(who.Rank))
	text = binary.BigEndian.AppendUint32(text, uint32(last-first+1))
	text = append(text, strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")...)
	ours := !r.p.Worlds.Foreign(first)
	told := make(map[message.Peer]bool)
	for _, c := range r.p.Survival.Comms() {
		if !c.Wide() || !holds(c, first, last) {
			continue
		}
		all, _ := everybody(c)
		for x := range all.All() {
			peer := message.Peer(x)
			knows := wire.WorldRank(x) == r.p.Job.Rank || r.p.Survival.Has(peer) || ours && !r.p.Worlds.Foreign(peer)
			knows = knows || first <= peer && peer <= last && !r.p.Survival.Linked(peer)
			if !knows && !told[peer] && r.p.Survival.ReceivesNotices(peer) {
				told[peer] = true
				r.p.Survival.SendNotice(peer, text)
			}
		}
	}
}

func holds(c *proc.Comm, first, last message.Peer) bool {
	for peer := first; peer <= last; peer++ {
		if c.HasMember(peer) {
			return true
		}
	}
	return false
}

// heardOfLoss handles a message about losses. If others go on without a proc of this job, the proc
// is told so and ends; then its node reports that it is lost.
func (r *recovery) heardOfLoss(text []byte) {
	body := text[wordHead:]
	if len(body) < lossSize || r.p.Worlds.Description == nil {
		return
	}
	var name dynamic.WorldID
	copy(name[:], body)
	first, n := binary.BigEndian.Uint32(body[dynamic.WorldIDSize:]), binary.BigEndian.Uint32(body[dynamic.WorldIDSize+4:])
	why := startup.Printable(body[lossSize:])
	if w := r.p.Worlds.Known(name); w != nil {
		if size := uint32(w.Members); first < size && n > 0 && n <= size-first {
			at := message.Peer(w.First) + message.Peer(first)
			r.p.Survival.LoseOutsiders(at, at+message.Peer(n)-1, why)
		}
		return
	}
	size := uint32(r.p.Job.Size())
	if name != r.p.Worlds.Description.World || first >= size || n > size-first {
		return
	}
	for peer := message.Peer(first); peer < message.Peer(first+n); peer++ {
		switch {
		case wire.WorldRank(peer) == r.p.Job.Rank:
			r.p.Survival.Excluded(why)
		case !r.fired[peer] && !r.p.Survival.Has(peer):
			r.fired[peer] = true
			r.p.Survival.SendNotice(peer, text)
		}
	}
}
