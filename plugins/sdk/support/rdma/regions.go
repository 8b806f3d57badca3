package rdma

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxRegions is the maximum number of regions that are lent at a time.
	maxRegions = 64 << 10
	// leastRegion is how long a region is at least that blocks are allocated in.
	leastRegion = 1 << 20
	// shareOfAll is the part of all memory that a further region has at least, which bounds how many
	// there are, and how much of them is not used.
	shareOfAll = 4
)

// ErrNotLent means that memory is none of Regions.
var ErrNotLent = errors.New("this memory was not allocated to be lent")

// Regions are the memory of a process that it lends to plugins. Blocks of memory are allocated in
// regions, each of which is a file in memory. Its methods may be called from several goroutines.
type Regions struct {
	mu     sync.RWMutex
	sorted []*lentBlock  // that are not free, by address
	table  []*lentRegion // by number, from 1 at index 0; nil: the number is vacant
	ages   []uint32      // by number: the last generation
	size   int64         // of regions for blocks
	freed  atomic.Uint64
}

// lentRegion is a file in memory, which has its number as long as it lives.
type lentRegion struct {
	mem                []byte
	base               uintptr
	fd                 int
	number, generation uint32
	whole              bool   // it was made elsewhere, and is one block
	blocks             int    // that are not vacant
	vacant             []span // by offset; none touches another
	used               int    // bytes at the front that were given to a block before
}

// span is a part of a region.
type span struct{ at, size int }

// lentBlock is memory that can be lent. It has its place until it was freed and nothing that is under way
// uses it.
type lentBlock struct {
	*lentRegion
	span
	uses atomic.Int32 // loans and reads that are under way, over any link
	free atomic.Bool
}

// Allocate returns size bytes of zeroed memory that can be lent. Free frees it.
func (r *Regions) Allocate(size int) ([]byte, error) { return r.allocate(size, false) }

// AllocateApart is Allocate in a region of its own, of which there cannot be many.
func (r *Regions) AllocateApart(size int) ([]byte, error) { return r.allocate(size, true) }

func (r *Regions) allocate(size int, apart bool) ([]byte, error) {
	if size <= 0 || size > maxRegionSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrNotLent, size)
	}
	page := unix.Getpagesize()
	whole := (size + page - 1) / page * page
	r.mu.Lock()
	defer r.mu.Unlock()
	x, i := r.vacancy(whole)
	if x == nil || apart {
		least := max(leastRegion, int(r.size/shareOfAll)/page*page)
		if apart {
			least = whole
		}
		made, err := r.addNew(max(whole, least))
		if err != nil && whole < least {
			made, err = r.addNew(whole)
		}
		if err != nil {
			return nil, err
		}
		x, i = made, 0
	}
	at := x.vacant[i].at
	if x.vacant[i] = (span{at + whole, x.vacant[i].size - whole}); x.vacant[i].size == 0 {
		x.vacant = slices.Delete(x.vacant, i, i+1)
	}
	clear(x.mem[at:max(at, min(at+whole, x.used))])
	x.used = max(x.used, at+whole)
	r.insert(&lentBlock{lentRegion: x, span: span{at, whole}})
	return x.mem[at : at+size : at+size], nil
}

// addNew makes a region for blocks.
func (r *Regions) addNew(size int) (*lentRegion, error) {
	x, err := newRegion(size)
	if err != nil {
		return nil, err
	}
	if err := r.add(x); err != nil {
		x.close()
		return nil, err
	}
	x.vacant = []span{{0, size}}
	r.size += int64(size)
	return x, nil
}

// Adopt has memory lent that was made elsewhere: all of a file in memory, which is sealed against
// shrinking, and mapped as mem. Free unmaps it. Adopt does not own the descriptor.
func (r *Regions) Adopt(fd int, mem []byte) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("memory to lend: %w", err)
	}
	x := &lentRegion{mem: mem, base: uintptr(unsafe.Pointer(&mem[0])), fd: own, whole: true}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(x); err != nil {
		_ = unix.Close(own)
		return err
	}
	r.insert(&lentBlock{lentRegion: x, span: span{0, len(mem)}})
	return nil
}

// vacancy returns where there is room for a block, or nil.
func (r *Regions) vacancy(size int) (*lentRegion, int) {
	for _, x := range r.table {
		if x == nil {
			continue
		}
		for i, v := range x.vacant {
			if v.size >= size {
				return x, i
			}
		}
	}
	return nil, 0
}

