package construct

import (
	"encoding/binary"
	"errors"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
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
	p     *proc.Process
	near  Exchange // with the members, or those of the local group
	far   Exchange // with the leader of the other side
	inter bool
	tree  comm.Tree
	me    int // position in the tree, or rank
	size  int

	Mine comm.Offer
	All  comm.Proposal
	Side uint32 // flags of the other side

	open []pactMessage
	in   [][]byte // what is received
	then func()   // after open is done
	ends func()   // once the agreement is over
	Err  error
	told bool // it is settled, and those below are being told
	over bool

	Wide      bool               // some members are of other worlds
	confirm   *comm.Confirmation // nil: it is the first round
	first     comm.Proposal      // what that has come to
	firstSide uint32
}

// pactMessage is one under way.
type pactMessage struct {
	r    *message.Request
	recv bool
}

// Agreement makes an agreement of the members of c, of which this is number seq.
func Agreement(c *proc.Comm, seq uint32) *agreement {
	tag := wire.Tag(seq & (1<<31 - 1))
	within := c
	if c.State().Local != nil {
		within = c.State().Local
	}
	x := &agreement{p: c.Process(), near: NewExchange(within, InOrder, tag), tree: comm.NewTree(within.Masters()), size: within.Size(), Wide: c.Wide()}
	x.me = x.tree.Position(within.Rank())
	if x.inter = c.State().Local != nil; x.inter {
		x.far = NewExchange(c, InOrder, tag)
	}
	return x
}

// leads tells whether this process leads its side.
func (x *agreement) leads() bool { return x.me == 0 }

// Begin proposes something, and calls ends once all is known here. The process
// is locked.
func (x *agreement) Begin(mine comm.Proposal, ends func()) {
	x.Mine, x.All, x.ends = mine.Offer, mine, ends
	x.start()
	x.p.Background.Dispatch(x)
}

// start begins a round.
func (x *agreement) start() {
	if !x.inter && x.size <= gossipers && x.tree.Clients() == 1 && !x.p.Check {
		x.gossip(1)
	} else {
		x.gather()
	}
}

// CarryOn is of backgroundOp.
func (x *agreement) CarryOn() bool {
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
		switch err := x.p.End(m.r, nil); {
		case m.recv && (err == nil && n != agreementLen || errors.Is(err, message.ErrTruncate)):
			x.All.Fault = max(x.All.Fault, FaultCode(coll.ErrMismatch))
		case err != nil && (m.recv || !x.told):
			x.fail(err)
		}
		x.open = x.open[:len(x.open)-1]
	}
	return true
}

// fail makes the agreement come to nothing.
func (x *agreement) fail(err error) {
	x.All.Fault = max(x.All.Fault, FaultCode(err))
	if x.Err == nil {
		x.Err = err
	}
}

// recv receives from a rank, which in has then.
func (x *agreement) recv(t *Exchange, rank int) {
	b := make([]byte, agreementLen)
	x.in = append(x.in, b)
	x.open = append(x.open, pactMessage{t.Irecv(rank, b), true})
}

func (x *agreement) send(t *Exchange, rank int) {
	b := make([]byte, agreementLen)
	x.All.Put(b)
	binary.BigEndian.PutUint32(b[comm.ProposalSize:], x.Side)
	x.open = append(x.open, pactMessage{t.Isend(rank, b), false})
}

// heard adds what was received.
func (x *agreement) heard() {
	for _, b := range x.in {
		p, err := comm.ReadProposal(b)
		if err != nil {
			x.fail(err)
			continue
		}
		x.All = x.All.With(p)
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
	flags, answer := x.All.Flags, x.in[0]
	x.heard()
	if below {
		x.Side = binary.BigEndian.Uint32(answer[comm.ProposalSize:])
		return
	}
	theirs, _ := comm.ReadProposal(answer)
	x.All.Flags, x.Side = flags, theirs.Flags
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
		x.p.Eng.Cancel(m.r)
		x.p.Eng.Release(m.r)
	}
	if x.open = nil; x.p.Failure == nil && x.next() {
		return
	}
	x.over = true
	x.ends()
}

// Wait makes progress until the agreement is over.
func (x *agreement) Wait() {
	for !x.over && x.p.Failure == nil {
		x.p.Turn()
	}
	if !x.over {
		x.Err = x.p.Failure
		x.end()
	}
}
