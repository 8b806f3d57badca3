package mpi

import (
	"encoding/binary"
	"errors"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// gossipers is up to how many members of one client agree by telling each other
// directly, which takes fewer messages one after the other than a tree, but more
// in all.
const gossipers = 64

// agreementLen is the length of an agreement's messages: a proposal and the flags of the
// other side.
const agreementLen = comm.ProposalSize + 4

// agreement is what is agreed between the members of a communicator, all of our own sites,
// on the making of another one. It goes on in the background. Every member tells
// what it proposes; afterwards all of them know the sum of it: on an
// intercommunicator, of both sides.
type agreement struct {
	p     *process
	near  talk // with the members, or those of the local group
	far   talk // with the leader of the other side
	inter bool
	tree  comm.Tree
	me    int // position in the tree, or rank
	size  int

	mine comm.Offer
	all  comm.Proposal
	side uint32 // flags of the other side

	open []pactMessage
	in   [][]byte // what is received
	then func()   // after open is done
	ends func()   // once the agreement is over
	err  error
	told bool // it is settled, and those below are being told
	over bool

	wide      bool               // some members are of other worlds
	confirm   *comm.Confirmation // nil: it is the first round
	first     comm.Proposal      // what that has come to
	firstSide uint32
}

// pactMessage is one under way.
type pactMessage struct {
	r    *message.Request
	recv bool
}

// agreement makes an agreement of the members of c, of which this is number seq.
func (c *Comm) agreement(seq uint32) *agreement {
	tag := wire.Tag(seq & (1<<31 - 1))
	within := c
	if c.local != nil {
		within = c.local
	}
	x := &agreement{p: c.p, near: within.talk(inOrder, tag), tree: comm.NewTree(within.Masters()), size: within.Size(), wide: c.wide()}
	x.me = x.tree.Position(within.Rank())
	if x.inter = c.local != nil; x.inter {
		x.far = c.talk(inOrder, tag)
	}
	return x
}

// leads tells whether this process leads its side.
func (x *agreement) leads() bool { return x.me == 0 }

// begin proposes something, and calls ends once all is known here. The process
// is locked.
func (x *agreement) begin(mine comm.Proposal, ends func()) {
	x.mine, x.all, x.ends = mine.Offer, mine, ends
	x.start()
	x.p.dispatch(x)
}

// start begins a round.
func (x *agreement) start() {
	if !x.inter && x.size <= gossipers && x.tree.Clients() == 1 && !x.p.check {
		x.gossip(1)
	} else {
		x.gather()
	}
}

// carryOn is of backgroundOp.
func (x *agreement) carryOn() bool {
	for !x.over {
		if !x.arrived() {
			return false
		}
		x.then()
	}
	return true
}

// arrived takes the messages that are done and tells whether all are. A message
// of another length is of another constructor, and one that fails is of somebody who
// has died: the others have to hear of it, and do not wait for each other then.
func (x *agreement) arrived() bool {
	for len(x.open) > 0 {
		m := x.open[len(x.open)-1]
		if !m.r.Done() {
			return false
		}
		n := m.r.Status().Len
		switch err := x.p.end(m.r, nil); {
		case m.recv && (err == nil && n != agreementLen || errors.Is(err, message.ErrTruncate)):
			x.all.Fault = max(x.all.Fault, faultCode(coll.ErrMismatch))
		case err != nil && (m.recv || !x.told):
			x.fail(err)
		}
		x.open = x.open[:len(x.open)-1]
	}
	return true
}

// fail makes the agreement come to nothing.
func (x *agreement) fail(err error) {
	x.all.Fault = max(x.all.Fault, faultCode(err))
	if x.err == nil {
		x.err = err
	}
}

// recv receives from a rank, which in has then.
func (x *agreement) recv(t *talk, rank int) {
	b := make([]byte, agreementLen)
	x.in = append(x.in, b)
	x.open = append(x.open, pactMessage{t.recv(rank, b), true})
}

func (x *agreement) send(t *talk, rank int) {
	b := make([]byte, agreementLen)
	x.all.Put(b)
	binary.BigEndian.PutUint32(b[comm.ProposalSize:], x.side)
	x.open = append(x.open, pactMessage{t.send(rank, b), false})
}

// heard adds what was received.
func (x *agreement) heard() {
	for _, b := range x.in {
		p, err := comm.ReadProposal(b)
		if err != nil {
			x.fail(err)
			continue
		}
		x.all = x.all.With(p)
	}
	x.in = x.in[:0]
}

// gossip is a round of it: tell the one that many ranks further what is known,
// and hear the same from before. Hearing something twice does no harm.
func (x *agreement) gossip(distance int) {
	if distance >= x.size {
		x.end()
		return
	}
	x.recv(&x.near, (x.me+x.size-distance)%x.size)
	x.send(&x.near, (x.me+distance)%x.size)
	x.then = func() {
		x.heard()
		x.gossip(2 * distance)
	}
}

// gather hears from below in the tree.
func (x *agreement) gather() {
	for _, child := range x.tree.Children(x.me) {
		x.recv(&x.near, x.tree.Rank(child))
	}
	x.then = func() {
		x.heard()
		x.report()
	}
}

// report tells the one above, or the leader of the other side, and hears what it
// has to say.
func (x *agreement) report() {
	parent, below := x.tree.Parent(x.me)
	switch {
	case below:
		x.recv(&x.near, x.tree.Rank(parent))
		x.send(&x.near, x.tree.Rank(parent))
	case x.inter:
		x.recv(&x.far, 0)
		x.send(&x.far, 0)
	}
	x.then = func() {
		x.learn(below)
		x.scatter()
	}
}

// learn takes the answer to report: the flags are kept by sides.
func (x *agreement) learn(below bool) {
	if len(x.in) == 0 {
		return
	}
	flags, answer := x.all.Flags, x.in[0]
	x.heard()
	if below {
		x.side = binary.BigEndian.Uint32(answer[comm.ProposalSize:])
		return
	}
	theirs, _ := comm.ReadProposal(answer)
	x.all.Flags, x.side = flags, theirs.Flags
}

// scatter tells those below. Whoever of them has died changes nothing any more.
func (x *agreement) scatter() {
	x.told = true
	for _, child := range x.tree.Children(x.me) {
		x.send(&x.near, x.tree.Rank(child))
	}
	x.then = x.end
}

func (x *agreement) end() {
	for _, m := range x.open {
		x.p.eng.Cancel(m.r)
		x.p.eng.Release(m.r)
	}
	if x.open = nil; x.p.failure == nil && x.next() {
		return
	}
	x.over = true
	x.ends()
}

// wait makes progress until the agreement is over.
func (x *agreement) wait() {
	for !x.over && x.p.failure == nil {
		x.p.turn()
	}
	if !x.over {
		x.err = x.p.failure
		x.end()
	}
}