// add gives a region a number. It does not own it if there is an error.
func (r *Regions) add(x *lentRegion) error {
	i := slices.Index(r.table, nil)
	switch {
	case i >= 0:
		r.table[i] = x
	case len(r.table) == maxRegions:
		return fmt.Errorf("%d regions are lent, which is the maximum", maxRegions)
	default:
		i = len(r.table)
		r.table, r.ages = append(r.table, x), append(r.ages, 0)
	}
	r.ages[i]++
	x.number, x.generation = uint32(i+1), r.ages[i]
	return nil
}

func (r *Regions) insert(b *lentBlock) {
	b.blocks++
	at, _ := r.search(b.address())
	r.sorted = slices.Insert(r.sorted, at, b)
}

func (b *lentBlock) address() uintptr { return b.base + uintptr(b.at) }

func newRegion(size int) (*lentRegion, error) {
	fd, err := unix.MemfdCreate("impi-lent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory to lend: memfd: %w", err)
	}
	err = unix.Ftruncate(fd, int64(size))
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	var mem []byte
	if err == nil {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("memory to lend, %d bytes: %w", size, err), unix.Close(fd))
	}
	return &lentRegion{mem: mem, base: uintptr(unsafe.Pointer(&mem[0])), fd: fd}, nil
}

func (x *lentRegion) close() { _, _ = unix.Munmap(x.mem), unix.Close(x.fd) }

// search returns where in sorted the block that begins at an address is, or should be.
func (r *Regions) search(base uintptr) (int, bool) {
	return slices.BinarySearchFunc(r.sorted, base, func(b *lentBlock, at uintptr) int { return cmp.Compare(b.address(), at) })
}

// Free frees memory of Allocate or Adopt, by its first byte's address. It stays where it is as long
// as a plugin may still read or write it. Plugins are told by the links over which it was lent.
func (r *Regions) Free(base uintptr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := r.search(base)
	if !found {
		return ErrNotLent
	}
	b := r.sorted[at]
	r.sorted = slices.Delete(r.sorted, at, at+1)
	b.free.Store(true)
	r.dropUnused(b)
	return nil
}

// dropUnused makes the place of a block vacant that was freed and that nothing uses, and ends the
// region if that was its last. The lock is held.
func (r *Regions) dropUnused(b *lentBlock) {
	if !b.free.Load() || b.uses.Load() > 0 || b.size == 0 {
		return
	}
	x := b.lentRegion
	x.vacate(b.span)
	b.size = 0 // it is done
	if x.blocks--; x.blocks > 0 {
		return
	}
	r.table[x.number-1] = nil
	if !x.whole {
		r.size -= int64(len(x.mem))
	}
	x.close()
	r.freed.Add(1)
}

// vacate adds a span to those that are vacant.
func (x *lentRegion) vacate(s span) {
	i, _ := slices.BinarySearchFunc(x.vacant, s.at, func(v span, at int) int { return cmp.Compare(v.at, at) })
	if i < len(x.vacant) && s.at+s.size == x.vacant[i].at {
		s.size += x.vacant[i].size
		x.vacant = slices.Delete(x.vacant, i, i+1)
	}
	if i > 0 && x.vacant[i-1].at+x.vacant[i-1].size == s.at {
		x.vacant[i-1].size += s.size
		return
	}
	x.vacant = slices.Insert(x.vacant, i, s)
}

// release reverses borrow.
func (r *Regions) release(b *lentBlock) {
	if b == nil || b.uses.Add(-1) > 0 || !b.free.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropUnused(b)
}

// borrow returns the block that has all of mem, and where in its region that is, or nil. The block
// keeps its place until release is called.
func (r *Regions) borrow(mem []byte) (b *lentBlock, offset uint64) {
	if r == nil || len(mem) == 0 {
		return nil, 0
	}
	at := uintptr(unsafe.Pointer(&mem[0]))
	r.mu.RLock()
	defer r.mu.RUnlock()
	i, found := r.search(at)
	if !found {
		i--
	}
	if i < 0 {
		return nil, 0
	}
	b = r.sorted[i]
	if inside := at - b.address(); inside > uintptr(b.size) || uintptr(len(mem)) > uintptr(b.size)-inside {
		return nil, 0
	}
	b.uses.Add(1)
	return b, uint64(at - b.base)
}

// withFD calls f with the descriptor of a region, unless it has ended.
func (r *Regions) withFD(x *lentRegion, f func(fd int) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.table[x.number-1] != x {
		return ErrNotLent
	}
	return f(x.fd)
}

// lives reports whether a region has not ended.
func (r *Regions) lives(number, generation uint32) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x := r.table[number-1]
	return x != nil && x.generation == generation
}
