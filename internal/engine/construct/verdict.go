package construct

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
)

// Verdict is the result of an assembly: the combination of the proposals, and the parts that
// concern the receiver.
type Verdict struct {
	comm.Proposal
	Parts comm.Partition
}

// IsendVerdict begins to send a verdict to a rank.
func (t *Exchange) IsendVerdict(rank int, v Verdict) []*message.Request {
	l := append(NewSizedMessage(), make([]byte, comm.ProposalSize)...)
	v.Put(l[SizedHeader:])
	return t.IsendSized(rank, v.Parts.Append(l))
}

// RecvVerdict receives a verdict, of ranks below size and remote.
func (t *Exchange) RecvVerdict(rank, size, remote int) (v Verdict, err error) {
	text, err := t.RecvSized(rank, comm.ProposalSize+comm.PartitionLimit(size, remote))
	if err != nil {
		return v, err
	}
	if v.Proposal, err = comm.ReadProposal(text); err != nil {
		return v, err
	}
	v.Parts, err = comm.ReadPartition(text[comm.ProposalSize:], size, remote)
	return v, err
}

// SwapVerdicts sends one verdict and receives another.
func (t *Exchange) SwapVerdicts(rank int, v Verdict, size, remote int) (Verdict, error) {
	open := t.IsendVerdict(rank, v)
	answer, err := t.RecvVerdict(rank, size, remote)
	if e := t.WaitSends(open); err == nil {
		err = e
	}
	return answer, err
}
