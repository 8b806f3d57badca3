package coll

import "unsafe"

// keep is the most scratch memory, in bytes, that a schedule holds on to when
// it is reset.
const keep = 4 << 20

// arena allocates scratch memory, aligned for every kind of element. All of it is freed together.
type arena struct {
	block []byte // the block in use
	used  int
	total int // bytes handed out since reset
}

// get returns n bytes with undefined content, valid until reset.
func (a *arena) get(n int) []byte {
	room := (n + 15) &^ 15
	if room > len(a.block)-a.used {
		a.block = alloc(max(room, 2*len(a.block), 512))
		a.used = 0
	}
	b := a.block[a.used : a.used+n : a.used+n]
	a.used += room
	a.total += room
	return b
}

// reset frees all memory. If one block was not enough, the next block will be as large as all that
// was handed out.
func (a *arena) reset() {
	if a.total > len(a.block) {
		a.block = alloc(min(a.total, keep))
	}
	if len(a.block) > keep {
		a.block = nil
	}
	a.used, a.total = 0, 0
}

// alloc makes n bytes with the alignment of the largest numbers.
func alloc(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
