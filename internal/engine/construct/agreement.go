package construct

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// maxDissemination is the most members of one client that agree by dissemination, which takes fewer
// rounds than a tree but more messages.
const maxDissemination = 64

// agreementLen is the length of an agreement's messages: a proposal and the flags of the
// other side.
const agreementLen = comm.ProposalSize + 4

// agreement is an agreement of the members of a communicator, which all run this library, on making
// another one. It is a background operation. Each member makes a proposal; afterwards all know the
// combination of the proposals, on an intercommunicator for each side.
type agreement struct {
	p     *proc.Process
	near  Exchange // with the members, or those of the local group
	far   Exchange // with the leader of the other side
	inter bool
	tree  comm.Tree
	me    int // position in the tree, or rank
	size  int

	Mine comm.ContextUse
	All  comm.Proposal
	Side uint32 // flags of the other side's proposals

	// words are the arguments of members in addition to their proposals, all of one length: those
	// of this member and then of the ranks before it, as far as they are known. Only dissemination
	// sends them.
	words []byte

	open []openMessage
	in   [][]byte           // buffers of the receives under way
	then func(x *agreement) // called when the messages in open are done
	ends func()             // called when the agreement is over
	Err  error
	told bool // the result is known, and is being sent to the children
	over bool
	torn bool // messages were under way when it ended

	distance int  // of this round of dissemination
	below    bool // this member has a parent in the tree

	space [2][agreementLen + 2*comm.ChoiceSize]byte // for the first messages, if they fit
	used  int                                       // bytes of space that are used
	begun [2]openMessage                            // first storage of open
	came  [1][]byte                                 // first storage of in

	Wide      bool               // some members are of other worlds, so a private context ID has to be confirmed
	confirm   *comm.Confirmation // nil in the first round
	first     comm.Proposal      // combined proposals of the first round
	firstSide uint32
}

type openMessage struct {
	r    *message.Request
	recv bool
	n    int // its length
}

// Agreement makes an agreement of the members of c, of which this is number seq.
func Agreement(c *proc.Comm, seq uint32) *agreement {
	x := new(agreement)
	x.among(c, seq)
	return x
}

// idle keeps agreements of barriers that are over, for reuse: Win_free and Disconnect have one
// each.
var idle = sync.Pool{New: func() any { return new(agreement) }}

func (x *agreement) among(c *proc.Comm, seq uint32) {
	tag := wire.Tag(seq & (1<<31 - 1))
	within := c
	if c.State().Local != nil {
		within = c.State().Local
	}
	x.p, x.near, x.tree = c.Process(), NewExchange(within, InOrderBase, tag), comm.NewTree(within.Masters())
	x.size, x.Wide = within.Size(), c.Wide()
	x.me = x.tree.Position(within.Rank())
	if x.inter = c.State().Local != nil; x.inter {
		x.far = NewExchange(c, InOrderBase, tag)
	}
}

// recycle keeps the memory of an agreement that nobody needs any more, unless messages may still
// come there.
func (x *agreement) recycle() {
	if x.over && !x.torn && x.p.Failure == nil {
		*x = agreement{}
		idle.Put(x)
	}
}

func (x *agreement) leads() bool { return x.me == 0 }

// Begin makes this member's proposal, and calls ends when the result is known here. The process is
// locked.
func (x *agreement) Begin(mine comm.Proposal, ends func()) {
	x.Mine, x.All, x.ends = mine.ContextUse, mine, ends
	x.start()
	x.p.Background.Dispatch(x)
}

func (x *agreement) start() {
	if x.open == nil && x.in == nil {
		x.open, x.in = x.begun[:0], x.came[:0]
	}
	if x.disseminates() {
		x.disseminate(1)
	} else {
		x.gather()
	}
}

func (x *agreement) disseminates() bool {
	return !x.inter && x.size <= maxDissemination && x.tree.Clients() == 1 && !x.p.Check
}

// CarryOn implements proc.BackgroundOp.
func (x *agreement) CarryOn() bool {
	for !x.over {
		if !x.arrived() {
			return false
		}
		x.then(x)
	}
	return true
}

// WaitsForMessage implements proc.MessageDriven.
func (x *agreement) WaitsForMessage() bool {
	n := len(x.open)
	return x.over || n > 0 && !x.open[n-1].r.Done()
}

