//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

// Special pointer values that are not addresses.
const (
	inPlace      = 1
	unweighted   = 10
	weightsEmpty = 11

	firstAddress = 4096 // no memory is mapped below it
)

func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func missing(name string, p uintptr) error {
	return fmt.Errorf("%w: %s is no address: %#x", mpi.ErrArg, name, p)
}

func result[T any](name string, p uintptr) (*T, error) {
	if p < firstAddress {
		return nil, missing(name, p)
	}
	return (*T)(pointer(p)), nil
}

func put[T any](name string, p uintptr, v T) error {
	to, err := result[T](name, p)
	if err == nil {
		*to = v
	}
	return err
}

func putInt[T ~int | ~int32](name string, p uintptr, v T) error { return put(name, p, int32(v)) }

func putFlag(name string, p uintptr, v bool) error { return put(name, p, cbool(v)) }

// putWide stores a number as an int, or MPI_UNDEFINED if it does not fit, or as an MPI_Count if
// which is 1.
func putWide(name string, p uintptr, which int32, v int64) error {
	if which != 0 {
		return put(name, p, v)
	}
	if v > math.MaxInt32 || v < math.MinInt32 {
		v = mpi.Undefined
	}
	return put(name, p, int32(v))
}

func cbool(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// array returns the n elements at p, without a check that the memory exists.
func array[T any](name string, p uintptr, n int) ([]T, error) {
	switch {
	case n < 0:
		return nil, fmt.Errorf("%w: %d elements of %s", mpi.ErrArg, n, name)
	case n == 0:
		return nil, nil
	case p < firstAddress:
		return nil, missing(name, p)
	}
	return unsafe.Slice((*T)(pointer(p)), n), nil
}

// touched is array for an array that will be copied. It touches the last byte, so that one which
// does not exist fails before memory for the copy is allocated.
func touched[T any](name string, p uintptr, n int) ([]T, error) {
	a, err := array[T](name, p, n)
	if len(a) > 0 {
		touch(unsafe.Pointer(&a[len(a)-1]))
	}
	return a, err
}

// touch reads the byte at p, so that a pointer to nothing fails here and not in the code that
// follows. Inlined, a read whose value nobody needs would be left out.
//
//go:noinline
func touch(p unsafe.Pointer) byte { return *(*byte)(p) }

// ints returns a copy of the n ints at p, which are MPI_Counts if which is 1.
func ints(name string, p uintptr, n int, which int32) ([]int, error) {
	if which != 0 {
		return copied[int64, int](name, p, n)
	}
	return copied[int32, int](name, p, n)
}

// counts is ints for 64-bit values.
func counts(name string, p uintptr, n int, which int32) ([]int64, error) {
	if which != 0 {
		return copied[int64, int64](name, p, n)
	}
	return copied[int32, int64](name, p, n)
}

func copied[From int32 | int64, To int | int64](name string, p uintptr, n int) ([]To, error) {
	a, err := touched[From](name, p, n)
	out := make([]To, len(a))
	for i, v := range a {
		out[i] = To(v)
	}
	return out, err
}

// putInts stores as many ints at p as there is room for.
func putInts(name string, p uintptr, room int, v []int) error {
	n := min(len(v), max(room, 0))
	to, err := array[int32](name, p, n)
	for i := range to {
		to[i] = int32(v[i])
	}
	return err
}

// text returns the string at p, at most most bytes of it.
func text(name string, p uintptr, most int) (string, error) {
	if p < firstAddress {
		return "", missing(name, p)
	}
	for n := range most + 1 {
		if *(*byte)(pointer(p + uintptr(n))) == 0 {
			return string(unsafe.Slice((*byte)(pointer(p)), n)), nil
		}
	}
	return "", fmt.Errorf("%w: %s has more than %d bytes", mpi.ErrArg, name, most)
}

// putText stores a string and a terminator in room bytes at p.
func putText(name string, p uintptr, room int, s string) error {
	to, err := array[byte](name, p, room)
	if err == nil && room > 0 {
		s, _, _ = strings.Cut(s, "\x00")
		to[copy(to[:room-1], s)] = 0
	}
	return err
}

func putSizedText(name string, p uintptr, room int, length uintptr, s string) error {
	if err := putText(name, p, room, s); err != nil {
		return err
	}
	s, _, _ = strings.Cut(s, "\x00")
	return putInt("resultlen", length, min(len(s), room-1))
}

// status is MPI_Status: source, tag, error and the private words.
type status [8]int32

const (
	statusSource = iota
	statusTag
	statusError
	statusPrivate
)

// store sets all fields of the status but the error.
func (s *status) store(st *mpi.Status) {
	w := st.Words()
	s[statusSource], s[statusTag] = int32(st.Source), int32(st.Tag)
	copy(s[statusPrivate:], w[:])
}

func (s *status) load() mpi.Status {
	return mpi.StatusOf(int(s[statusSource]), int(s[statusTag]), mpi.StatusWords(s[statusPrivate:]))
}

// putStatus stores a status, unless the program ignores it.
func putStatus(p uintptr, st *mpi.Status) {
	if p >= firstAddress {
		(*status)(pointer(p)).store(st)
	}
}

func takeStatus(p uintptr) (*status, error) { return result[status]("status", p) }

// release frees the object whose handle is at p, and stores the null handle.
func release(name string, p, null uintptr, free func(h uintptr) error) error {
	h, err := result[uintptr](name, p)
	if err == nil {
		err = free(*h)
	}
	if err == nil {
		*h = null
	}
	return err
}
