package construct

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Members of one host agree on the board that they share, where each posts its proposal and reads
// those of all the others: this takes one exchange, whatever their number, and no message.

// nearLen is the length of what a member posts: its proposal, and its choice in Split.
const nearLen = comm.ProposalSize + comm.ChoiceSize

// near reports whether the members of c agree on the board. All of them get the same answer. They
// do not in a job that outlives its procs, where those that have agreed with a lost one by messages
// are told of it. The process is not locked.
func near(c *proc.Comm) bool {
	return c.State().Local == nil && !c.Wide() && c.Process().Survival == nil && collective.HasBoard(c)
}

// agreeNear is newContext on the board, for members that have a choice besides. Those of the others
// are put in choices, by rank, if it is not nil. The process is locked.
func agreeNear(c *proc.Comm, does uint32, bad error, own comm.Choice, choices []comm.Choice) (wire.ContextID, error) {
	p := c.Process()
	mine := comm.Proposal{ContextUse: p.Comms.Contexts.BeginAgreement(c.Rank() == 0), Fault: FaultCode(bad), Flags: does}
	var b [nearLen]byte
	mine.Put(b[:])
	own.Append(b[:comm.ProposalSize])
	all := mine
	fault := collective.ExchangeOnBoard(c, b[:], func(rank int, theirs []byte) {
		x := [nearLen]byte(theirs) // a copy: the other member can still write there
		proposal, _ := comm.ReadProposal(x[:])
		all = all.Combine(proposal)
		if choices != nil {
			choices[rank] = comm.ReadChoice(x[comm.ProposalSize:])
		}
	})
	return Conclude(p, mine.ContextUse, AssemblyResult{Proposal: all}, comm.IntraContexts, bad, fault)
}
