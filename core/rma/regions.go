package rma

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/datatype"
)

// Regions is the memory that is attached to one proc's dynamic window, by address (MPI-4.1,
// 12.2.4). The zero value is empty.
type Regions struct{ list []region } // sorted, without overlaps

type region struct{ addr, size uint64 }

// Attach adds memory. The error is ErrAttach if a part of it is attached already, or if it
// is not a range of addresses.
func (r *Regions) Attach(addr, size uint64) error {
	if addr == 0 || size == 0 || addr+size < addr {
		return fmt.Errorf("%w: %d bytes at %#x", ErrAttach, size, addr)
	}
	i := r.after(addr)
	if i > 0 && r.list[i-1].end() > addr || i < len(r.list) && r.list[i].addr < addr+size {
		return fmt.Errorf("%w: %d bytes at %#x, of which some are attached", ErrAttach, size, addr)
	}
	r.list = slices.Insert(r.list, i, region{addr, size})
	return nil
}

// Detach removes the memory that was attached at addr.
func (r *Regions) Detach(addr uint64) error {
	i := r.after(addr) - 1
	if i < 0 || r.list[i].addr != addr {
		return fmt.Errorf("%w: nothing was attached at %#x", ErrAttach, addr)
	}
	r.list = slices.Delete(r.list, i, i+1)
	return nil
}

// Locate finds the memory of count items of t at an address. It returns the start of the region
// that contains their first byte, and the offset of the first item in that region. The items may
// extend into regions that follow without a gap. If a part of them is not attached the error is
// ErrRange. Items without elements are accepted at any address.
func (r *Regions) Locate(addr, count int64, t *datatype.Type) (start uint64, off int64, err error) {
	lo, hi, err := span(count, t)
	if err != nil || lo == hi {
		return 0, 0, err
	}
	first, ok := add(addr, lo)
	if i := r.after(first) - 1; ok && i >= 0 && first < r.list[i].end() {
		if r.list[i].end()-first >= uint64(hi-lo) || r.reach(i)-first >= uint64(hi-lo) {
			return r.list[i].addr, addr - int64(r.list[i].addr), nil
		}
	}
	return 0, 0, fmt.Errorf("%w: bytes %d to %d from %#x on are not all attached", ErrRange, lo, hi, addr)
}

// reach returns the end of the memory that begins with region i and continues without a
// gap.
func (r *Regions) reach(i int) uint64 {
	for ; i+1 < len(r.list) && r.list[i+1].addr == r.list[i].end(); i++ {
	}
	return r.list[i].end()
}

// add returns the address n bytes from addr; ok is false on overflow.
func add(addr, n int64) (uint64, bool) {
	sum := addr + n
	return uint64(sum), addr >= 0 && sum >= 0 && (n >= 0) == (sum >= addr)
}

// after is the index of the first region that begins above addr.
func (r *Regions) after(addr uint64) int {
	i, _ := slices.BinarySearchFunc(r.list, addr, func(x region, addr uint64) int {
		if x.addr <= addr {
			return -1
		}
		return 1
	})
	return i
}

func (x region) end() uint64 { return x.addr + x.size }
