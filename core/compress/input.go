package compress

import (
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	// first is how much is read if it is unknown what comes, next how much beyond the end of a frame,
	// for the header of the next one and short frames.
	first = 4<<10 + 512
	next  = 512
)

var errShort = errors.New("the link has ended within it")

type input struct {
	codec Codec

	buf  []byte // bytes [r,w) were read ahead
	r, w int
	raw  int    // bytes of a plain frame that the user has not received
	body int    // bytes of the compressed frame whose header has been read, 0: none
	size int    // its decompressed size in bytes
	at   uint64 // offset of the current frame in the stream below
	read uint64 // bytes read from the stream below

	memory []byte // memory of plain
	plain  []byte // decompressed bytes that the user has not received
	only   bool   // the next recv does not read the link below
	dry    bool   // the link below had no more data in this call
	err    error

	batch   [][]byte // copy of the user's slices
	scratch [][]byte // slices for the link below

	given uint64
}

// release drops the memory of frames. Nothing may be received afterwards.
func (in *input) release() {
	in.buf, in.memory, in.plain = nil, nil, nil
	in.r, in.w = 0, 0
}

// buffered reports whether recv would return bytes or an error without reading from the link below.
func (in *input) buffered() bool {
	have := in.w - in.r
	switch {
	case in.err != nil || len(in.plain) > 0:
		return true
	case in.raw > 0:
		return have > 0
	case in.body > 0:
		return have >= in.body
	}
	return have >= headerSize
}

func (in *input) recv(below link.Link, batch [][]byte) (n int, err error) {
	in.batch = append(in.batch[:0], batch...)
	in.dry, in.only = in.only, false
	for left := in.batch; link.Len(left) > 0; {
		var k int
		if k, err = in.step(below, left); k == 0 && err != nil {
			break
		}
		n += k
		left = link.Advance(left, k)
	}
	clear(in.batch)
	in.given += uint64(n)
	if n > 0 || errors.Is(err, errNothing) {
		return n, nil // the next call returns the error
	}
	return 0, err
}

var errNothing = errors.New("nothing has come")

// step passes bytes to the user and returns how many, or moves bytes from the link below.
func (in *input) step(below link.Link, left [][]byte) (n int, err error) {
	have := in.buf[in.r:in.w]
	switch {
	case in.err != nil:
		return 0, in.err
	case len(in.plain) > 0:
		n = spread(left, in.plain)
		in.plain = in.plain[n:]
		return n, nil
	case in.raw > 0 && len(have) > 0:
		n = spread(left, have[:min(len(have), in.raw)])
		in.r += n
		in.raw -= n
		return n, nil
	case in.raw > 0:
		return in.direct(below, left)
	case in.body > 0 && len(have) >= in.body:
		return 0, in.decompress(have[:in.body])
	case in.body > 0:
		return 0, in.fill(below, in.body-len(have)+next)
	case len(have) >= headerSize:
		return 0, in.begin(have)
	}
	return 0, in.fill(below, first)
}

func (in *input) begin(have []byte) error {
	in.at = in.read - uint64(len(have))
	f, err := parse(have[:headerSize])
	if err != nil {
		in.err = malformed(in.at, err)
		return in.err
	}
	in.r += headerSize
	if f.compressed {
		in.body, in.size = f.body, f.size
	} else {
		in.raw = f.size
	}
	return nil
}

func (in *input) decompress(body []byte) error {
	if in.memory == nil {
		in.memory = make([]byte, MaxCompressed)
	}
	if err := in.codec.Decompress(in.memory[:in.size], body); err != nil {
		in.err = malformed(in.at, fmt.Errorf("%d bytes compressed to %d: %w", in.size, in.body, err))
		return in.err
	}
	in.plain = in.memory[:in.size]
	in.r += in.body
	in.body = 0
	return nil
}

// fill reads up to want bytes ahead.
func (in *input) fill(below link.Link, want int) error {
	if in.dry {
		return errNothing
	}
	in.w = copy(in.buf, in.buf[in.r:in.w])
	in.r = 0
	if need := in.w + want; len(in.buf) < need {
		size := max(first, headerSize+next)
		if need > size {
			size = MaxCompressed + first
		}
		buf := make([]byte, size)
		copy(buf, in.buf[:in.w])
		in.buf = buf
	}
	in.scratch = append(in.scratch[:0], in.buf[in.w:in.w+want])
	n, err := in.take(below, want)
	in.w += n
	return err
}

// direct reads the bytes of a plain frame straight to the user's memory, and a little beyond them.
func (in *input) direct(below link.Link, left [][]byte) (n int, err error) {
	if in.dry {
		return 0, errNothing
	}
	in.scratch = link.Front(in.scratch, left, in.raw)
	room := link.Len(in.scratch)
	want := room
	if room == in.raw {
		in.scratch = append(in.scratch, in.buf[:next])
		want += next
	}
	k, err := in.take(below, want)
	n = min(k, room)
	in.raw -= n
	in.r, in.w = 0, k-n
	return n, err
}

// take reads to scratch, which has room for want bytes.
func (in *input) take(below link.Link, want int) (n int, err error) {
	n, err = below.Recv(in.scratch)
	clear(in.scratch)
	in.read += uint64(n)
	in.dry = n < want
	switch {
	case err == io.EOF && (in.w > in.r || in.raw > 0 || in.body > 0): //nolint:errorlint // links report io.EOF itself
		if in.raw == 0 && in.body == 0 {
			in.at = in.read - uint64(in.w-in.r)
		}
		in.err = malformed(in.at, errShort)
		err = in.err
	case err == nil && n == 0:
		err = errNothing
	}
	return n, err
}

func spread(to [][]byte, from []byte) (n int) {
	for _, b := range to {
		n += copy(b, from[n:])
	}
	return n
}
