package rdma

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxRegions is the maximum number of regions that are lent at a time.
const maxRegions = 64 << 10

// ErrNotLent means that memory is none that Regions.Allocate has returned.
var ErrNotLent = errors.New("this memory was not allocated to be lent")

// Regions are the memory of a process that it lends to plugins. Its methods may be called from
// several goroutines.
type Regions struct {
	mu     sync.RWMutex
	sorted []*lentRegion // by address
	table  []*lentRegion // by number, from 1 at index 0; nil: the number is vacant
	ages   []uint32      // by number: the last generation
	freed  atomic.Uint64
}

// lentRegion is one region, which has its number as long as it lives.
type lentRegion struct {
	mem                []byte
	base               uintptr
	fd                 int
	number, generation uint32
}

// Allocate returns size bytes of zeroed memory that can be lent. Free frees it.
func (r *Regions) Allocate(size int) ([]byte, error) {
	if size <= 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrNotLent, size)
	}
	page := unix.Getpagesize()
	whole := (size + page - 1) / page * page
	x, err := newLentRegion(whole)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.table, nil)
	switch {
	case i >= 0:
		r.table[i] = x
	case len(r.table) == maxRegions:
		x.close()
		return nil, fmt.Errorf("%d regions are lent, which is the maximum", maxRegions)
	default:
		i = len(r.table)
		r.table, r.ages = append(r.table, x), append(r.ages, 0)
	}
	r.ages[i]++
	x.number, x.generation = uint32(i+1), r.ages[i]
	at, _ := r.search(x.base)
	r.sorted = slices.Insert(r.sorted, at, x)
	return x.mem[:size:size], nil
}

func newLentRegion(size int) (*lentRegion, error) {
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

// search returns where in sorted the region that begins at an address is, or should be.
func (r *Regions) search(base uintptr) (int, bool) {
	return slices.BinarySearchFunc(r.sorted, base, func(x *lentRegion, at uintptr) int {
		switch {
		case x.base < at:
			return -1
		case x.base > at:
			return 1
		}
		return 0
	})
}

// Free frees memory that Allocate has returned, by its first byte's address. Plugins are told by
// the links over which it was lent.
func (r *Regions) Free(base uintptr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := r.search(base)
	if !found {
		return ErrNotLent
	}
	x := r.sorted[at]
	r.sorted = slices.Delete(r.sorted, at, at+1)
	r.table[x.number-1] = nil
	x.close()
	r.freed.Add(1)
	return nil
}

// find returns the region that has all of b, and where, or nil.
func (r *Regions) find(b []byte) (x *lentRegion, offset uint64) {
	if r == nil || len(b) == 0 {
		return nil, 0
	}
	at := uintptr(unsafe.Pointer(&b[0]))
	r.mu.RLock()
	defer r.mu.RUnlock()
	i, found := r.search(at)
	if !found {
		i--
	}
	if i < 0 {
		return nil, 0
	}
	x = r.sorted[i]
	if offset = uint64(at - x.base); offset > uint64(len(x.mem)) || uint64(len(b)) > uint64(len(x.mem))-offset {
		return nil, 0
	}
	return x, offset
}

// withFD calls f with the descriptor of a region, unless it was freed.
func (r *Regions) withFD(x *lentRegion, f func(fd int) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.table[x.number-1] != x {
		return ErrNotLent
	}
	return f(x.fd)
}

// lives reports whether a region was not freed.
func (r *Regions) lives(number, generation uint32) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x := r.table[number-1]
	return x != nil && x.generation == generation
}
