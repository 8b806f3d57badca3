package main

import (
	"bytes"
	"math"
	"math/big"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

// types: two ranks. One array of each basic type; the receiver compares it with its own and
// sends it back.
func types(a []int) {
	large := uint64(0xfedcba9876543210)
	for _, f := range []func(from, to int){
		travel("MPI_CHAR", []byte{'a', 0, 127}),
		travel("MPI_UNSIGNED_CHAR", []byte{0, 128, 255}),
		travel("MPI_BYTE", []byte{0, 129, 255}),
		travel("MPI_SHORT", []int16{0, -1, 32767, -32768, 0x1234}),
		travel("MPI_UNSIGNED_SHORT", []uint16{0, 65535, 0x1234}),
		travel("MPI_INT", []int32{0, -1, math.MaxInt32, math.MinInt32, 0x12345678}),
		travel("MPI_UNSIGNED", []uint32{0, math.MaxUint32, 0x12345678}),
		travel("MPI_LONG", []int64{0, -1, 0x123456789abcdef0, -0x123456789abcdef0}),
		travel("MPI_UNSIGNED_LONG", []uint64{0, large, 1}),
		travel("MPI_LONG_LONG_INT", []int64{0, -1, 0x123456789abcdef0}),
		travel("MPI_FLOAT", []float32{0, -1.5, 3.0e38, 1e-40}),
		travel("MPI_DOUBLE", []float64{0, -1.5, 1.7e308, 5e-324, 0.1}),
		travel("MPI_UNSIGNED_LONG_LONG", []uint64{0, large, 1}),
		travel("MPI_WCHAR", []int32{0, 'x', 0x1f600}),
		longDoubles,
		travelPairs("MPI_FLOAT_INT", []mpi.Pair[float32]{{Value: 1.5, Index: -7}, {Value: -2.25, Index: 999993}}),
		travelPairs("MPI_DOUBLE_INT", []mpi.Pair[float64]{{Value: 1.5, Index: -7}, {Value: -0.1, Index: 999993}}),
		travelPairs("MPI_LONG_INT", []mpi.Pair[int]{{Value: 1 << 40, Index: -7}, {Value: -5, Index: 999993}}),
		travelPairs("MPI_SHORT_INT", []mpi.Pair[int16]{{Value: 12345, Index: -7}, {Value: -5, Index: 999993}}),
		longDoublePairs,
		travelPairs("MPI_2INT", []mpi.Pair[int32]{{Value: math.MaxInt32, Index: -7}, {Value: -2, Index: 999993}}),
	} {
		f(a[0], a[1])
	}
}

func travel[T comparable](name string, values []T) func(from, to int) {
	return func(from, to int) {
		there(name, values, 21, from, to, func(x, y T) bool { return x == y })
	}
}

func travelPairs[V datatype.PairValue](name string, values []mpi.Pair[V]) func(from, to int) {
	return func(from, to int) {
		there(name, values, 22, from, to, func(x, y mpi.Pair[V]) bool { return x == y })
	}
}

func there[T any](name string, values []T, tag, from, to int, same func(x, y T) bool) {
	if rank != from && rank != to {
		return
	}
	t, peer, n := datatype.ByName(name), from+to-rank, len(values)
	if rank == from {
		check(world.Send(mpi.Typed(values, n, t), peer, tag))
	}
	in := make([]T, n+3)
	st := must(world.Recv(mpi.Typed(in, len(in), t), peer, tag))
	if count, err := st.Count(t); count != n || err != nil {
		fail("%s: %d items (%v), want %d", name, count, err, n)
	}
	for i := range values {
		if !same(in[i], values[i]) {
			fail("%s: item %d is %v, want %v", name, i, in[i], values[i])
		}
	}
	if rank == to {
		check(world.Send(mpi.Typed(in, n, t), peer, tag))
	}
}

// longDouble is a long double of x86-64.
type longDouble [16]byte

func x87(top uint16, mantissa uint64) (x longDouble) {
	for i := range 8 {
		x[i] = byte(mantissa >> (8 * i))
	}
	x[8], x[9] = byte(top), byte(top>>8)
	return x
}

// decimal is the long double nearest to a decimal number.
func decimal(text string) longDouble {
	f, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven)
	check(err)
	m := new(big.Float)
	exp := f.MantExp(m)
	mantissa, _ := m.SetMantExp(m, 64).Abs(m).Uint64()
	top := uint16(exp - 1 + 0x3fff)
	if f.Signbit() {
		top |= 0x8000
	}
	return x87(top, mantissa)
}

