package fileview

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// extents are the runs of a list, joined where they touch.
func extents(l List) (all []Extent) {
	for c := l.Cursor(); c.Len > 0; c.Take(c.Len) {
		if n := len(all); n > 0 && all[n-1].Off+all[n-1].Len == c.Off {
			all[n-1].Len += c.Len
			continue
		}
		all = append(all, c.Extent)
	}
	return all
}

// must returns what a constructor made.
func must(t *testing.T) func(*datatype.Type, error) *datatype.Type {
	return func(d *datatype.Type, err error) *datatype.Type {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(); err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func TestBytes(t *testing.T) {
	v := Bytes()
	if got := extents(v.Runs(5, 7)); !slices.Equal(got, []Extent{{5, 7}}) {
		t.Errorf("%v", got)
	}
	if at, err := v.At(9); at != 9 || err != nil {
		t.Errorf("%d, %v", at, err)
	}
	if v.Before(10) != 10 {
		t.Errorf("%d bytes before 10", v.Before(10))
	}
}

// TestStripes is the second of three processes that take turns with pairs of ints.
func TestStripes(t *testing.T) {
	i32 := datatype.Basic(datatype.Int32)
	pair := must(t)(datatype.Hindexed([]int64{2}, []int64{8}, i32))
	stripe := must(t)(datatype.Resized(pair, 0, 24))
	v, err := New(100, i32, stripe)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pos, n int64
		want   []Extent
	}{
		{0, 8, []Extent{{108, 8}}},
		{4, 8, []Extent{{112, 4}, {132, 4}}},
		{16, 12, []Extent{{156, 8}, {180, 4}}},
		{0, 0, nil},
	} {
		if got := extents(v.Runs(c.pos, c.n)); !slices.Equal(got, c.want) {
			t.Errorf("%d bytes from %d: %v, want %v", c.n, c.pos, got, c.want)
		}
	}
	if at, _ := v.At(3); at != 136 {
		t.Errorf("the fourth int is at %d", at)
	}
	for end, want := range map[int64]int64{0: 0, 108: 0, 110: 2, 116: 8, 124: 8, 133: 9, 140: 16, 1000: 300} {
		if got := v.Before(end); got != want {
			t.Errorf("%d bytes of data before %d, want %d", got, end, want)
		}
	}
}

func TestSubarray(t *testing.T) {
	b := datatype.Basic(datatype.Byte)
	part := must(t)(datatype.Subarray([]int64{4, 4}, []int64{2, 2}, []int64{1, 2}, datatype.OrderC, b))
	v, err := New(0, b, part)
	if err != nil {
		t.Fatal(err)
	}
	if got := extents(v.Runs(0, 5)); !slices.Equal(got, []Extent{{6, 2}, {10, 2}, {22, 1}}) {
		t.Errorf("%v", got)
	}
}

func TestRefused(t *testing.T) {
	i32, i64 := datatype.Basic(datatype.Int32), datatype.Basic(datatype.Int64)
	odd := must(t)(datatype.Contiguous(3, i32))
	twice := must(t)(datatype.Hindexed([]int64{1, 1}, []int64{0, 2}, i32))
	before := must(t)(datatype.Hindexed([]int64{1}, []int64{-4}, i32))
	empty := must(t)(datatype.Contiguous(0, i32))
	backwards := must(t)(datatype.Hindexed([]int64{1, 1}, []int64{8, 0}, i32))
	padded := must(t)(datatype.Resized(datatype.ByName("MPI_SHORT_INT"), 0, 16))
	for _, c := range []struct {
		disp         int64
		etype, ftype *datatype.Type
		want         error
	}{
		{-1, i32, i32, ErrOffset}, {0, i64, odd, ErrType}, {0, i32, twice, ErrType},
		{0, i32, before, ErrType}, {0, i32, empty, ErrType}, {0, i32, backwards, ErrType}, {0, datatype.Basic(datatype.Byte), padded, ErrType},
	} {
		if _, err := New(c.disp, c.etype, c.ftype); !errors.Is(err, c.want) {
			t.Errorf("%v in %v at %d: %v, want %v", c.etype, c.ftype, c.disp, err, c.want)
		}
	}
	if _, err := Bytes().Position(-1); !errors.Is(err, ErrOffset) {
		t.Errorf("offset -1: %v", err)
	}
}

// TestOneItem: items that span more than their extent would lie between each other. One is as good
// as any.
func TestOneItem(t *testing.T) {
	i32 := datatype.Basic(datatype.Int32)
	apart := must(t)(datatype.Hindexed([]int64{1, 1}, []int64{0, 1000}, i32))
	v, err := New(4, i32, must(t)(datatype.Resized(apart, 0, 8)))
	if err != nil {
		t.Fatal(err)
	}
	if got := extents(v.Runs(0, 8)); !slices.Equal(got, []Extent{{4, 4}, {1004, 4}}) {
		t.Errorf("%v", got)
	}
	if n := v.Before(2000); n != 8 {
		t.Errorf("%d bytes of data before byte 2000, want 8", n)
	}
	for _, c := range []struct {
		pos, n int64
		bad    bool
	}{{0, 8, false}, {4, 4, false}, {8, 0, false}, {4, 5, true}, {8, 4, true}, {1 << 62, 1 << 62, true}} {
		if err := v.Check(c.pos, c.n); errors.Is(err, ErrType) != c.bad {
			t.Errorf("%d bytes from %d on: %v", c.n, c.pos, err)
		}
	}
	if err := Bytes().Check(1<<40, 1<<40); err != nil {
		t.Error(err)
	}
}

// TestFar: an item may span more than memory has, and have very many parts.
func TestFar(t *testing.T) {
	i32 := datatype.Basic(datatype.Int32)
	vector := must(t)(datatype.Vector(1<<40, 1, 3, i32))
	v, err := New(8, i32, vector)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := v.At(1<<40 - 1); at != 8+12*(1<<40-1) || err != nil {
		t.Errorf("the last int is at %d, %v", at, err)
	}
	if at, err := v.At(1 << 40); at != 8+12*(1<<40-1)+4 || err != nil {
		t.Errorf("the first int of the next item is at %d, %v", at, err)
	}
	l := v.Runs(4<<30, 4<<20)
	if len(l.Series()) != 1 || l.Runs() != 1<<20 || l.First() != 8+12<<30 || l.Len() != 4<<20 {
		t.Errorf("%d series with %d runs of %d bytes from %d on", len(l.Series()), l.Runs(), l.Len(), l.First())
	}
	if v.Step() < 1<<40 {
		t.Errorf("a step of %d bytes, though they are one series", v.Step())
	}
	cube := must(t)(datatype.Subarray([]int64{4096, 4096, 4096}, []int64{2, 3, 5}, []int64{4000, 7, 11}, datatype.OrderC, i32))
	if v, err = New(0, i32, cube); err != nil {
		t.Fatal(err)
	}
	if got, want := extents(v.Runs(60, 80))[0], (Extent{4 * (4001<<24 + 7<<12 + 11), 20}); got != want {
		t.Errorf("the second plane begins with %v, want %v", got, want)
	}
}

// TestRandomViews compares views with the bytes that their datatypes write to memory.
func TestRandomViews(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var lens, disps []int64
		at := int64(r.IntN(4))
		for range 1 + r.IntN(5) {
			n := int64(1 + r.IntN(3))
			lens, disps = append(lens, n), append(disps, at)
			at += n + int64(r.IntN(3))
		}
		b := datatype.Basic(datatype.Byte)
		inner := must(t)(datatype.Hindexed(lens, disps, b))
		inner = must(t)(datatype.Resized(inner, 0, at+int64(r.IntN(3))))
		ftype := must(t)(datatype.Vector(int64(1+r.IntN(4)), int64(1+r.IntN(2)), 2+int64(r.IntN(3)), inner))
		disp := int64(r.IntN(5))
		v, err := New(disp, b, ftype)
		if err != nil {
			t.Fatal(err)
		}
		const items = 4
		var where []int64 // of each byte of data
		for i := range int64(items) {
			for d, n := range layout(ftype) {
				for k := range n {
					where = append(where, disp+i*ftype.Extent()+d+k)
				}
			}
		}
		pos := r.IntN(len(where))
		n := 1 + r.IntN(len(where)-pos)
		var got []int64
		l := v.Runs(int64(pos), int64(n))
		for _, x := range extents(l) {
			for k := range x.Len {
				got = append(got, x.Off+k)
			}
		}
		if !slices.Equal(got, where[pos:pos+n]) || l.Len() != int64(n) || l.First() != got[0] || l.End() != got[n-1]+1 {
			t.Fatalf("%d bytes from %d: %v, want %v; %d bytes from %d to %d", n, pos, got, where[pos:pos+n], l.Len(), l.First(), l.End())
		}
		end := int64(r.IntN(int(where[len(where)-1]) + 2))
		if got, want := v.Before(end), int64(sort.Search(len(where), func(i int) bool { return where[i] >= end })); got != want {
			t.Fatalf("%d bytes of data before %d, want %d of %v", got, end, want, where)
		}
	}
}

// layout gives the runs of a datatype in memory, as Unpack writes them.
func layout(d *datatype.Type) func(yield func(at, n int64) bool) {
	return func(yield func(at, n int64) bool) {
		memory := make([]byte, d.TrueLB()+d.TrueExtent())
		ones := slices.Repeat([]byte{1}, int(d.Size()))
		d.Unpack(unsafe.Pointer(&memory[0]), 1, 0, ones)
		for i, b := range memory {
			if b == 1 && !yield(int64(i), 1) {
				return
			}
		}
	}
}
