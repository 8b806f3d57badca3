package rdma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrRegion is wrapped by the error for memory that is no valid control region.
var ErrRegion = errors.New("no valid control region of data plane rdma")

// The layout: see docs/plugin-protocol.md.
const (
	version    = 1
	byteOrder  = 0x01020304
	headerSize = 4096
	blockSize  = 1024
	line       = 128
	entrySize  = 64
	perSlot    = 8 // entries of a ring for each slot
	keptBack   = 6 // of these, those that are no Forgets: see Link.forget

	atVersion  = 8
	atOrder    = 12
	atSlots    = 24
	atSlotSize = 28
	atNotes    = 3072

	maxSize                  = 64 << 20 // of a region
	minSlots, maxSlots       = 4, 256
	minSlotSize, maxSlotSize = 1 << 10, 1 << 20
)

var magic = [8]byte{'i', 'm', 'p', 'i', 'r', 'd', 'm', 'a'}

// seals are the seals that a region's file must have: without them the other side could shrink the
// file under a mapped page.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// MaxLength is the maximum length of a message in bytes.
const MaxLength = 1 << 30

// Shape is how large a control region is: it has three times as many slots of bounce memory, for
// what the proc sends, for what it receives, and for what it reads.
type Shape struct {
	Slots    int // a power of two from 4 to 256
	SlotSize int // bytes, a power of two from 2^10 to 2^20
}

// DefaultShape has 1.5 MiB of bounce memory.
var DefaultShape = Shape{Slots: 8, SlotSize: 64 << 10}

func (s Shape) entries() int { return perSlot * s.Slots }

// area is the size of the bounce memory for one purpose.
func (s Shape) area() int { return s.Slots * s.SlotSize }

func (s Shape) bounceAt() int { return headerSize + 2*s.entries()*entrySize }

// Size is the size of a region in bytes.
func (s Shape) Size() int { return s.bounceAt() + 3*s.area() }

func (s Shape) check() error {
	for _, x := range []struct {
		what          string
		n, least, top int
	}{{"slots", s.Slots, minSlots, maxSlots}, {"bytes of a slot", s.SlotSize, minSlotSize, maxSlotSize}} {
		if x.n < x.least || x.n > x.top || bits.OnesCount(uint(x.n)) != 1 {
			return fmt.Errorf("%w: %d %s; a power of two from %d to %d is possible", ErrRegion, x.n, x.what, x.least, x.top)
		}
	}
	return nil
}

// Create makes the file of a region. The caller owns the descriptor.
func Create(s Shape) (fd int, err error) {
	if err := s.check(); err != nil {
		return -1, err
	}
	if fd, err = unix.MemfdCreate("impi-rdma", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return -1, fmt.Errorf("rdma: memfd: %w", err)
	}
	if err := fill(fd, s); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func fill(fd int, s Shape) error {
	if err := unix.Fallocate(fd, 0, 0, int64(s.Size())); err != nil { // without memory this fails, instead of a SIGBUS later
		return fmt.Errorf("rdma: %d bytes of shared memory: %w", s.Size(), err)
	}
	if _, err := unix.Pwrite(fd, header(s), 0); err != nil {
		return fmt.Errorf("rdma: header: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("rdma: seal: %w", err)
	}
	return nil
}

func header(s Shape) []byte {
	h := make([]byte, 64)
	copy(h, magic[:])
	binary.NativeEndian.PutUint32(h[atVersion:], version)
	binary.NativeEndian.PutUint32(h[atOrder:], byteOrder)
	binary.NativeEndian.PutUint32(h[atSlots:], uint32(s.Slots))
	binary.NativeEndian.PutUint32(h[atSlotSize:], uint32(s.SlotSize))
	return h
}

// region is a control region in this process's memory.
type region struct {
	mem    []byte
	mapped bool
	shape  Shape
	blocks [2]*block // of the submissions and the completions
	rings  [2][]Entry
	bounce []byte
	notes  *notes
}

// block is the control block of one ring of entries. It has the fields of one of data plane "ring"
// (package ring says why some are written with Swap).
type block struct {
	head         atomic.Uint64
	_            [line - 8]byte
	tail         atomic.Uint64
	_            [line - 8]byte
	readerSleeps atomic.Uint32
	_            [line - 4]byte
	writerSleeps atomic.Uint32
	_            [line - 4]byte
	ended        atomic.Uint32
	_            [line - 4]byte
	gone         atomic.Uint32
}

// notes are what the node leaves for the proc that it hands the link to. The plugin could change
// them, so they are checked like all else.
type notes struct{ sent, acknowledged, arrived, offered uint64 }

// open maps a region after a check of its file.
func open(fd int) (*region, error) {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0) // first: until it is sealed its size may change
	if err != nil {
		return nil, fmt.Errorf("%w: its file cannot be sealed: %w", ErrRegion, err)
	}
	if have&seals != seals {
		return nil, fmt.Errorf("%w: its file can be made smaller: seals %#x of %#x", ErrRegion, have, seals)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegion, err)
	}
	if st.Size < headerSize || st.Size > maxSize {
		return nil, fmt.Errorf("%w: a file of %d bytes; %d to %d are possible", ErrRegion, st.Size, headerSize, maxSize)
	}
	if st.Blocks*512 < st.Size {
		return nil, fmt.Errorf("%w: %d bytes of which %d are allocated", ErrRegion, st.Size, st.Blocks*512)
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("%w: mmap: %w", ErrRegion, err)
	}
	r, err := parse(mem)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	r.mapped = true
	return r, nil
}

// parse checks the header. mem has at least the header's bytes.
func parse(mem []byte) (*region, error) {
	h := mem[:headerSize]
	switch {
	case [8]byte(h) != magic:
		return nil, fmt.Errorf("%w: it begins with %q", ErrRegion, h[:8])
	case binary.NativeEndian.Uint32(h[atOrder:]) != byteOrder:
		return nil, fmt.Errorf("%w: its byte order is not this machine's", ErrRegion)
	case binary.NativeEndian.Uint32(h[atVersion:]) != version:
		return nil, fmt.Errorf("%w: layout version %d, this is version %d", ErrRegion, binary.NativeEndian.Uint32(h[atVersion:]), version)
	}
	s := Shape{Slots: int(binary.NativeEndian.Uint32(h[atSlots:])), SlotSize: int(binary.NativeEndian.Uint32(h[atSlotSize:]))}
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Size() != len(mem) {
		return nil, fmt.Errorf("%w: %d slots of %d bytes need %d bytes, its file has %d", ErrRegion, s.Slots, s.SlotSize, s.Size(), len(mem))
	}
	r := &region{mem: mem, shape: s, bounce: mem[s.bounceAt():]}
	for i := range r.blocks {
		r.blocks[i] = (*block)(unsafe.Pointer(&mem[(i+1)*blockSize]))
		at := headerSize + i*s.entries()*entrySize
		r.rings[i] = unsafe.Slice((*Entry)(unsafe.Pointer(&mem[at])), s.entries())
	}
	r.notes = (*notes)(unsafe.Pointer(&mem[atNotes]))
	return r, nil
}

func (r *region) unmap() {
	if r.mapped {
		_ = unix.Munmap(r.mem) // cannot fail: it is mapped
	}
}

// slot returns the memory of a slot: area 0 is for sending, 1 for receiving, 2 for reading.
func (r *region) slot(area, n int) []byte {
	at := area*r.shape.area() + n*r.shape.SlotSize
	return r.bounce[at:][:r.shape.SlotSize:r.shape.SlotSize]
}
