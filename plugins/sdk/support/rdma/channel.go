package rdma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// The region channel is a SOCK_SEQPACKET socket, by which a proc lends regions to the plugin: each
// message is a record with one descriptor. A message of one byte only wakes the plugin.
const (
	recordSize    = 32
	recordMagic   = 0x494d5052 // "IMPR"
	recordVersion = 1
	recordLend    = 1
	maxRegionSize = 1 << 46

	// MaxLent is the maximum number of regions that are lent over one link at a time.
	MaxLent = 1024
)

// files are the plugin's descriptors beside the socket for waking.
type files struct {
	mu      sync.Mutex
	channel int // its end of the region channel; -1 after close
	region  int // a copy; -1: it was taken
}

// receive reads the region channel until it is empty, and appends the regions to list. ended means
// that the proc has closed the link or died.
func (f *files) receive(list []Lent) (_ []Lent, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range maxMessages {
		if f.channel < 0 {
			return list, true, nil
		}
		l, what, err := receiveRegion(f.channel)
		switch {
		case err != nil:
			return list, false, err
		case what == nothing:
			return list, false, nil
		case what == theEnd:
			return list, true, nil
		case what == aRegion:
			list = append(list, l)
		}
	}
	return list, false, nil
}

func (f *files) handle() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channel
}

func (f *files) takeRegion() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd := f.region
	f.region = -1
	return fd
}

func (f *files) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fd := range []int{f.channel, f.region} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	f.channel, f.region = -1, -1
}

// Lent is a region that a proc has lent, as the plugin gets it.
type Lent struct {
	Number     uint32
	Generation uint32
	Size       int64
	FD         int // owned by the holder
}

func appendRecord(b []byte, l Lent) []byte {
	b = binary.BigEndian.AppendUint32(b, recordMagic)
	b = binary.BigEndian.AppendUint16(b, recordVersion)
	b = binary.BigEndian.AppendUint16(b, recordLend)
	b = binary.BigEndian.AppendUint32(b, l.Number)
	b = binary.BigEndian.AppendUint32(b, l.Generation)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Size))
	return binary.BigEndian.AppendUint64(b, 0)
}

func parseRecord(b []byte) (l Lent, err error) {
	if len(b) != recordSize {
		return l, fmt.Errorf("%w: a record of %d bytes on the region channel, which has %d", ErrRules, len(b), recordSize)
	}
	m, v, k := binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
	if m != recordMagic || v != recordVersion || k != recordLend {
		return l, fmt.Errorf("%w: a record on the region channel with magic %#08x, version %d, kind %d", ErrRules, m, v, k)
	}
	l.Number, l.Generation = binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	size := binary.BigEndian.Uint64(b[16:])
	if l.Number == 0 || l.Number > maxRegions || l.Generation == 0 || size == 0 || size > maxRegionSize {
		return l, fmt.Errorf("%w: it lends region %d, generation %d, of %d bytes", ErrRules, l.Number, l.Generation, size)
	}
	l.Size = int64(size)
	return l, nil
}

// sendRegion lends a region. It does not wait: an error may mean that the channel is full.
func sendRegion(sock int, l Lent) error {
	b := appendRecord(make([]byte, 0, recordSize), l)
	for {
		err := unix.Sendmsg(sock, b, unix.UnixRights(l.FD), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// wake wakes the plugin. A full channel is readable, so an error does not matter.
func wake(sock int) { _ = unix.Send(sock, []byte{0}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }

// What receiveRegion has found.
type found int

const (
	nothing found = iota
	aBell
	aRegion
	theEnd
)

// maxMessages bounds how many messages are read in a row, since the proc may send for ever.
const maxMessages = 4 << 10

// receiveRegion reads the next message of the region channel.
func receiveRegion(sock int) (l Lent, what found, err error) {
	var b [recordSize + 1]byte
	oob := make([]byte, unix.CmsgSpace(4*2))
	n, oobn, flags, _, err := unix.Recvmsg(sock, b[:], oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return l, nothing, nil
	case errors.Is(err, unix.EINTR):
		return l, aBell, nil // once more
	case errors.Is(err, unix.ECONNRESET), err == nil && n == 0 && oobn == 0:
		return l, theEnd, nil
	case err != nil:
		return l, nothing, fmt.Errorf("region channel: %w", err)
	case n == 1 && oobn == 0:
		return l, aBell, nil
	}
	fds := rights(oob[:oobn])
	l, err = parseRecord(b[:n])
	if err == nil && (len(fds) != 1 || flags&unix.MSG_CTRUNC != 0) {
		err = fmt.Errorf("%w: region %d comes with %d descriptors, and not 1", ErrRules, l.Number, len(fds))
	}
	if err == nil {
		err = checkLent(fds[0], l)
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return l, nothing, err
	}
	l.FD = fds[0]
	return l, aRegion, nil
}

// rights returns the descriptors of any control message.
func rights(oob []byte) (fds []int) {
	messages, _ := unix.ParseSocketControlMessage(oob) // what could be parsed is used
	for i := range messages {
		if more, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, more...)
		}
	}
	return fds
}

// checkLent checks that the file of a region is what its record says, and that it cannot be made
// smaller, so that touching its memory is safe.
func checkLent(fd int, l Lent) error {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0) // first: until it is sealed its size may change
	if err != nil || have&unix.F_SEAL_SHRINK == 0 {
		return fmt.Errorf("%w: the file of region %d can be made smaller: seals %#x (%w)", ErrRules, l.Number, have, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%w: region %d: %w", ErrRules, l.Number, err)
	}
	if st.Size != l.Size {
		return fmt.Errorf("%w: the file of region %d has %d bytes, its record says %d", ErrRules, l.Number, st.Size, l.Size)
	}
	return nil
}
