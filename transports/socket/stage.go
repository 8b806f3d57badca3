package socket

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	slotSize = 64 << 10 // what one sendfile(2) moves at once
	maxSlots = 34       // for all of a send buffer of 2 MiB, what Linux makes of 1 MiB
	minPiece = 32 << 10 // the least that is worth a slot
	// oneWay is by how much a link must have sent more than it received, twice,
	// to be a stream. A bound of twice that makes it end soon.
	oneWay = 2 << 20
	// counted is the least size of receives that speak against a stream.
	counted = 4 << 10
)

// stage is memory from which a Unix socket sends streams by reference. The kernel
// takes fresh pages for what it copies into a Unix socket, and the receiver frees
// them on its own core, so that a stream goes through memory that no cache has.
// A stage is written over and over: Send copies into it, and sendfile(2) puts
// references to its pages into the socket. (Where bytes go both ways, the pages
// that a core frees are those that it needs, and copying is faster.)
//
// A slot may be written again when the peer has read what it had. The kernel
// tells: SIOCOUTQ of a Unix socket is the memory of the buffers that the peer has
// not read to their end, which is never less than their bytes.
//
// A peer may keep references to the pages (splice(2) does) and see later bytes of
// its link there, to its own harm only: each link has a stage of its own.
type stage struct {
	file    int    // memfd of mem
	mem     []byte // slots; nil: not there yet
	room    int    // the socket's send buffer, as the kernel counts it
	refused bool   // not on this link

	ahead    int          // what oneWay is about, never below zero
	seen     uint64       // of sent, in ahead
	received atomic.Int64 // by Recv, not in ahead yet

	sent uint64           // bytes that the socket took of this link, staged or not
	ends [maxSlots]uint64 // where among them each slot ends
	next int              // the slot whose turn it is
}

// wants reports whether to send a batch of size bytes through the stage, and makes
// the stage when it is time.
func (s *stage) wants(fd, size int) bool {
	if s.refused || size < slotSize {
		return false
	}
	s.ahead += int(s.sent-s.seen) - 2*int(s.received.Swap(0))
	s.ahead = min(max(s.ahead, 0), 2*oneWay)
	s.seen = s.sent
	if s.ahead >= oneWay && s.mem == nil {
		s.refused = s.make(fd) != nil // sending is slower then, no more
	}
	return s.ahead >= oneWay && !s.refused
}

// make maps the slots.
func (s *stage) make(fd int) error {
	room, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return fmt.Errorf("send buffer's size: %w", err)
	}
	if room < 2*slotSize {
		return fmt.Errorf("a send buffer of %d bytes is too small to send by reference", room)
	}
	// Two more than fit: the one being filled, and one that is read but not known
	// to be, as the kernel counts more than bytes.
	size := min(room/slotSize+2, maxSlots) * slotSize
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &most); err != nil {
		return fmt.Errorf("largest file: %w", err)
	}
	if most.Cur < uint64(size) { // it would be a SIGXFSZ
		return fmt.Errorf("no file may have more than %d bytes", most.Cur)
	}
	file, err := unix.MemfdCreate("impi-stage", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		file, err = unix.MemfdCreate("impi-stage", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("memory to send from: %w", err)
	}
	var mem []byte
	// Now, for a page that cannot be had when it is written is a SIGBUS.
	if err = unix.Fallocate(file, 0, 0, int64(size)); err == nil {
		mem, err = unix.Mmap(file, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		unix.Close(file)
		return fmt.Errorf("%d bytes of memory to send from: %w", size, err)
	}
	s.file, s.mem, s.room = file, mem, room
	return nil
}

// release gives the memory back. The socket keeps the pages that are under way.
func (s *stage) release() {
	if s.mem != nil {
		_ = unix.Munmap(s.mem)
		unix.Close(s.file)
		s.mem = nil
	}
}

// send puts the first n of size bytes into the socket, a slot after the other.
// The rest, if more is set, is for send(2); otherwise the socket is full.
func (s *stage) send(fd int, batch [][]byte, size int) (n int, more bool, errno syscall.Errno) {
	from := cursor{batch: batch}
	for size-n >= minPiece {
		unread, err := unix.IoctlGetUint32(fd, unix.SIOCOUTQ)
		if err != nil {
			s.refused = true
			return n, true, 0
		}
		// With room for the whole slot the call takes all of it, and does not wait
		// even if another process has cleared O_NONBLOCK. That there is none is
		// never what poll(2) calls writable: a quarter in use, or less.
		if int(unread)+slotSize > s.room {
			return n, false, 0
		}
		if s.sent < s.ends[s.next]+uint64(unread) && s.ends[s.next] > 0 {
			return n, true, 0 // the buffer has room for more than the stage
		}
		at := s.next * slotSize
		piece := from.copy(s.mem[at : at+slotSize])
		k, errno := s.give(fd, at, piece)
		n += k
		if k < piece {
			return n, s.refused, errno
		}
	}
	return n, true, 0
}

// give sends size bytes of the slot at an offset.
func (s *stage) give(fd, at, size int) (int, syscall.Errno) {
	offset := int64(at)
	hold := holdSIGPIPE()
	k, err := unix.Sendfile(fd, s.file, &offset, size)
	hold.release(err == unix.EPIPE)
	if err == nil && k > 0 {
		s.sent += uint64(k)
		s.ends[s.next] = s.sent
		s.next = (s.next + 1) % (len(s.mem) / slotSize)
		return k, 0
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	if errno == syscall.EPIPE || errno == syscall.ECONNRESET {
		return 0, errno
	}
	// Else an older kernel, or a sandbox, does not do this; or try again.
	s.refused = errno != syscall.EAGAIN && errno != syscall.EINTR
	return 0, 0
}

// cursor goes through a batch.
type cursor struct {
	batch [][]byte
	used  int // bytes of batch[0]
}

// copy fills to with the next bytes and says how many there were.
func (c *cursor) copy(to []byte) (n int) {
	for n < len(to) && len(c.batch) > 0 {
		k := copy(to[n:], c.batch[0][c.used:])
		n += k
		if c.used += k; c.used == len(c.batch[0]) {
			c.batch, c.used = c.batch[1:], 0
		}
	}
	return n
}
