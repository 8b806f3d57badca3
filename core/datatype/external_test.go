package datatype

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"unsafe"
)

// TestExternalOfC has the bytes of external32 for what C and Fortran have besides.
func TestExternalOfC(t *testing.T) {
	long := View[int](alignedBytes(2 * word))
	long[0], long[1] = -2, 0x01020304
	wide := []int32{'A', 0x20ac}
	pair := alignedBytes(PairLong.Size())
	View[int](pair)[0], View[int32](pair)[word/4] = -2, 7
	for _, c := range []struct {
		k      Kind
		native []byte
		want   string
		le     string
	}{
		{Char, []byte("az"), "61 7a", "61 7a"},
		{Packed, []byte{1, 2}, "01 02", "01 02"},
		{Long, Bytes(long), "ff ff ff fe 01 02 03 04", "fe ff ff ff ff ff ff ff 04 03 02 01 00 00 00 00"},
		{ULong, Bytes(long)[word:], "01 02 03 04", "04 03 02 01 00 00 00 00"},
		{WChar, Bytes(wide), "00 41 20 ac", "41 00 00 00 ac 20 00 00"},
		{Logical32, Bytes([]int32{1, 0}), "00 00 00 01 00 00 00 00", "01 00 00 00 00 00 00 00"},
		{Logical8, []byte{1}, "01", "01"},
		{Logical16, Bytes([]int16{1}), "00 01", "01 00"},
		{Logical64, Bytes([]int64{1}), "00 00 00 00 00 00 00 01", "01 00 00 00 00 00 00 00"},
		{PairLong, pair, "ff ff ff fe 00 00 00 07", "fe ff ff ff ff ff ff ff 07 00 00 00"},
		{Pair2Float32, Bytes([]float32{1, -2}), "3f 80 00 00 c0 00 00 00", "00 00 80 3f 00 00 00 c0"},
		{LongDouble, longDoubles(1), "3f ff 00 00 00 00 00 00 00 00 00 00 00 00 00 00", "00 00 00 00 00 00 00 00 00 00 00 00 00 00 ff 3f"},
		{LongDouble, longDoubles(-3), "c0 00 80 00 00 00 00 00 00 00 00 00 00 00 00 00", "00 00 00 00 00 00 00 00 00 00 00 00 00 80 00 c0"},
	} {
		n := len(c.native) / c.k.Size()
		for r, want := range map[Representation]string{External32: c.want, NativeLE: c.le} {
			got := make([]byte, n*r.Size(c.k))
			if err := r.Encode(got, c.native, c.k, n); err != nil || fmt.Sprintf("% x", got) != want {
				t.Errorf("%v of %v: % x, %v, want %s", r, c.k, got, err, want)
			}
			back := make([]byte, len(c.native))
			if err := r.Decode(back, got, c.k, n); err != nil || !bytes.Equal(back, c.native) {
				t.Errorf("%v of %v: back as % x, %v, was % x", r, c.k, back, err, c.native)
			}
		}
	}
}

// TestExternalSizes is the standard's table of sizes in external32.
func TestExternalSizes(t *testing.T) {
	for name, want := range map[string]int64{
		"MPI_PACKED": 1, "MPI_BYTE": 1, "MPI_CHAR": 1, "MPI_UNSIGNED_CHAR": 1, "MPI_SIGNED_CHAR": 1, "MPI_WCHAR": 2,
		"MPI_SHORT": 2, "MPI_UNSIGNED_SHORT": 2, "MPI_INT": 4, "MPI_UNSIGNED": 4, "MPI_LONG": 4, "MPI_UNSIGNED_LONG": 4,
		"MPI_LONG_LONG": 8, "MPI_UNSIGNED_LONG_LONG": 8, "MPI_FLOAT": 4, "MPI_DOUBLE": 8, "MPI_LONG_DOUBLE": 16,
		"MPI_C_BOOL": 1, "MPI_INT8_T": 1, "MPI_INT16_T": 2, "MPI_INT32_T": 4, "MPI_INT64_T": 8,
		"MPI_UINT8_T": 1, "MPI_UINT16_T": 2, "MPI_UINT32_T": 4, "MPI_UINT64_T": 8,
		"MPI_AINT": 8, "MPI_COUNT": 8, "MPI_OFFSET": 8, "MPI_C_FLOAT_COMPLEX": 8, "MPI_C_DOUBLE_COMPLEX": 16, "MPI_C_LONG_DOUBLE_COMPLEX": 32,
		"MPI_CHARACTER": 1, "MPI_LOGICAL": 4, "MPI_INTEGER": 4, "MPI_REAL": 4, "MPI_DOUBLE_PRECISION": 8, "MPI_COMPLEX": 8, "MPI_DOUBLE_COMPLEX": 16,
		"MPI_SHORT_INT": 6, "MPI_DOUBLE_INT": 12, "MPI_LONG_INT": 8, "MPI_LONG_DOUBLE_INT": 20, "MPI_2INT": 8,
	} {
		if got, err := ByName(name).PackExternalSize("external32", 3); got != 3*want || err != nil {
			t.Errorf("three of %s are %d bytes, %v, want %d", name, got, err, 3*want)
		}
	}
}

