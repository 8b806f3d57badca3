package compress

import (
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Codec is an algorithm. Calls of different methods may overlap.
type Codec interface {
	// Compress appends the compressed src to dst and returns the result. It keeps neither. The
	// appended bytes may be more than src.
	Compress(dst, src []byte) []byte
	// Decompress decompresses src, of any length and content, so that it fills dst. It returns an
	// error if src is not valid or does not fill dst exactly; then the contents of dst are
	// undefined. It allocates no more than a window of MaxCompressed bytes needs.
	Decompress(dst, src []byte) error
}

// Config configures a Link.
type Config struct {
	Codec Codec
	Min   int // minimum size in bytes of a Send that is compressed
}

// Link is a link whose bytes are sent compressed over another one. It keeps the contract of
// link.Link with an addition: after a Send that has not taken all bytes, the next one must continue
// with the slice that was begun, and then pass at least as many bytes as are left.
type Link struct {
	below   link.Link
	sending use
	out     output
	taking  use
	in      input
}

// use is the state of the buffer of one direction: unused, in use by a call in progress, or closed,
// when there is no buffer any more.
type use struct{ atomic.Uint32 }

const (
	unused uint32 = iota
	inUse
	closed
)

// begin reports whether the link is not closed. Then end has to follow.
func (u *use) begin() bool { return u.CompareAndSwap(unused, inUse) }

// end reports whether the link was closed meanwhile: who calls it releases the memory.
func (u *use) end() bool { return !u.CompareAndSwap(inUse, unused) }

// close reports whether no call is in progress, which would release the memory.
func (u *use) close() bool { return u.Swap(closed) == unused }

// New returns a Link over below, which it owns from then on. below must not have been used yet, or
// not since the Link at the other end was made. New allocates the memory of frames, up to 800 KiB,
// when they are first needed.
func New(below link.Link, c Config) *Link {
	return &Link{below: below, out: output{codec: c.Codec, least: c.Min}, in: input{codec: c.Codec}}
}

// Counts are the numbers of bytes of a Link since it was made.
type Counts struct {
	Sent, Received         uint64 // bytes of the user
	WireSent, WireReceived uint64 // bytes of the link below
}

// Counted returns the Counts of the Link. It must not overlap with Send or Recv.
func (l *Link) Counted() Counts {
	return Counts{Sent: l.out.taken, Received: l.in.given, WireSent: l.out.written, WireReceived: l.in.read}
}

// Send compresses and sends as many bytes as the link below accepts.
func (l *Link) Send(batch [][]byte) (int, error) {
	if !l.sending.begin() {
		return 0, link.ErrClosed
	}
	n, err := l.out.send(l.below, batch)
	if l.sending.end() {
		l.out.release()
	}
	return n, err
}

// Recv returns data that has arrived. The error for a malformed frame wraps ErrFrame and
// link.ErrBroken.
func (l *Link) Recv(batch [][]byte) (int, error) {
	if !l.taking.begin() {
		return 0, link.ErrClosed
	}
	n, err := l.in.recv(l.below, batch)
	if l.taking.end() {
		l.in.release()
	}
	return n, err
}

// Buffered reports whether Recv can return data or an error without reading from the link below; a
// poll set does not detect this. It must not overlap with Recv.
func (l *Link) Buffered() bool {
	if !l.taking.begin() {
		return true // Recv returns link.ErrClosed
	}
	is := l.in.buffered()
	if l.taking.end() {
		l.in.release()
	}
	return is
}

// ReadBufferedOnly makes the next Recv return only buffered data, without reading from the link
// below: so a driver can stop after the bytes that were already read.
func (l *Link) ReadBufferedOnly() { l.in.only = true }

// Handle returns the handle of the link below. It becomes readable for new bytes only: see
// Buffered.
func (l *Link) Handle() int { return l.below.Handle() }

// Arm arms the link below, unless something can be received without it.
func (l *Link) Arm(want link.Interest) bool {
	return want&link.Readable != 0 && l.Buffered() || l.below.Arm(want)
}

// Limits returns the limits of the link below.
func (l *Link) Limits() link.Limits { return l.below.Limits() }

// CloseSend ends this side's stream. Bytes that Send has not taken are lost.
func (l *Link) CloseSend() error { return l.below.CloseSend() }

// Close closes the link below and frees the buffers, those in use by a call in progress when it
// returns. Bytes that Send has taken but not passed on are lost.
func (l *Link) Close() error {
	if l.sending.close() {
		l.out.release()
	}
	if l.taking.close() {
		l.in.release()
	}
	return l.below.Close()
}

// Below returns the link below, for its figures: who sent or received by it would break the frames.
func (l *Link) Below() link.Link { return l.below }
