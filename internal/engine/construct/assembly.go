package construct

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// assembly gathers the arguments of the members of an intracommunicator, which all run this
// library, at the leader, rank 0, which decides which of them get which communicator. A decision is
// sent only to the members that it concerns. The process is locked.
type assembly struct {
	c      *proc.Comm
	t      Exchange
	tree   comm.Tree
	me     int // position
	each   int // bytes of each member's words, besides its proposal
	remote int // size of the remote ranks' group; 0: none
	// Between is called after this process has reported, unless it is the leader.
	Between func()
}

// Assemble begins an assembly of c's members for constructor number seq.
func Assemble(c *proc.Comm, seq uint32, each, remote int) *assembly {
	tree := comm.NewTree(c.Masters())
	return &assembly{
		c: c, t: NewExchange(c, InOrderBase, wire.Tag(seq&(1<<31-1))), tree: tree, me: tree.Position(c.Rank()), each: each, remote: remote,
	}
}

func (a *assembly) Leads() bool { return a.me == 0 }

// Hold gathers the proposals and makes the decision. mine and words are this member's proposal and
// arguments; decide is called at the leader with the combination of the proposals and all members'
// words, by position.
func (a *assembly) Hold(mine comm.Proposal, words []byte, decide func(all comm.Proposal, words []byte) AssemblyResult) (v AssemblyResult, err error) {
	all, words := a.gather(mine, words)
	if a.Leads() {
		v = decide(all, words)
	} else if v, err = a.hear(all, words); err != nil {
		v = AssemblyResult{Proposal: all}
		v.Fault = max(v.Fault, FaultCode(err)) // passed on, so that the children do not wait
	}
	return v, errors.Join(err, a.tell(v))
}

// gather combines this member's proposal and words with those of the members below, in the order of
// positions. It fails if one of them has called something else.
func (a *assembly) gather(mine comm.Proposal, words []byte) (comm.Proposal, []byte) {
	all := make([]byte, a.each*(a.tree.End(a.me)-a.me))
	copy(all, words)
	children := a.tree.Children(a.me)
	in, open := make([][]byte, len(children)), make([]*message.Request, len(children))
	for i, child := range children {
		in[i] = make([]byte, comm.ProposalSize+a.each*(a.tree.End(child)-child))
		open[i] = a.t.Irecv(a.tree.Rank(child), in[i])
	}
	for i, child := range children {
		n, err := a.t.Done(open[i])
		if errors.Is(err, message.ErrPeerDown) {
			mine.Fault = max(mine.Fault, FaultCode(err))
			continue
		}
		if err != nil || n != len(in[i]) {
			mine.Fault = max(mine.Fault, FaultCode(coll.ErrMismatch))
			continue
		}
		p, _ := comm.ReadProposal(in[i])
		mine = mine.Combine(p)
		copy(all[a.each*(child-a.me):], in[i][comm.ProposalSize:])
	}
	return mine, all
}

// hear reports to the member above and receives the result from it.
func (a *assembly) hear(all comm.Proposal, words []byte) (v AssemblyResult, err error) {
	parent, _ := a.tree.Parent(a.me)
	rank := a.tree.Rank(parent)
	b := make([]byte, comm.ProposalSize, comm.ProposalSize+len(words))
	all.Put(b)
	if _, err = a.t.Done(a.t.Isend(rank, append(b, words...))); err != nil {
		return v, fmt.Errorf("rank %d: %w", rank, err)
	}
	if a.Between != nil {
		a.Between()
	}
	return a.t.RecvResult(rank, a.c.Size(), a.remote)
}

// tell sends the result to the members below, to each the parts that it and those below it are in.
func (a *assembly) tell(v AssemblyResult) error {
	var open []*message.Request
	for _, child := range a.tree.Children(a.me) {
		below := AssemblyResult{v.Proposal, v.Parts.PartsOf(a.tree.Ranks(child, a.tree.End(child)))}
		open = append(open, a.t.IsendResult(a.tree.Rank(child), below)...)
	}
	return a.t.WaitSends(open)
}

// Part returns the part that contains this process, if any.
func (a *assembly) Part(v AssemblyResult) (part comm.Part, ok bool) {
	mine := v.Parts.PartsOf(comm.NewGroup(comm.Proc(a.c.Rank()), 1))
	if len(mine) == 0 {
		return part, false
	}
	return mine[0], true
}

// Conclude returns the first of the n context IDs that were agreed on. bad is why this member could
// not take part, fault the error of its messages.
func Conclude(p *proc.Process, mine comm.ContextUse, v AssemblyResult, n int, bad, fault error) (wire.ContextID, error) {
	defer p.WakeAll() // constructors with other MPIs wait for their turn
	different := inOneVoice(v.Flags)
	if bad == nil && fault == nil && v.Fault == 0 && different == nil {
		return p.Comms.Contexts.Conclude(mine, v.ContextUse, n)
	}
	p.Comms.Contexts.Withdraw(mine)
	switch {
	case bad != nil:
		return 0, bad
	case different != nil:
		return 0, different
	case fault != nil:
		return 0, fault
	}
	return 0, FailedElsewhere(v.Fault)
}
