package proc

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Status describes a message that was received or can be: Source is the rank in the communicator,
// Tag the tag. Err is set by the calls that complete several requests, where this one failed.
type Status struct {
	Source int // rank in the communicator
	Tag    int
	// Err is set by calls that complete several requests, if this one has failed.
	Err error

	bytes     int64
	rep       datatype.Representation // the representation that bytes is in; Native once whole elements are received
	cancelled bool
}

// The statuses of operations without a message (MPI-4.1, 3.7.3).
var (
	EmptyStatus     = Status{Source: AnySource, Tag: AnyTag}
	ProcNullStatus  = Status{Source: ProcNull, Tag: AnyTag}
	cancelledStatus = Status{Source: AnySource, Tag: AnyTag, cancelled: true}
)

func (s Status) Bytes() int64 { return s.bytes }

func (s Status) Cancelled() bool { return s.cancelled }

func Count[T Type](s Status) (n int, whole bool) {
	size := int64(s.rep.Size(datatype.KindOf[T]()))
	return int(s.bytes / size), s.bytes%size == 0
}

func (s Status) Count(t *Datatype) (n int, err error) {
	if err := t.Valid(); err != nil {
		return Undefined, err
	}
	items, _ := t.Count(s.rep, s.bytes)
	return int(items), nil
}

func (s Status) Elements(t *Datatype) (n int, err error) {
	if err := t.Valid(); err != nil {
		return Undefined, err
	}
	elements, _ := t.Elements(s.rep, s.bytes)
	return int(elements), nil
}

func (s *Status) SetElements(t *Datatype, n int) error {
	if err := t.Valid(); err != nil {
		return err
	}
	bytes, ok := t.Stream(datatype.Native, int64(n))
	if !ok {
		return fmt.Errorf("%w: %d elements of %v", ErrArg, n, t)
	}
	s.bytes, s.rep = bytes, datatype.Native
	return nil
}

func (s *Status) SetCancelled(flag bool) { s.cancelled = flag }

// Probed returns the status of a message that was not received yet.
func (cv *conversion) Probed(m message.Status) Status {
	s := Status{Source: int(m.Source), Tag: int(m.Tag), bytes: m.Len}
	if !cv.Homogeneous && m.Peer >= 0 {
		s.rep = cv.messagesOf(m.Peer)
	}
	return s
}

func StatusOf(source, tag int, w StatusWords) Status {
	s := Status{Source: source, Tag: tag, bytes: int64(w[1])<<32 | int64(uint32(w[0])), cancelled: w[2] != 0}
	if s.bytes < 0 {
		s.bytes = 0
	}
	if r := datatype.Representation(w[3]); int32(r) == w[3] && r.Valid() {
		s.rep = r
	}
	return s
}

// StatusWords are the fields of a Status other than source, tag and error, in the form of the
// private part of C's MPI_Status: the lower and the upper half of the size in bytes, whether the
// request was cancelled, the representation of the bytes, and 0.
type StatusWords [5]int32

func (s Status) Words() StatusWords {
	w := StatusWords{int32(s.bytes), int32(s.bytes >> 32), 0, int32(s.rep)}
	if s.cancelled {
		w[2] = 1
	}
	return w
}
