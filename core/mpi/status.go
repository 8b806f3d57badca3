package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Status says what was received, or what can be.
type Status struct {
	Source int // rank in the communicator
	Tag    int
	// Err is set by the calls that complete several requests, where this one
	// failed.
	Err error

	bytes     int64
	rep       datatype.Representation // that bytes counts; Native once whole elements are received
	cancelled bool
}

var (
	emptyStatus    = Status{Source: AnySource, Tag: AnyTag}
	procNullStatus = Status{Source: ProcNull, Tag: AnyTag}
	// cancelledStatus is of a receive; a send's has nothing more.
	cancelledStatus = Status{Source: AnySource, Tag: AnyTag, cancelled: true}
)

// Bytes gives the message's size in bytes: of this machine once it is received,
// of what travels while it is only probed. For a receive into a buffer that was
// too small it is what fitted.
func (s Status) Bytes() int64 { return s.bytes }

// Cancelled tells whether the request was cancelled; then nothing was moved.
func (s Status) Cancelled() bool { return s.cancelled }

// Count gives the message's size in elements of T. whole is false where the
// bytes are no whole number of them (MPI_UNDEFINED).
func Count[T Type](s Status) (n int, whole bool) {
	size := int64(s.rep.Size(datatype.KindOf[T]()))
	return int(s.bytes / size), s.bytes%size == 0
}

// Count gives the message's size in items of datatype t, Undefined if it is no
// whole number of them (MPI_Get_count).
func (s Status) Count(t *Datatype) (n int, err error) {
	if err := t.Valid(); err != nil {
		return Undefined, failed("Status.Count", err)
	}
	items, _ := t.Count(s.rep, s.bytes)
	return int(items), nil
}

// Elements gives the message's size in basic elements, of which items of t are
// made; Undefined if the last one is cut (MPI_Get_elements).
func (s Status) Elements(t *Datatype) (n int, err error) {
	if err := t.Valid(); err != nil {
		return Undefined, failed("Status.Elements", err)
	}
	elements, _ := t.Elements(s.rep, s.bytes)
	return int(elements), nil
}

// SetElements has Elements with datatype t give n. It is for the query function of
// a generalized request.
func (s *Status) SetElements(t *Datatype, n int) error {
	if err := t.Valid(); err != nil {
		return failed("Status.SetElements", err)
	}
	bytes, ok := t.Stream(datatype.Native, int64(n))
	if !ok {
		return failed("Status.SetElements", fmt.Errorf("%w: %d elements of %v", ErrArg, n, t))
	}
	s.bytes, s.rep = bytes, datatype.Native
	return nil
}

// SetCancelled has Cancelled give flag. It is for the query function of a
// generalized request.
func (s *Status) SetCancelled(flag bool) { s.cancelled = flag }

// probed is the status of a message that was not received yet.
func (p *process) probed(m message.Status) Status {
	s := Status{Source: int(m.Source), Tag: int(m.Tag), bytes: m.Len}
	if !p.homogeneous && m.Peer >= 0 {
		s.rep = p.dataOf(m.Peer)
	}
	return s
}
