package startup

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// reader cuts the bytes of a connection into commands. It keeps an incomplete command, and
// never more than one of the largest size that is allowed.
type reader struct {
	buf  []byte
	off  int // buf[:off] has been used
	skip int // bytes of an unknown command that are still to come
	want int // size of the incomplete command, with its header
}

// frame is one command with its payload, which is valid until the next feed.
type frame struct {
	cmd     wire.Command
	payload []byte
}

func (r *reader) feed(b []byte) {
	n := min(r.skip, len(b))
	r.skip -= n
	if r.off == len(r.buf) {
		r.buf, r.off = r.buf[:0], 0
	} else if r.off > len(r.buf)/2 {
		r.buf, r.off = r.buf[:copy(r.buf, r.buf[r.off:])], 0
	}
	r.reserve(len(b) - n)
	r.buf = append(r.buf, b[n:]...)
}

// maxIdle is the most memory that a reader keeps when no bytes are in it.
const maxIdle = 1 << 20

// reserve makes room for n more bytes. The memory grows with the bytes that have come, so
// that an announced length alone costs nothing, and not beyond what a large command needs.
func (r *reader) reserve(n int) {
	need := len(r.buf) + n
	if need <= cap(r.buf) || r.want <= need {
		return
	}
	size, all := 2*need, r.off+r.want
	if size > all-all/8 { // so that it does not have to grow once more for the last bytes
		size = max(all, need)
	}
	r.buf = append(make([]byte, 0, size), r.buf...)
}

// rest releases the memory of a large command that has been handled. The reader's owner
// calls it when it needs no payload any more, since the next bytes may take long to come.
func (r *reader) rest() {
	if r.off == len(r.buf) && cap(r.buf) > maxIdle {
		r.buf, r.off = nil, 0
	}
}

// peek returns the next n bytes if they have come, and does not remove them.
func (r *reader) peek(n int) ([]byte, bool) {
	if len(r.buf)-r.off < n {
		return nil, false
	}
	return r.buf[r.off : r.off+n], true
}

// raw removes and returns the next n bytes if they have come.
func (r *reader) raw(n int) ([]byte, bool) {
	b, ok := r.peek(n)
	if ok {
		r.off += n
	}
	return b, ok
}

// next removes and returns the next command that is known; it skips others, as IMPI ch.2
// requires. A command of more than limit bytes is an error.
func (r *reader) next(limit int, known func(wire.Command) bool) (f frame, ok bool, err error) {
	for {
		h, ok := r.peek(wire.CommandSize)
		if !ok {
			return frame{}, false, nil
		}
		cmd, n := wire.ParseCommand(h)
		if n < 0 || int64(n) > int64(limit) {
			return frame{}, false, fmt.Errorf("%w: %v of %d bytes; at most %d are taken", ErrTooLong, cmd, n, limit)
		}
		if known(cmd) {
			r.want = wire.CommandSize + int(n)
			b, ok := r.raw(r.want)
			if !ok {
				return frame{}, false, nil
			}
			r.want = 0
			return frame{cmd, b[wire.CommandSize:]}, true, nil
		}
		r.off += wire.CommandSize
		have := min(int(n), len(r.buf)-r.off)
		r.off += have
		r.skip = int(n) - have
	}
}
