package rma

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/datatype"
)

// itemsOf are count items of t at an element of mem.
func itemsOf(mem []int32, at, count int, t *datatype.Type, rep datatype.Representation) Items {
	return Items{Mem: unsafe.Pointer(&mem[at]), Count: count, Type: t, Rep: rep}
}

// wire is v as rep has it.
func wire(t *testing.T, rep datatype.Representation, v []int32) []byte {
	t.Helper()
	b := make([]byte, 4*len(v))
	if err := rep.Encode(b, datatype.Bytes(v), datatype.Int32, len(v)); err != nil {
		t.Fatal(err)
	}
	return b
}

// Accumulates of strided elements are those of a loop, in each representation and
// over several batches, and give what was there before.
func TestAccumulate(t *testing.T) {
	ops := map[*datatype.Op]func(in, old int32) int32{
		datatype.Sum:     func(in, old int32) int32 { return in + old },
		datatype.Max:     func(in, old int32) int32 { return max(in, old) },
		datatype.BXor:    func(in, old int32) int32 { return in ^ old },
		datatype.Replace: func(in, _ int32) int32 { return in },
		datatype.NoOp:    func(_, old int32) int32 { return old },
	}
	for op, f := range ops {
		for _, rep := range []datatype.Representation{datatype.Native, datatype.External32, datatype.NativeBE, datatype.NativeLE} {
			for _, n := range []int{1, 7, 5000} {
				odd := must(t)(datatype.Vector(int64(n), 1, 2, datatype.Basic(datatype.Int32)))
				mem, in := make([]int32, 2*n+1), make([]int32, n)
				for i := range in {
					mem[2*i+1], in[i] = int32(i*7919), int32(i*104729-3)
				}
				want, before := slices.Clone(mem), make([]int32, n)
				for i := range in {
					before[i] = mem[2*i+1]
					want[2*i+1] = f(in[i], mem[2*i+1])
				}
				x := itemsOf(mem, 1, 1, odd, rep)
				old := make([]byte, x.Size())
				if err := x.Accumulate(op, wire(t, rep, in), old, new(Scratch)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(mem, want) || !bytes.Equal(old, wire(t, rep, before)) {
					t.Errorf("%v of %d elements in %v", op, n, rep)
				}
			}
		}
	}
}

// Memory need not be aligned as elements are.
func TestAccumulateUnaligned(t *testing.T) {
	mem := make([]byte, 33)
	x := Items{Mem: unsafe.Pointer(&mem[1]), Count: 4, Type: anInt64}
	in := datatype.Bytes([]int64{1, 2, 3, 4})
	for range 3 {
		if err := x.Accumulate(datatype.Sum, in, nil, new(Scratch)); err != nil {
			t.Fatal(err)
		}
	}
	if want := datatype.Bytes([]int64{3, 6, 9, 12}); !bytes.Equal(mem[1:], want) {
		t.Errorf("%x, want %x", mem[1:], want)
	}
}

// Data of another length changes nothing.
func TestAccumulateRefuses(t *testing.T) {
	mem := []int32{5}
	x := itemsOf(mem, 0, 1, datatype.Basic(datatype.Int32), datatype.Native)
	if x.Accumulate(datatype.Sum, make([]byte, 3), nil, new(Scratch)) == nil || x.Accumulate(datatype.Replace, make([]byte, 8), nil, new(Scratch)) == nil || mem[0] != 5 {
		t.Error("taken")
	}
}

// A record of different kinds is replaced as a whole.
func TestReplaceRecord(t *testing.T) {
	type record struct {
		A int64
		B float32
	}
	typ := must(t)(datatype.Struct([]int64{1, 1}, []int64{0, 8}, []*datatype.Type{anInt64, datatype.Basic(datatype.Float32)}))
	mem, other := []record{{1, 2}}, []record{{3, 4}}
	for _, rep := range []datatype.Representation{datatype.Native, datatype.External32} {
		x := Items{Mem: unsafe.Pointer(&mem[0]), Count: 1, Type: typ, Rep: rep}
		in, old, want := make([]byte, x.Size()), make([]byte, x.Size()), make([]byte, x.Size())
		typ.Encode(rep, in, unsafe.Pointer(&other[0]), 1, 0)
		typ.Encode(rep, want, unsafe.Pointer(&mem[0]), 1, 0)
		if err := x.Accumulate(datatype.Replace, in, old, nil); err != nil || mem[0] != other[0] || !bytes.Equal(old, want) {
			t.Errorf("%v: %v, %v", rep, mem, err)
		}
		mem[0] = record{1, 2}
	}
}

func TestCompareAndSwap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rep := rapid.SampledFrom([]datatype.Representation{datatype.Native, datatype.NativeBE, datatype.External32}).Draw(rt, "rep")
		before, with, compare := rapid.Int32().Draw(rt, "before"), rapid.Int32().Draw(rt, "with"), rapid.Int32().Draw(rt, "compare")
		if rapid.Bool().Draw(rt, "equal") {
			compare = before
		}
		mem, want := []int32{1, before, 3}, before
		if compare == before {
			want = with
		}
		x, old := itemsOf(mem, 1, 1, datatype.Basic(datatype.Int32), rep), make([]byte, 4)
		x.CompareAndSwap(wire(t, rep, []int32{with, compare}), old)
		if !slices.Equal(mem, []int32{1, want, 3}) || !bytes.Equal(old, wire(t, rep, []int32{before})) {
			rt.Fatalf("%d, with %d if %d: %v, old %x", before, with, compare, mem, old)
		}
	})
}

func TestSwappable(t *testing.T) {
	for k, want := range map[datatype.Kind]bool{
		datatype.Byte: true, datatype.Bool: true, datatype.Int8: true, datatype.Uint64: true, datatype.Int: true, datatype.Long: true,
		datatype.Logical32: true, datatype.Char: true, datatype.Float64: false, datatype.Complex64: false, datatype.PairInt: false,
		datatype.Packed: false, datatype.Invalid: false, datatype.LongDouble: false,
	} {
		if Swappable(k) != want {
			t.Errorf("%v: %v", k, !want)
		}
	}
}

// Items that lie on each other are no target of accumulates.
func TestWhole(t *testing.T) {
	still := must(t)(datatype.Resized(anInt64, 0, 4))
	var mem [8]int64
	for count, want := range map[int]bool{1: true, 2: false} {
		x := Items{Mem: unsafe.Pointer(&mem[0]), Count: count, Type: still}
		if x.PacksWithinSpan() != want {
			t.Errorf("%d items: %v", count, !want)
		}
	}
}
