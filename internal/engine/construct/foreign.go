package construct

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The tags of constructors of intercommunicators whose members run other MPIs.
//
// IMPI ch.4, Collective tags.
const (
	tagDup   wire.Tag = 210
	TagMerge wire.Tag = 220
)

// foreignContext is newContext if members run another MPI, which cannot be told that this proc
// could not make the communicator.
func foreignContext(c *proc.Comm, n int, bad error) (wire.ContextID, error) {
	context, err := ForeignAgreement(c, n, func(mine wire.ContextID) (wire.ContextID, error) { return foreignMaximum(c, mine) })
	return context, errors.Join(bad, err)
}

// ForeignAgreement makes agree find the largest value that members contribute, and returns the
// first of n contexts after it. Members that run another MPI do not learn that this proc makes
// another communicator at the time, so it waits until it does not.
func ForeignAgreement(c *proc.Comm, n int, agree func(mine wire.ContextID) (wire.ContextID, error)) (wire.ContextID, error) {
	p := c.Process()
	if p.Job.Dialect == wire.Draft {
		agree = proc.DraftAgreement(agree)
	}
	for p.Comms.Contexts.AgreementOpen() && p.Failure == nil {
		p.AwaitProgress()
	}
	defer p.WakeAll()
	mine := p.Comms.Contexts.BeginAgreement(false)
	agreed, err := agree(mine.Max)
	if err != nil {
		p.Comms.Contexts.Withdraw(mine)
		return 0, err
	}
	return p.Comms.Contexts.Conclude(mine, comm.ContextUse{Max: agreed}, n)
}

// foreignMaximum returns the largest value that the members of c contribute. The process is locked,
// but not meanwhile.
func foreignMaximum(c *proc.Comm, mine wire.ContextID) (wire.ContextID, error) {
	if c.State().Local != nil {
		agreed, _, err := AgreeForMerge(c, tagDup, mine, nil)
		return agreed, err
	}
	c.Process().Unlock()
	defer c.Process().Lock()
	// IMPI ch.4, Context IDs: an Allreduce of one Uint8 with MAX.
	value := []uint64{uint64(mine)}
	err := collective.AllreduceSlices(c, nil, value, datatype.Max)
	return wire.ContextID(value[0]), err
}

// AgreeForMerge returns the largest value that the members of both sides contribute and, if high is
// not nil, the value of high of the other side's leader.
//
// IMPI ch.4, Intercomm_merge: everybody talks to the leader of the other side,
// which is its rank 0, in Uint8s on the context of collectives.
func AgreeForMerge(c *proc.Comm, tag wire.Tag, mine wire.ContextID, high *bool) (agreed wire.ContextID, theirs bool, err error) {
	t := NewExchange(c, 0, tag)
	values := []uint64{uint64(mine)}
	if high != nil {
		values = append(values, 0)
		if *high {
			values[1] = 1
		}
	}
	var in []uint64
	if c.Rank() == 0 {
		in, err = t.leadMerge(values)
	} else if err = t.sendValues(0, values[:1]); err == nil {
		in, err = t.recvValues(0, len(values))
	}
	if err != nil {
		return 0, false, err
	}
	return wire.ContextID(max(values[0], in[0])), in[len(in)-1] != 0, nil
}

// leadMerge is the part of a side's leader in AgreeForMerge. It sets values[0] to the largest
// value.
func (t *Exchange) leadMerge(values []uint64) (theirs []uint64, err error) {
	for r := 1; r < t.Group.Size(); r++ {
		in, err := t.recvValues(r, 1)
		if err != nil {
			return nil, err
		}
		values[0] = max(values[0], in[0])
	}
	if theirs, err = t.swapValues(0, values, len(values)); err != nil {
		return nil, err
	}
	values[0] = max(values[0], theirs[0])
	for r := 1; r < t.Group.Size(); r++ {
		if err := t.sendValues(r, values); err != nil {
			return nil, err
		}
	}
	return theirs, nil
}

// sendValues sends Uint8s in the form in which rank expects them.
func (t *Exchange) sendValues(rank int, values []uint64) error {
	r, err := t.isendValues(rank, values)
	if err == nil {
		_, err = t.Done(r)
	}
	return err
}

func (t *Exchange) isendValues(rank int, values []uint64) (*message.Request, error) {
	b := make([]byte, 8*len(values))
	if err := t.data.DataOf(t.peer(rank)).Encode(b, datatype.Bytes(values), datatype.Uint64, len(values)); err != nil {
		return nil, err
	}
	return t.Isend(rank, b), nil
}

func (t *Exchange) recvValues(rank, n int) ([]uint64, error) {
	b := make([]byte, 8*n)
	return t.values(rank, b, t.Irecv(rank, b))
}

func (t *Exchange) swapValues(rank int, values []uint64, n int) ([]uint64, error) {
	b := make([]byte, 8*n)
	in := t.Irecv(rank, b)
	out, err := t.isendValues(rank, values)
	if err != nil {
		return nil, err
	}
	theirs, err := t.values(rank, b, in)
	_, e := t.Done(out)
	return theirs, errors.Join(err, e)
}

// values returns what r has received into b, which must fill it.
func (t *Exchange) values(rank int, b []byte, r *message.Request) ([]uint64, error) {
	n, err := t.Done(r)
	if err != nil {
		return nil, err
	}
	if n != len(b) {
		return nil, fmt.Errorf("%w: rank %d has sent %d bytes, want %d", comm.ErrMessage, rank, n, len(b))
	}
	values := make([]uint64, n/8)
	return values, t.data.DataOf(t.peer(rank)).Decode(datatype.Bytes(values), b, datatype.Uint64, len(values))
}
