package mpi

import (
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
	rep       datatype.Representation // that bytes counts; Native once received
	cancelled bool
}

var (
	emptyStatus    = Status{Source: AnySource, Tag: AnyTag}
	procNullStatus = Status{Source: ProcNull, Tag: AnyTag}
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

func statusOf(st *message.Status) Status {
	if st.Cancelled {
		return Status{Source: AnySource, Tag: AnyTag, cancelled: true}
	}
	return Status{Source: int(st.Source), Tag: int(st.Tag), bytes: st.Len}
}

// probed is the status of a message that was not received yet.
func (p *process) probed(st message.Status) Status {
	s := statusOf(&st)
	if !p.homogeneous && st.Peer >= 0 {
		s.rep = p.data[st.Peer]
	}
	return s
}
