package construct

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
)

// AssemblyResult is the result of an assembly: the combination of the proposals, and the parts that
// concern the receiver.
type AssemblyResult struct {
	comm.Proposal
	Parts comm.Partition
}

// IsendResult begins to send a result to a rank.
func (t *Exchange) IsendResult(rank int, v AssemblyResult) []*message.Request {
	l := append(NewSizedMessage(), make([]byte, comm.ProposalSize)...)
	v.Put(l[SizedHeader:])
	return t.IsendSized(rank, v.Parts.Append(l))
}

// RecvResult receives a result, of ranks below size and remote.
func (t *Exchange) RecvResult(rank, size, remote int) (v AssemblyResult, err error) {
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

// SwapResults sends one result and receives another.
func (t *Exchange) SwapResults(rank int, v AssemblyResult, size, remote int) (AssemblyResult, error) {
	open := t.IsendResult(rank, v)
	answer, err := t.RecvResult(rank, size, remote)
	if e := t.WaitSends(open); err == nil {
		err = e
	}
	return answer, err
}
