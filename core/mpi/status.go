package mpi

import "github.com/openimpi/impi/internal/engine/proc"

// Status says what was received, or what can be: Source is the rank in the communicator, Tag the tag.
// Err is set by the calls that complete several requests, where this one failed.
type Status proc.Status

// Bytes gives the message's size in bytes: of this machine once it is received,
// of what travels while it is only probed. For a receive into a buffer that was
// too small it is what fitted.
func (s Status) Bytes() int64 { return proc.Status(s).Bytes() }

// Cancelled tells whether the request was cancelled; then nothing was moved.
func (s Status) Cancelled() bool { return proc.Status(s).Cancelled() }

// Count gives the message's size in elements of T. whole is false where the
// bytes are no whole number of them (MPI_UNDEFINED).
func Count[T Type](s Status) (n int, whole bool) { return proc.Count[T](proc.Status(s)) }

// Count gives the message's size in items of datatype t, Undefined if it is no
// whole number of them (MPI_Get_count).
func (s Status) Count(t *Datatype) (n int, err error) { return proc.Status(s).Count(t) }

// Elements gives the message's size in basic elements, of which items of t are
// made; Undefined if the last one is cut (MPI_Get_elements).
func (s Status) Elements(t *Datatype) (n int, err error) { return proc.Status(s).Elements(t) }

// SetElements has Elements with datatype t give n. It is for the query function of
// a generalized request.
func (s *Status) SetElements(t *Datatype, n int) error { return s.in().SetElements(t, n) }

// SetCancelled has Cancelled give flag. It is for the query function of a
// generalized request.
func (s *Status) SetCancelled(flag bool) { s.in().SetCancelled(flag) }

// StatusOf is the inverse of Words. It takes any words: what makes no sense becomes an
// empty status.
func StatusOf(source, tag int, w StatusWords) Status {
	return Status(proc.StatusOf(source, tag, proc.StatusWords(w)))
}

// StatusWords are what a Status has besides source, tag and error, as the private
// part of C's MPI_Status keeps it: the lower and the upper half of the size in
// bytes, whether the request was cancelled, what the bytes count, and 0.
type StatusWords [5]int32

// Words gives them.
func (s Status) Words() StatusWords { return StatusWords(proc.Status(s).Words()) }
