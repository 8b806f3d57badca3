package mpi

import "github.com/openimpi/impi/core/datatype"

// StatusWords are what a Status has besides source, tag and error, as the private
// part of C's MPI_Status keeps it: the lower and the upper half of the size in
// bytes, whether the request was cancelled, what the bytes count, and 0.
type StatusWords [5]int32

// Words gives them.
func (s Status) Words() StatusWords {
	w := StatusWords{int32(s.bytes), int32(s.bytes >> 32), 0, int32(s.rep)}
	if s.cancelled {
		w[2] = 1
	}
	return w
}

// StatusOf is the inverse of Words. It takes any words: what makes no sense becomes an
// empty status.
func StatusOf(source, tag int, w StatusWords) Status {
	s := Status{Source: source, Tag: tag, bytes: int64(w[1])<<32 | int64(uint32(w[0])), cancelled: w[2] != 0}
	if s.bytes < 0 {
		s.bytes = 0
	}
	if w[3] > 0 && w[3] <= int32(datatype.NativeX86) {
		s.rep = datatype.Representation(w[3])
	}
	return s
}
