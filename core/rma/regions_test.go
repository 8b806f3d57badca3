package rma

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/datatype"
)

func TestRegions(t *testing.T) {
	var r Regions
	attach := func(addr, size uint64, want error) {
		t.Helper()
		if err := r.Attach(addr, size); !errors.Is(err, want) {
			t.Errorf("attach of %d bytes at %d: %v", size, addr, err)
		}
	}
	attach(1000, 100, nil)
	attach(1100, 50, nil) // beside it
	attach(900, 100, nil)
	attach(1050, 10, ErrAttach)
	attach(899, 2, ErrAttach)
	attach(1149, 2, ErrAttach)
	attach(800, 1000, ErrAttach)
	attach(0, 10, ErrAttach)
	attach(10, 0, ErrAttach)
	attach(math.MaxUint64, 2, ErrAttach)
	back := must(t)(datatype.Hvector(2, 1, -8, anInt64))
	for name, c := range map[string]struct {
		addr, count int64
		typ         *datatype.Type
		start       uint64
		off         int64
		err         error
	}{
		"the first":          {1000, 1, anInt64, 1000, 0, nil},
		"the last":           {1092, 1, anInt64, 1000, 92, nil},
		"over two regions":   {1096, 1, anInt64, 1000, 96, nil},
		"over three regions": {996, 14, anInt64, 900, 96, nil},
		"beyond the third":   {996, 20, anInt64, 0, 0, ErrRange},
		"in the gap":         {2000, 1, anInt64, 0, 0, ErrRange},
		"below all":          {100, 1, anInt64, 0, 0, ErrRange},
		"backwards":          {1008, 1, back, 1000, 8, nil},
		"backwards too far":  {904, 1, back, 0, 0, ErrRange},
		"no items":           {5, 0, anInt64, 0, 0, nil},
		"at the end of all":  {math.MaxInt64, 1, anInt64, 0, 0, ErrRange},
		"too many":           {1000, 19, anInt64, 0, 0, ErrRange},
		"a negative address": {-5, 1, anInt64, 0, 0, ErrRange},
	} {
		start, off, err := r.Locate(c.addr, c.count, c.typ)
		if start != c.start || off != c.off || !errors.Is(err, c.err) {
			t.Errorf("%s: %d from %d on, %v", name, off, start, err)
		}
	}
	for addr, want := range map[uint64]error{1000: nil, 1001: ErrAttach, 5: ErrAttach} {
		if err := r.Detach(addr); !errors.Is(err, want) {
			t.Errorf("detach at %d: %v", addr, err)
		}
	}
	if _, _, err := r.Locate(1000, 1, anInt64); !errors.Is(err, ErrRange) {
		t.Error("detached memory:", err)
	}
}

// Regions give the same answers as a set of bytes, whatever is attached and detached.
func TestRegionsAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Regions
		sizes, owner := map[uint64]uint64{}, [64]uint64{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			addr := rapid.Uint64Range(1, 50).Draw(t, "address")
			if rapid.Bool().Draw(t, "detach") {
				if err := r.Detach(addr); (err == nil) != (sizes[addr] > 0) {
					t.Fatal(err)
				}
				for i := addr; i < addr+sizes[addr]; i++ {
					owner[i] = 0
				}
				delete(sizes, addr)
				continue
			}
			size, free := rapid.Uint64Range(1, 10).Draw(t, "size"), true
			for i := addr; i < addr+size; i++ {
				free = free && owner[i] == 0
			}
			if err := r.Attach(addr, size); (err == nil) != free {
				t.Fatalf("%d bytes at %d: %v", size, addr, err)
			}
			for i := addr; free && i < addr+size; i++ {
				owner[i], sizes[addr] = addr, size
			}
		}
		addr, n := rapid.Int64Range(1, 55).Draw(t, "where"), rapid.Int64Range(1, 8).Draw(t, "bytes")
		start, _, err := r.Locate(addr, n, datatype.Basic(datatype.Byte))
		inside := owner[addr] != 0
		for i := addr; i < addr+n; i++ {
			inside = inside && owner[i] != 0
		}
		if (err == nil) != inside || inside && start != owner[addr] {
			t.Fatalf("%d bytes at %d: region %d, %v", n, addr, start, err)
		}
	})
}