// arrived takes the messages that are done and reports whether all are. A message of another length
// belongs to another constructor, and one that fails to a member that has died: the error is passed
// on to the others, so that they do not wait for each other.
func (x *agreement) arrived() bool {
	for len(x.open) > 0 {
		m := x.open[len(x.open)-1]
		if !m.r.Done() {
			return false
		}
		n := m.r.Status().Len
		switch err := x.p.End(m.r, nil); {
		case m.recv && (err == nil && int(n) != m.n || errors.Is(err, message.ErrTruncate)):
			x.All.Fault = max(x.All.Fault, FaultCode(coll.ErrMismatch))
		case err != nil && (m.recv || !x.told):
			x.fail(err)
		}
		x.open = x.open[:len(x.open)-1]
	}
	return true
}

func (x *agreement) fail(err error) {
	x.All.Fault = max(x.All.Fault, FaultCode(err))
	if x.Err == nil {
		x.Err = err
	}
}

func (x *agreement) room() []byte {
	n := agreementLen + len(x.words)
	if x.used == len(x.space) || n > len(x.space[0]) {
		return make([]byte, n)
	}
	x.used++
	return x.space[x.used-1][:n]
}

func (x *agreement) recv(t *Exchange, rank int) {
	b := x.room()
	x.in = append(x.in, b)
	x.open = append(x.open, openMessage{t.Irecv(rank, b), true, len(b)})
}

func (x *agreement) send(t *Exchange, rank int) {
	b := x.room()
	x.All.Put(b)
	binary.BigEndian.PutUint32(b[comm.ProposalSize:], x.Side)
	copy(b[agreementLen:], x.words)
	x.open = append(x.open, openMessage{t.Isend(rank, b), false, len(b)})
}

func (x *agreement) addReceived() {
	for _, b := range x.in {
		p, err := comm.ReadProposal(b)
		if err != nil {
			x.fail(err)
			continue
		}
		x.All = x.All.Combine(p)
		x.words = append(x.words, b[agreementLen:]...)
	}
	x.in = x.in[:0]
}

// disseminate is a round of dissemination: each member sends what it knows to the rank at this
// distance, and receives the same from the other direction. Combining a proposal twice does no
// harm.
//
// What members know grows the same way everywhere, so that their messages of a round are equally
// long. The last round brings some words a second time: they come after all others.
func (x *agreement) disseminate(distance int) {
	if distance >= x.size {
		x.end()
		return
	}
	x.recv(&x.near, (x.me+x.size-distance)%x.size)
	x.send(&x.near, (x.me+distance)%x.size)
	x.distance = distance
	x.then = func(x *agreement) {
		x.addReceived()
		x.disseminate(2 * x.distance)
	}
}

func (x *agreement) gather() {
	for _, child := range x.tree.Children(x.me) {
		x.recv(&x.near, x.tree.Rank(child))
	}
	x.then = func(x *agreement) {
		x.addReceived()
		x.report()
	}
}

// report sends the combination to the member above and receives the result from it; the leader of
// an intercommunicator's side exchanges them with the other leader.
func (x *agreement) report() {
	parent, below := x.tree.Parent(x.me)
	x.below = below
	switch {
	case below:
		x.recv(&x.near, x.tree.Rank(parent))
		x.send(&x.near, x.tree.Rank(parent))
	case x.inter:
		x.recv(&x.far, 0)
		x.send(&x.far, 0)
	}
	x.then = func(x *agreement) {
		x.learn()
		x.scatter()
	}
}

// learn handles the result that report has received. The flags of the two sides are kept apart.
func (x *agreement) learn() {
	if len(x.in) == 0 {
		return
	}
	flags, answer := x.All.Flags, x.in[0]
	x.addReceived()
	if x.below {
		x.Side = binary.BigEndian.Uint32(answer[comm.ProposalSize:])
		return
	}
	theirs, _ := comm.ReadProposal(answer)
	x.All.Flags, x.Side = flags, theirs.Flags
}

// scatter sends the result to the members below. If one has died, the others still get it.
func (x *agreement) scatter() {
	x.told = true
	for _, child := range x.tree.Children(x.me) {
		x.send(&x.near, x.tree.Rank(child))
	}
	x.then = (*agreement).end
}

func (x *agreement) end() {
	x.torn = x.torn || len(x.open) > 0
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
		if n := len(x.open); n > 0 && !x.open[n-1].r.Done() {
			x.p.Account.AwaitSoon(x.open[n-1].r)
		} else {
			x.p.AwaitProgress()
		}
	}
	if !x.over {
		x.Err = x.p.Failure
		x.end()
	}
}
