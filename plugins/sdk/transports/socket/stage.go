package socket

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	slotSize = 64 << 10 // bytes that one sendfile(2) moves at once
	maxSlots = 34       // enough for a send buffer of 2 MiB, which Linux makes of 1 MiB
	minPiece = 32 << 10 // minimum bytes that are worth a slot
	// oneWay bounds the difference between the bytes sent and twice those received: above
	// it a link is a stream. The difference never exceeds twice this, so that a stream ends
	// soon.
	oneWay = 2 << 20
	// counted is the smallest receive that counts against a stream.
	counted = 4 << 10
)

// stage is memory from which a Unix socket sends streams by reference; see
// docs/decisions/0016-streams-by-reference.md. The kernel takes fresh pages for what it
// copies into a Unix socket, and the receiver frees them on its own core, so a stream
// passes through memory that no cache has. A stage is reused: Send copies into it, and
// sendfile(2) puts references to its pages into the socket. (With traffic in both
// directions each core reuses the pages that it frees, and copying is faster.)
//
// A slot may be reused when the peer has read it. SIOCOUTQ of a Unix socket shows that: it
// is the memory of the buffers that the peer has not read to their end, which is never less
// than their bytes.
//
// A peer may keep references to the pages (by splice(2)) and then sees later bytes of its
// own link there, but of no other: each link has a stage of its own.
type stage struct {
	file    int    // memfd of mem
	mem     []byte // slots; nil: not allocated yet
	room    int    // the socket's send buffer, as the kernel counts it
	refused bool   // never used on this link

	ahead    int          // the difference of oneWay, never below zero
	seen     uint64       // bytes of sent that are in ahead
	received atomic.Int64 // bytes of Recv that are not in ahead yet

	sent uint64           // bytes that the socket took, staged or not
	ends [maxSlots]uint64 // position in sent after each slot
	next int              // the next slot to use
}

// wants reports whether to send a batch of size bytes through the stage, and allocates the
// stage when it is first needed.
func (s *stage) wants(fd, size int) bool {
	if s.refused || size < slotSize {
		return false
	}
	s.ahead += int(s.sent-s.seen) - 2*int(s.received.Swap(0))
	s.ahead = min(max(s.ahead, 0), 2*oneWay)
	s.seen = s.sent
	if s.ahead >= oneWay && s.mem == nil {
		s.refused = s.make(fd) != nil // without it sending is only slower
	}
	return s.ahead >= oneWay && !s.refused
}

func (s *stage) make(fd int) error {
	room, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return fmt.Errorf("send buffer's size: %w", err)
	}
	if room < 2*slotSize {
		return fmt.Errorf("a send buffer of %d bytes is too small to send by reference", room)
	}
	// Two more than fit: the one being filled, and one that was read but does not count as
	// read, since the kernel counts more than bytes.
	size := min(room/slotSize+2, maxSlots) * slotSize
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &most); err != nil {
		return fmt.Errorf("largest file: %w", err)
	}
	if most.Cur < uint64(size) { // a larger file would cause SIGXFSZ
		return fmt.Errorf("no file may have more than %d bytes", most.Cur)
	}
	file, err := unix.MemfdCreate("impi-stage", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // on kernels before Linux 6.3
		file, err = unix.MemfdCreate("impi-stage", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("memory to send from: %w", err)
	}
	var mem []byte
	// Allocate now: a page that cannot be allocated when it is written is a SIGBUS.
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

// release unmaps the memory. The socket keeps the pages that are under way.
func (s *stage) release() {
	if s.mem != nil {
		_ = unix.Munmap(s.mem)
		unix.Close(s.file)
		s.mem = nil
	}
}

// send puts the first n of size bytes into the socket, slot by slot. If more is set, the
// rest is for send(2); otherwise the socket is full.
func (s *stage) send(fd int, batch [][]byte, size int) (n int, more bool, errno syscall.Errno) {
	from := cursor{batch: batch}
	for size-n >= minPiece {
		unread, err := unix.IoctlGetUint32(fd, unix.SIOCOUTQ)
		if err != nil {
			s.refused = true
			return n, true, 0
		}
		// If there is room for the whole slot the call takes all of it, and does not wait
		// even if another process has cleared O_NONBLOCK. poll(2) reports writable only if
		// at most a quarter is in use, so this is not missed.
		if int(unread)+slotSize > s.room {
			return n, false, 0
		}
		if s.sent < s.ends[s.next]+uint64(unread) && s.ends[s.next] > 0 {
			return n, true, 0 // the buffer has more room than the stage
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
	// Otherwise an old kernel or a sandbox refuses the call; or it has to be repeated.
	s.refused = errno != syscall.EAGAIN && errno != syscall.EINTR
	return 0, 0
}

type cursor struct {
	batch [][]byte
	used  int // bytes of batch[0]
}

// copy fills to with the next bytes and returns how many there were.
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
