package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// ErrRegion is wrapped by the error for memory that is not a valid region.
var ErrRegion = errors.New("no valid region of rings")

// The layout: see the package comment.
const (
	version    = 1
	byteOrder  = 0x01020304
	headerSize = 4096
	blockSize  = 1024
	line       = 128
	loanTables = 3072 // each loanTable bytes
	loanTable  = 512
	minSize    = 4 << 10
	maxSize    = 1 << 30

	atVersion   = 8
	atOrder     = 12
	atSize      = 24
	atData      = 32
	atFastBoxes = 40
	atAreas     = 48
	atAreaSize  = 56
)

// areaShare is the part of a ring's size that each memory for data of fast-box messages has.
const areaShare = 4

var magic = [8]byte{'i', 'm', 'p', 'i', 'r', 'i', 'n', 'g'}

// seals are the seals that a region's file must have: without them the other side could
// shrink the file under a mapped page.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// DefaultSize is the size of each ring's data in bytes: large enough that a writer seldom
// waits, and small enough for a processor's cache.
const DefaultSize = 512 << 10

// Create makes the file of a region with rings of size bytes each, a power of two, for a
// process that passes bytes on. The caller owns the descriptor, which may be passed to both
// sides.
func Create(size int) (fd int, err error) { return create(size, 0) }

// CreateForProcs is like Create, for two processes that both use the link themselves. Their
// fast-box messages have room for longer data.
func CreateForProcs(size int) (fd int, err error) {
	return create(size, min(size/areaShare, link.MaxFastBoxArea))
}