func sameDigits(x, y longDouble) bool { return bytes.Equal(x[:10], y[:10]) }

// third is 1/3: the digits of 64 bits, and the exponent.
var third = x87(0x3ffd, 0xaaaaaaaaaaaaaaab)

// longDoubles are 0, 1, -3, 1/3, 10^4000 and -10^-4000.
func longDoubles(from, to int) {
	values := []longDouble{{}, x87(0x3fff, 1<<63), x87(0xc000, 3<<62), third, decimal("1e4000"), decimal("-1e-4000")}
	there("MPI_LONG_DOUBLE", values, 21, from, to, sameDigits)
}

// longDoublePair is C's struct of one and an int.
type longDoublePair struct {
	value longDouble
	index int32
	_     [12]byte
}

func longDoublePairs(from, to int) {
	minusThird := third
	minusThird[9] |= 0x80
	values := []longDoublePair{{value: x87(0x3fff, 3<<62), index: -7}, {value: minusThird, index: 999993}}
	there("MPI_LONG_DOUBLE_INT", values, 22, from, to, func(x, y longDoublePair) bool {
		return sameDigits(x.value, y.value) && x.index == y.index
	})
}

// record is C's struct of the same members.
type record struct {
	x    float64
	n    int32
	name [6]byte
	_    [6]byte
	id   int
}

func recordType() *mpi.Datatype {
	var r record
	t := must(mpi.TypeStruct([]int64{1, 1, 6, 1},
		[]int64{int64(unsafe.Offsetof(r.x)), int64(unsafe.Offsetof(r.n)), int64(unsafe.Offsetof(r.name)), int64(unsafe.Offsetof(r.id))},
		[]*mpi.Datatype{datatype.ByName("MPI_DOUBLE"), datatype.ByName("MPI_INT"), datatype.ByName("MPI_CHAR"), datatype.ByName("MPI_LONG")}))
	check(t.Commit())
	return t
}

func makeRecord(i int) (r record) {
	r.x, r.n, r.id = float64(i)*0.5, -int32(i), 1<<33+i
	for k := range 5 {
		r.name[k] = byte('a' + (i+k)%26)
	}
	return r
}

func sameRecords(in, want []record) {
	for i := range in {
		if in[i] != want[i] {
			fail("record %d of %d: %+v, want %+v", i, len(in), in[i], want[i])
		}
	}
}

// derived: two ranks, datalen. A structure of several kinds, short and long, and a
// vector. Then some structures are broadcast by each rank.
func derived(a []int) {
	t := recordType()
	out := make([]record, 3*a[2]/20)
	for i := range out {
		out[i] = makeRecord(i)
	}
	if rank == a[0] || rank == a[1] {
		records(t, out, a[0]+a[1]-rank, rank == a[0])
		columns(a[0]+a[1]-rank, rank == a[0])
	}
	few := min(100, a[2]/26) // as many as one packet holds
	for root := range size {
		in := make([]record, len(out))
		if rank == root {
			copy(in, out)
		}
		check(world.Bcast(mpi.Typed(in, few, t), root))
		sameRecords(in[:few], out)
		check(mpi.Barrier(world))
	}
}

func records(t *mpi.Datatype, out []record, peer int, first bool) {
	for _, n := range []int{1, 10, len(out)} {
		if first {
			check(world.Send(mpi.Typed(out, n, t), peer, 31))
		}
		in := make([]record, n)
		must(world.Recv(mpi.Typed(in, n, t), peer, 31))
		sameRecords(in, out[:n])
		if !first {
			check(world.Send(mpi.Typed(in, n, t), peer, 31))
		}
	}
}

func columns(peer int, first bool) {
	t := must(mpi.TypeVector(12, 2, 10, mpi.TypeOf[int32]()))
	check(t.Commit())
	m := make([]int32, 120)
	for i := range m {
		if m[i] = -1; first {
			m[i] = int32(i)
		}
	}
	if first {
		check(world.Send(mpi.Typed(m[3:], 1, t), peer, 32))
		return
	}
	must(world.Recv(mpi.Typed(m[5:], 1, t), peer, 32))
	for i, x := range m {
		want := int32(-1)
		if i%10 == 5 || i%10 == 6 {
			want = int32(i - 2)
		}
		if x != want {
			fail("element %d of the matrix is %d, want %d", i, x, want)
		}
	}
}
