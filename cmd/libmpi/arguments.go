//go:build cgo && !386 && !arm

package main

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

// The functions that read the arguments of generated calls: see internal/abi/calls.go.

// The maximum sizes of strings in bytes: those of the ABI include the terminator; maxText is for
// all others.
const (
	maxObjectName     = 128
	maxPortName       = 1024
	maxPsetName       = 1024
	maxStringtag      = 1024
	maxInfoKey        = 256
	maxDatarep        = 128
	maxErrorString    = 512
	maxProcessorName  = 256
	maxLibraryVersion = 8192
	maxText           = 1 << 16
)

// sent returns the buffer of a message to dst, after a check that its memory exists.
func sent(p uintptr, count int64, t uintptr, dst int32) (mpi.Buffer, error) {
	return used(p, count, t, sends(dst))
}

// received returns the buffer of a message from src, after a check that its memory exists.
func received(p uintptr, count int64, t uintptr, src int32) (mpi.Buffer, error) {
	return used(p, count, t, receives(src))
}

// items returns a buffer without a check of its memory.
func items(p uintptr, count int64, t uintptr) (mpi.Buffer, error) { return buffer(p, count, t) }

// partitioned returns the buffer of a partitioned operation: count items in each of n partitions.
func partitioned(p uintptr, n int32, count int64, t, info uintptr) (mpi.Buffer, error) {
	if _, err := infoOf(info); err != nil {
		return mpi.Buffer{}, err
	}
	if n < 0 {
		return mpi.Buffer{}, fmt.Errorf("%w: %d partitions", mpi.ErrArg, n)
	}
	return whole(p, count, int(n), t)
}

// operand returns the origin's buffer of a get-accumulate, which MPI_NO_OP ignores.
func operand(op, p uintptr, count int64, t uintptr, rank int32) (mpi.Buffer, error) {
	if o, err := opOf(op); err != nil || o == mpi.NoOp {
		return mpi.Buffer{}, err
	}
	return sent(p, count, t, rank)
}

func target(rank int32, disp, count int64, t uintptr) (mpi.Target, error) {
	dt, err := takeType("target_datatype", t)
	return mpi.Target{Rank: int(rank), Disp: disp, Count: int(count), Type: dt}, err
}

func plainBytes(p uintptr, n int64) (mpi.Buffer, error) {
	return mpi.At(pointer(p), int(n), namedTypes[typeByte]), windowSize(n)
}

func octets(p uintptr, n int64) ([]byte, error) { return array[byte]("the packed data", p, int(n)) }

func bools(name string, p uintptr, n int) ([]bool, error) {
	a, err := touched[int32](name, p, n)
	out := make([]bool, len(a))
	for i, v := range a {
		out[i] = v != 0
	}
	return out, err
}

// putBools stores truth values at p, as many as there is room for.
func putBools(name string, p uintptr, room int, v []bool) error {
	out := make([]int, len(v))
	for i, b := range v {
		out[i] = int(cbool(b))
	}
	return putInts(name, p, room, out)
}

func sizes(name string, p uintptr, n int) ([]int, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: ndims is %d", comm.ErrDims, n)
	}
	return ints(name, p, n, 0)
}

// lastInt returns the last of the n ints at p, 0 if there are none.
func lastInt(name string, p uintptr, n int) (int, error) {
	a, err := ints(name, p, n, 0)
	if err != nil || n == 0 {
		return 0, err
	}
	return a[n-1], nil
}

// total returns the sum of the positive ones of the n ints at p.
func total(name string, p uintptr, n int) (sum int, err error) {
	a, err := ints(name, p, n, 0)
	for _, v := range a {
		sum += max(v, 0)
	}
	return sum, err
}

func edgeWeights(name string, p uintptr, n int) ([]int, error) {
	switch {
	case p == unweighted:
		return mpi.Unweighted, nil
	case p == weightsEmpty || n == 0:
		return mpi.WeightsEmpty, nil
	}
	return ints(name, p, n, 0)
}

// putEdgeWeights stores weights at p, unless the program wants none.
func putEdgeWeights(name string, p uintptr, room int, v []int) error {
	if p < firstAddress {
		return nil
	}
	return putInts(name, p, room, v)
}

// lengths is counts, for the n blocks of a datatype.
func lengths(name string, p uintptr, n int, which int32) ([]int64, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: count is %d", datatype.ErrCount, n)
	}
	return counts(name, p, n, which)
}

func datatypeList(name string, p uintptr, n int) ([]*mpi.Datatype, error) {
	hs, err := touched[uintptr](name, p, n)
	if err != nil {
		return nil, err
	}
	ts := make([]*mpi.Datatype, len(hs))
	for i, h := range hs {
		if ts[i], err = takeType(fmt.Sprintf("%s[%d]", name, i), h); err != nil {
			return nil, err
		}
	}
	return ts, nil
}

func spreads(sizes, distribs, args, procs uintptr, n, which int32) ([]mpi.Spread, error) {
	var lists [4][]int64
	for i, p := range [...]uintptr{sizes, distribs, args, procs} {
		var err error
		if lists[i], err = counts([...]string{"array_of_gsizes", "array_of_distribs", "array_of_dargs", "array_of_psizes"}[i], p, int(n), which); err != nil {
			return nil, err
		}
		which = 0 // the other arrays hold ints in both forms
	}
	out := make([]mpi.Spread, len(lists[0]))
	for i := range out {
		out[i] = mpi.Spread{Size: lists[0][i], How: datatype.Distribution(lists[1][i]), Arg: lists[2][i], Procs: lists[3][i]}
	}
	return out, nil
}

// wide returns the number at p: an int, or an MPI_Count if which is 1.
func wide(name string, p uintptr, which int32) (int64, error) {
	if which != 0 {
		at, err := result[int64](name, p)
		if err != nil {
			return 0, err
		}
		return *at, nil
	}
	at, err := result[int32](name, p)
	if err != nil {
		return 0, err
	}
	return int64(*at), nil
}

func loadStatus(p uintptr) (mpi.Status, error) {
	s, err := takeStatus(p)
	if err != nil {
		return mpi.Status{}, err
	}
	return s.load(), nil
}

// dimsCreate is MPI_Dims_create for the n dimensions at p.
func dimsCreate(nodes, n int, p uintptr) error {
	d, err := sizes("dims", p, n)
	if err == nil {
		err = mpi.DimsCreate(nodes, d)
	}
	if err != nil {
		return err
	}
	return putInts("dims", p, n, d)
}
