package inject

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// most is how many bytes of a write are looked at.
const most = 1 << 20

// short does the first half of a write to a stream or a file in the place of the thread that waits
// in it, and returns how many bytes that was; false if there is no such write, as of one byte, of a
// message that must not be divided, or with descriptors beside the bytes.
func short(tgid, tid int, d *data) (int, bool) {
	b := payload(tid, d)
	if len(b) < 2 {
		return 0, false
	}
	process, err := unix.PidfdOpen(tgid, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, int(int32(d.args[0])), 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	n, err := writeSome(fd, b[:len(b)/2])
	return n, err == nil && n > 0
}

func writeSome(fd int, b []byte) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return unix.Write(fd, b)
	case unix.S_IFSOCK:
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
			return 0, unix.EINVAL
		}
		return unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	return 0, unix.EINVAL
}

// payload reads the bytes that a call is to write. It returns nil if the call is about more than
// these bytes.
func payload(tid int, d *data) []byte {
	switch uintptr(d.nr) {
	case unix.SYS_WRITE:
		return bytesAt(tid, d.args[1], d.args[2])
	case unix.SYS_WRITEV:
		return gather(tid, d.args[1], d.args[2])
	case unix.SYS_SENDTO:
		if d.args[3]&unix.MSG_ZEROCOPY != 0 || d.args[4] != 0 {
			return nil
		}
		return bytesAt(tid, d.args[1], d.args[2])
	case unix.SYS_SENDMSG:
		header := make([]byte, 48) // name, its length, vector, its length, control, its length
		if d.args[2]&unix.MSG_ZEROCOPY != 0 || peek(tid, d.args[1], header) != nil || word(header, 0) != 0 || word(header, 5) != 0 {
			return nil
		}
		return gather(tid, word(header, 2), word(header, 3))
	}
	return nil
}

// gather reads the memory that an array of struct iovec describes.
func gather(tid int, vector, count uint64) (b []byte) {
	list := make([]byte, 16*min(count, 1024))
	if peek(tid, vector, list) != nil {
		return nil
	}
	for i := 0; i < len(list)/8 && len(b) < most; i += 2 {
		b = append(b, bytesAt(tid, word(list, i), word(list, i+1))...)
	}
	return b
}

func bytesAt(tid int, address, n uint64) []byte {
	b := make([]byte, min(n, most))
	if peek(tid, address, b) != nil {
		return nil
	}
	return b
}

func word(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
