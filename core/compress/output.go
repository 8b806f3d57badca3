package compress

import "github.com/openimpi/impi/plugins/sdk/link"

// output is the sending side. A frame that was begun is finished before the next one.
//
// The user has to call again until the link below has taken a whole frame, so the last byte of a
// compressed block counts as taken only then, although it is in the frame already: held is 1. That
// byte is never the first one of a slice, so that the slice has begun to leave, and users who put
// more urgent slices before those that have not begun do not put them before it.
type output struct {
	codec  Codec
	least  int
	pauses pause

	pending []byte // header, and compressed body, that the link below has not taken
	rest    int    // plain bytes of the frame that follow pending, out of the user's memory
	held    int

	plain   []byte // memory of a block in one piece
	packed  []byte // memory of a compressed frame
	header  [headerSize]byte
	batch   [][]byte // copy of the user's slices
	scratch [][]byte // slices for the link below
	err     error

	taken, written uint64
}

func (o *output) send(below link.Link, batch [][]byte) (n int, err error) {
	if o.err != nil {
		return 0, o.err
	}
	o.batch = append(o.batch[:0], batch...)
	for left := o.batch; ; {
		k, full := o.finish(below, left)
		n += k
		if left = link.Advance(left, k); o.err != nil || full || link.Len(left) == 0 {
			break
		}
		k = o.begin(left)
		n += k
		left = link.Advance(left, k)
	}
	clear(o.batch)
	o.taken += uint64(n)
	if n == 0 {
		return 0, o.err
	}
	return n, nil // the next call returns the error
}

func (o *output) release() { o.plain, o.packed, o.pending = nil, nil, nil }

// finish writes what is left of the present frame, and reports how many of the user's bytes that
// has taken, and whether the link below is full.
func (o *output) finish(below link.Link, left [][]byte) (n int, full bool) {
	if len(o.pending) > 0 || o.rest > 0 {
		o.scratch = link.Front(o.scratch, left, o.rest)
		if len(o.pending) > 0 {
			o.scratch = append(o.scratch, nil)
			copy(o.scratch[1:], o.scratch)
			o.scratch[0] = o.pending
		}
		size := link.Len(o.scratch)
		k := 0
		if size > 0 { // the user has given the bytes again
			k, o.err = below.Send(o.scratch)
		}
		clear(o.scratch)
		of := min(k, len(o.pending))
		n = k - of
		o.written += uint64(k)
		o.pending, o.rest = o.pending[of:], o.rest-n
		if k < size || o.rest > 0 {
			return n, true
		}
	}
	n += o.held
	o.held = 0
	return n, false
}

// begin makes the next frame, and returns how many of the user's bytes are taken already.
func (o *output) begin(left [][]byte) (n int) {
	size := link.Len(left)
	if size >= max(2, o.least) {
		if o.pauses.tries() {
			if size > MaxCompressed {
				size = block
			}
			size = begun(left, size)
			fits := size > 1 && o.compress(left, size)
			o.pauses.tried(fits)
			if fits {
				o.held = 1
				return size - 1
			}
			size = max(1, size)
		} else {
			size = min(size, max(o.pauses.left, block))
			o.pauses.passed(size)
		}
	}
	size = min(size, MaxPlain)
	frame{size: size, body: size}.put(o.header[:])
	o.pending, o.rest = o.header[:], size
	return 0
}

// begun returns the most of the first size bytes of which the last one is not the first of a slice.
func begun(batch [][]byte, size int) int {
	at, most := 0, 0
	for _, b := range batch {
		if n := min(len(b), size-at); n > 1 {
			most = at + n
		}
		if at += len(b); at >= size {
			break
		}
	}
	return most
}

// compress makes a frame of the first size bytes, and reports whether they become so few that it
// should be sent.
func (o *output) compress(left [][]byte, size int) bool {
	if o.plain == nil {
		o.plain = make([]byte, MaxCompressed)
		o.packed = make([]byte, headerSize, headerSize+MaxCompressed)
	}
	at := 0
	for _, b := range left {
		at += copy(o.plain[at:size], b)
	}
	o.packed = o.codec.Compress(o.packed[:headerSize], o.plain[:size])
	body := len(o.packed) - headerSize
	if !worth(size, body) {
		return false
	}
	frame{compressed: true, size: size, body: body}.put(o.packed)
	o.pending, o.rest = o.packed, 0
	return true
}
