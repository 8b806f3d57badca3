package mpi

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
)

// verdict is what a meeting comes to: the sum of the proposals, and the parts
// that concern whom it is for.
type verdict struct {
	comm.Proposal
	parts comm.Partition
}

// postVerdict begins to send a verdict.
func (t *talk) postVerdict(rank int, v verdict) []*message.Request {
	l := append(letter(), make([]byte, comm.ProposalSize)...)
	v.Put(l[lengthLen:])
	return t.post(rank, v.parts.Append(l))
}

// readVerdict receives a verdict, of ranks below size and remote.
func (t *talk) readVerdict(rank, size, remote int) (v verdict, err error) {
	text, err := t.read(rank, comm.ProposalSize+comm.PartitionLimit(size, remote))
	if err != nil {
		return v, err
	}
	if v.Proposal, err = comm.ReadProposal(text); err != nil {
		return v, err
	}
	v.parts, err = comm.ReadPartition(text[comm.ProposalSize:], size, remote)
	return v, err
}

// swapVerdicts sends one verdict and receives another.
func (t *talk) swapVerdicts(rank int, v verdict, size, remote int) (verdict, error) {
	open := t.postVerdict(rank, v)
	answer, err := t.readVerdict(rank, size, remote)
	if e := t.sent(open); err == nil {
		err = e
	}
	return answer, err
}