func create(size, area int) (fd int, err error) {
	if err := checkSize(uint64(size)); err != nil {
		return -1, err
	}
	fd, err = unix.MemfdCreate("impi-ring", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("ring: memfd: %w", err)
	}
	if err := fill(fd, size, area); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func fill(fd, size, area int) error {
	all := headerSize + 2*size + 2*link.FastBoxPageSize + 2*area
	if err := unix.Fallocate(fd, 0, 0, int64(all)); err != nil { // without memory this fails, instead of a SIGBUS later
		return fmt.Errorf("ring: %d bytes of shared memory: %w", all, err)
	}
	if _, err := unix.Pwrite(fd, header(size, area), 0); err != nil {
		return fmt.Errorf("ring: header: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("ring: seal: %w", err)
	}
	return nil
}

// header is the first line of a region.
func header(size, area int) []byte {
	h := make([]byte, 64)
	copy(h, magic[:])
	binary.NativeEndian.PutUint32(h[atVersion:], version)
	binary.NativeEndian.PutUint32(h[atOrder:], byteOrder)
	binary.NativeEndian.PutUint64(h[atSize:], uint64(size))
	binary.NativeEndian.PutUint64(h[atData:], headerSize)
	binary.NativeEndian.PutUint64(h[atFastBoxes:], headerSize+2*uint64(size))
	if area > 0 {
		binary.NativeEndian.PutUint64(h[atAreas:], headerSize+2*uint64(size)+2*uint64(link.FastBoxPageSize))
		binary.NativeEndian.PutUint64(h[atAreaSize:], uint64(area))
	}
	return h
}

func checkSize(size uint64) error {
	if size < minSize || size > maxSize || bits.OnesCount64(size) != 1 {
		return fmt.Errorf("%w: rings of %d bytes; a power of two from %d to %d is possible", ErrRegion, size, minSize, maxSize)
	}
	return nil
}

type region struct {
	mem    []byte
	mapped bool
	size   uint64
	blocks [2]*block
	loans  [2]*[loans]loan
	data   [2][]byte
	pages  [2]*link.FastBoxPage // nil: no room for fast boxes
	areas  [2][]byte            // for data of fast-box messages; nil: there are none
}

// block is the control block of one ring, in the form of the layout.
//
// What is written before checking whether the other side sleeps, or before going to sleep
// and checking once more, is written with Swap: the write and the check must not be
// reordered. By Go's memory model a Store would do, but under the race detector it is only
// a release for memory that is not Go's own, and a wake-up is lost.
type block struct {
	head           atomic.Uint64
	_              [line - 8]byte
	tail           atomic.Uint64
	_              [line - 8]byte
	readerSleeps   atomic.Uint32
	_              [line - 4]byte
	writerSleeps   atomic.Uint32
	_              [line - 4]byte
	ended          atomic.Uint32
	_              [line - 4]byte
	gone           atomic.Uint32
	_              [line - 4]byte
	lent           atomic.Uint64
	lends          atomic.Uint32
	recalled       atomic.Uint32
	offer          offer
	_              [line - 48]byte
	taken          atomic.Uint64
	takes          atomic.Uint32
	takesFastBoxes atomic.Uint32
	boxed          atomic.Uint64
	_              [line - 24]byte
}

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
	if st.Size < headerSize+2*minSize || st.Size > headerSize+2*maxSize+int64(2*link.FastBoxPageSize+2*link.MaxFastBoxArea) {
		return nil, fmt.Errorf("%w: a file of %d bytes", ErrRegion, st.Size)
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

func parse(mem []byte) (*region, error) {
	size, data := binary.NativeEndian.Uint64(mem[atSize:]), binary.NativeEndian.Uint64(mem[atData:])
	switch {
	case [8]byte(mem) != magic:
		return nil, fmt.Errorf("%w: it begins with %q", ErrRegion, mem[:8])
	case binary.NativeEndian.Uint32(mem[atOrder:]) != byteOrder:
		return nil, fmt.Errorf("%w: its byte order is not this machine's", ErrRegion)
	case binary.NativeEndian.Uint32(mem[atVersion:]) != version:
		return nil, fmt.Errorf("%w: layout version %d, this is version %d", ErrRegion, binary.NativeEndian.Uint32(mem[atVersion:]), version)
	}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if data < headerSize || data > headerSize+uint64(len(mem)) || data%line != 0 || data+2*size > uint64(len(mem)) {
		return nil, fmt.Errorf("%w: two rings of %d bytes from offset %d are not in a file of %d", ErrRegion, size, data, len(mem))
	}
	r := &region{mem: mem, size: size}
	for i := range r.blocks {
		r.blocks[i] = (*block)(unsafe.Pointer(&mem[(i+1)*blockSize]))
		r.loans[i] = (*[loans]loan)(unsafe.Pointer(&mem[loanTables+i*loanTable]))
		r.data[i] = mem[data+uint64(i)*size:][:size:size]
	}
	return r, r.parseFastBoxes(data + 2*size)
}

// parseFastBoxes finds the fast boxes, if there are any. They must not begin before the
// offset end.
func (r *region) parseFastBoxes(end uint64) error {
	at, size := binary.NativeEndian.Uint64(r.mem[atFastBoxes:]), uint64(link.FastBoxPageSize)
	switch {
	case at == 0:
		return nil
	case at < end || at > uint64(len(r.mem)) || at%line != 0 || at+2*size > uint64(len(r.mem)):
		return fmt.Errorf("%w: fast-box messages from offset %d on are not behind the rings, which end at %d, in a file of %d bytes", ErrRegion, at, end, len(r.mem))
	}
	r.pages[0], r.pages[1] = link.FastBoxPageAt(r.mem[at:]), link.FastBoxPageAt(r.mem[at+size:])
	return r.parseAreas(at + 2*size)
}

// parseAreas finds the memory for data of fast-box messages, if there is any. It must not
// begin before the offset end.
func (r *region) parseAreas(end uint64) error {
	at, size := binary.NativeEndian.Uint64(r.mem[atAreas:]), binary.NativeEndian.Uint64(r.mem[atAreaSize:])
	switch {
	case at == 0:
		return nil
	case size < line || size > link.MaxFastBoxArea || bits.OnesCount64(size) != 1:
		return fmt.Errorf("%w: memory of %d bytes for the data of fast-box messages; a power of two from %d to %d is possible", ErrRegion, size, line, link.MaxFastBoxArea)
	case at < end || at > uint64(len(r.mem)) || at%line != 0 || at+2*size > uint64(len(r.mem)):
		return fmt.Errorf("%w: data of fast-box messages from offset %d on are not behind the boxes, which end at %d, in a file of %d bytes", ErrRegion, at, end, len(r.mem))
	}
	for i := range r.areas {
		r.areas[i] = r.mem[at+uint64(i)*size:][:size:size]
	}
	return nil
}

func (r *region) unmap() {
	if r.mapped {
		_ = unix.Munmap(r.mem) // cannot fail: it is mapped
	}
}
