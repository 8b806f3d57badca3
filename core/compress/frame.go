package compress

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	version    = 1
	headerSize = 8

	kindPlain      = 0
	kindCompressed = 1

	// block is how many bytes are compressed at a time: more would make the receiver wait longer
	// before it can begin. A little more than that is not cut.
	block = 128 << 10
	// MaxCompressed is the maximum number of decompressed bytes of a compressed frame.
	MaxCompressed = 192 << 10
	// MaxPlain is the maximum number of bytes of a plain frame.
	MaxPlain = 1 << 20
)

// ErrFrame is wrapped, in addition to link.ErrBroken, by the error for bytes of a peer that are not
// a valid frame.
var ErrFrame = errors.New("malformed compressed link")

type frame struct {
	compressed bool
	size       int // bytes for the user
	body       int
}

func (f frame) put(b []byte) {
	b[0], b[1] = version, kindPlain
	if f.compressed {
		b[1] = kindCompressed
	}
	b[2], b[3], b[4] = byte(f.size>>16), byte(f.size>>8), byte(f.size)
	b[5], b[6], b[7] = byte(f.body>>16), byte(f.body>>8), byte(f.body)
}

// parse reads a header. b has headerSize bytes.
func parse(b []byte) (f frame, err error) {
	f = frame{
		compressed: b[1] == kindCompressed,
		size:       int(b[2])<<16 | int(b[3])<<8 | int(b[4]),
		body:       int(b[5])<<16 | int(b[6])<<8 | int(b[7]),
	}
	switch {
	case b[0] != version:
		err = fmt.Errorf("version %d, not %d", b[0], version)
	case b[1] > kindCompressed:
		err = fmt.Errorf("kind %d", b[1])
	case f.compressed && (f.size > MaxCompressed || f.body < 1 || f.body >= f.size):
		err = fmt.Errorf("%d bytes compressed to %d; at most %d can be, to fewer", f.size, f.body, MaxCompressed)
	case !f.compressed && (f.size < 1 || f.size > MaxPlain || f.body != f.size):
		err = fmt.Errorf("%d plain bytes in a body of %d; from 1 to %d can be", f.size, f.body, MaxPlain)
	}
	return f, err
}

// malformed is the error for a frame that begins after at bytes of the stream below.
func malformed(at uint64, what error) error {
	return fmt.Errorf("%w: %w: frame at byte %d: %w", link.ErrBroken, ErrFrame, at, what)
}
