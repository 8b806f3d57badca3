package comm

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Proposal is a process's contribution to the making of a communicator and, after the proposals of
// all members were combined, the result.
type Proposal struct {
	ContextUse
	Fault uint32 // reason why it cannot be made, as a number of the caller; 0: it can
	Flags uint32 // below 1<<31; combined by or
}

// ProposalSize is the size of an encoded proposal in bytes.
const ProposalSize = 24

const busyFlag = 1 << 31

// Combine returns what both proposals demand together. The order in which proposals are combined
// does not matter: of two faults, the larger number remains.
func (p Proposal) Combine(q Proposal) Proposal {
	return Proposal{p.ContextUse.Combine(q.ContextUse), max(p.Fault, q.Fault), p.Flags | q.Flags}
}

// Put encodes the proposal into the first ProposalSize bytes of b.
func (p Proposal) Put(b []byte) {
	flags := p.Flags
	if p.Busy {
		flags |= busyFlag
	}
	binary.BigEndian.PutUint64(b, uint64(p.Max))
	binary.BigEndian.PutUint64(b[8:], uint64(p.Private))
	binary.BigEndian.PutUint32(b[16:], p.Fault)
	binary.BigEndian.PutUint32(b[20:], flags)
}

// ReadProposal decodes the first ProposalSize bytes of b, which need not be trusted. The error is
// ErrMessage if b is shorter.
func ReadProposal(b []byte) (p Proposal, err error) {
	if len(b) < ProposalSize {
		return p, fmt.Errorf("comm: %w: a proposal of %d bytes, want %d", ErrMessage, len(b), ProposalSize)
	}
	flags := binary.BigEndian.Uint32(b[20:])
	return Proposal{
		ContextUse: ContextUse{
			Max: wire.ContextID(binary.BigEndian.Uint64(b)), Private: wire.ContextID(binary.BigEndian.Uint64(b[8:])),
			Busy: flags&busyFlag != 0,
		},
		Fault: binary.BigEndian.Uint32(b[16:]), Flags: flags &^ busyFlag,
	}, nil
}