func TestPackExternal(t *testing.T) {
	typ := must(Struct(i64(1, 2), i64(0, 8), []*Type{Basic(Float64), Basic(Int16)}))
	if err := typ.Commit(); err != nil {
		t.Fatal(err)
	}
	mem := alignedBytes(16)
	View[float64](mem)[0] = 1
	View[int16](mem)[4], View[int16](mem)[5] = 2, -2
	base := unsafe.Pointer(unsafe.SliceData(mem))
	buf := make([]byte, 20)
	position, err := typ.PackExternal("external32", buf, 3, base, 1)
	if want := "00 00 00 3f f0 00 00 00 00 00 00 00 02 ff fe 00 00 00 00 00"; err != nil || position != 15 || fmt.Sprintf("% x", buf) != want {
		t.Errorf("% x, %d, %v, want %s", buf, position, err, want)
	}
	back := alignedBytes(16)
	position, err = typ.UnpackExternal("external32", buf, 3, unsafe.Pointer(unsafe.SliceData(back)), 1)
	if err != nil || position != 15 || !bytes.Equal(back, mem) {
		t.Errorf("% x, %d, %v", back, position, err)
	}
	if n, err := typ.PackSize(5); n != 60 || err != nil {
		t.Errorf("five are %d bytes, %v", n, err)
	}
}

// TestPackRefused has what the pack functions refuse before they touch anything.
func TestPackRefused(t *testing.T) {
	i32, buf := Basic(Int32), make([]byte, 8)
	base := unsafe.Pointer(unsafe.SliceData(make([]int32, 2)))
	loose := must(Contiguous(1, i32))
	try := func(typ *Type, datarep string, position int64, count int, want error) {
		t.Helper()
		if at, err := typ.PackExternal(datarep, buf, position, base, count); !errors.Is(err, want) || at != position {
			t.Errorf("pack: position %d, %v, want %v", at, err, want)
		}
		if at, err := typ.UnpackExternal(datarep, buf, position, base, count); !errors.Is(err, want) || at != position {
			t.Errorf("unpack: position %d, %v, want %v", at, err, want)
		}
	}
	try(i32, "internal", 0, 1, ErrRepresentation)
	try(i32, "", 0, 1, ErrRepresentation)
	try(nil, "external32", 0, 1, ErrType)
	try(loose, "external32", 0, 1, ErrType)
	try(i32, "external32", 0, -1, ErrCount)
	try(i32, "external32", -1, 1, ErrArg)
	try(i32, "external32", 5, 1, ErrTruncate)
	try(i32, "external32", 9, 0, ErrTruncate)
	try(i32, "external32", 0, 3, ErrTruncate)
	try(must(Dup(must(Contiguous(1<<50, i32)))), "external32", 0, 1, ErrType)
	if _, err := i32.PackAt(representations, buf, 0, base, 1); !errors.Is(err, ErrRepresentation) {
		t.Error(err)
	}
	if _, err := i32.PackExternalSize("native", 1); !errors.Is(err, ErrRepresentation) {
		t.Error(err)
	}
	if _, err := (*Type)(nil).PackExternalSize("external32", 1); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if _, err := must(Contiguous(1<<50, i32)).PackSize(1 << 20); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if !bytes.Equal(buf, make([]byte, 8)) {
		t.Errorf("something was packed: % x", buf)
	}
}

// Without a Carry, Decode stops before an element that is cut, and with one it
// does not take the rest of another.
func TestCutElements(t *testing.T) {
	var got [2]int64
	base := unsafe.Pointer(&got)
	two := must(Contiguous(2, Basic(Int64)))
	if err := two.Commit(); err != nil {
		t.Fatal(err)
	}
	foreign := NativeBE
	if hostBig {
		foreign = NativeLE
	}
	stream := make([]byte, 16)
	if err := foreign.Encode(stream, Bytes([]int64{5, 6}), Int64, 2); err != nil {
		t.Fatal(err)
	}
	if n := two.Decode(foreign, base, 1, 0, stream[:13], nil); n != 8 || got != [2]int64{5, 0} {
		t.Errorf("%d bytes taken, %v", n, got)
	}
	var carry Carry
	if n := two.Decode(foreign, base, 1, 11, stream[11:], &carry); n != 0 {
		t.Errorf("%d bytes taken of an element that did not begin", n)
	}
	if n := two.Decode(foreign, base, 1, 8, stream[8:11], &carry); n != 3 || got[1] != 0 {
		t.Errorf("%d bytes taken, %v", n, got)
	}
	if n := two.Decode(foreign, base, 1, 11, stream[11:], &carry); n != 5 || got != [2]int64{5, 6} {
		t.Errorf("%d bytes taken, %v", n, got)
	}
	if n := two.Decode(foreign, base, 1, 16, stream, &carry); n != 0 {
		t.Errorf("%d bytes taken behind the end", n)
	}
}
