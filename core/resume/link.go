package resume

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Defaults for a Config, and the largest window, in bytes.
const (
	DefaultWindow = 1 << 20
	DefaultFrame  = 64 << 10
	MaxWindow     = 1 << 30
)

// Config configures a Link.
type Config struct {
	Session ResumableID

	// Dialler is set at the end that makes the underlying links (docs/decisions/0015-link-resume.md).
	Dialler bool

	// Window is the number of bytes that are kept for replay, and the number that are received
	// ahead of the user, so a Link needs up to twice that much memory, which grows with what is
	// under way.
	// The smaller window of the two ends applies to both directions. It should be at least the
	// number of bytes that the path transfers in one round trip. 0 means DefaultWindow.
	Window int

	// Ack is the number of delivered bytes after which an acknowledgement is sent if no
	// other frame carries one. 0, or more than a quarter of the window, means a quarter of
	// the window.
	Ack int

	// Frame is the maximum number of bytes of one DATA frame; 0 means DefaultFrame.
	Frame int

	// Checksum asks for a CRC-32C of all frames, in both directions; see
	// docs/decisions/0015-link-resume.md. It costs a
	// pass over the bytes at each end and, as they must be checked first, a copy
	// at the receiver.
	Checksum bool

	// Guard is locked during each call, for a Link that several goroutines use. If it is
	// nil, calls must not overlap.
	Guard Locker

	// Handle is the handle that the Link's method Handle returns; 0 means link.NoHandle. It must
	// not be the handle of an underlying link, which does not last.
	Handle int
}

// Locker is a lock such as sync.Mutex. Package resume itself has none.
type Locker interface {
	Lock()
	Unlock()
}

// Link is one end of a resumable link. For its user it is a link.Link: while there is no
// underlying link, Send takes bytes up to the window and Recv returns nothing, and both
// fail only after the Link was given up.
//
// The methods that link.Link does not have are for the driver. With a Guard all methods may
// be called by several goroutines. No method blocks.
type Link struct {
	state
	_      [40]byte                     // aligns the next field to a cache line
	memory [headerSize + quickSize]byte // memory of quick
}

func (l *Link) lock() {
	if l.config.Guard != nil {
		l.config.Guard.Lock()
	}
}

func (l *Link) unlock() {
	if l.config.Guard != nil {
		l.config.Guard.Unlock()
	}
}

// state is a Link without its lock. The fields that each packet needs come first and
// together, since after a system call little of them is in the cache.
type state struct {
	config Config
	plain  link.Link // for frames sent or read by the quick path, see setPlain and Wrapper; nil if it cannot be used
	window uint64    // window of both directions; before the first handshake, this side's own
	told   uint64    // acknowledgement sent in the last frame
	due    uint64    // an acknowledgement is worth a frame if it is at least this much higher than told
	hurry  bool      // the next acknowledgement is sent at once
	quick  []byte    // memory for a frame in one piece

	scratch   [][]byte  // slices for a call of lower or plain
	slices    [4][]byte // initial memory of scratch
	peeked    int       // bytes that the last Peek returned,
	peekedAck uint64    // and the acknowledgement in their frame

	out outgoing
	in  incoming
	tx  writer
	rx  reader

	epoch   uint64
	lower   link.Link // nil while there is none
	joining bool      // the peer's HELLO has not come yet
	summed  bool      // frames have checksums
	theirs  uint32    // window that the peer has announced, or 0
	cause   error     // why the last underlying link was lost

	err    error // why the Link was given up
	closed bool

	batch [][]byte // copy of the user's batch in Recv
	dst   [][]byte // rest of batch to fill
}

// Wrapper is implemented by an underlying link that wraps another one and has nothing to do
// for a Send that takes all its bytes. The quick path then sends directly on the link that
// Unwrap returns; only if that takes less does it use the wrapper.
type Wrapper interface {
	link.Link
	Unwrap() link.Link
}

var _ link.Lender = (*Link)(nil)

// New makes one end of a Link, without an underlying link yet. It panics if a size
// is negative or the window larger than MaxWindow.
func New(c Config) *Link {
	l := &Link{}
	l.Init(c)
	return l
}

// Init is New for memory that the caller provides. The memory must be zero.
func (l *Link) Init(c Config) {
	if c.Window < 0 || c.Window > MaxWindow || c.Ack < 0 || c.Frame < 0 {
		panic(fmt.Sprintf("resume: window of %d bytes, ack after %d, frames of %d", c.Window, c.Ack, c.Frame))
	}
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.Frame = cmp.Or(c.Frame, DefaultFrame)
	c.Handle = cmp.Or(c.Handle, link.NoHandle)
	l.config = c
	l.quick = l.memory[:]
	binary.BigEndian.PutUint32(l.quick, plainData)
	l.setWindow(uint64(c.Window))
	l.out.size, l.in.size = l.window, l.window
	l.scratch = l.slices[:0]
}

// Send copies as many bytes as the window has room for, and sends as many as the underlying
// link takes.
func (l *Link) Send(batch [][]byte) (int, error) {
	l.lock()
	if n := l.sendQuick(batch); n > 0 {
		l.unlock()
		return n, nil
	}
	defer l.unlock()
	if err := l.sendError(); err != nil {
		return 0, err
	}
	if l.joining || uint64(link.Len(batch)) > l.out.room() {
		l.drain() // reads the answer to HELLO, or acknowledgements
		if err := l.sendError(); err != nil {
			return 0, err
		}
	}
	n := l.out.take(batch)
	l.flush()
	return n, nil
}

// Lend sends bytes without copying them: they are replayed from the caller's memory, which is the
// caller's again once the peer's user has the bytes. Unlike link.Lender, it allows a Send of the
// same bytes after it, which copies those that the peer has not acknowledged. Ending the stream
// while bytes are lent gives the Link up. See "Long messages are lent" in
// docs/decisions/0015-link-resume.md.
func (l *Link) Lend(batch [][]byte) (int, error) {
	l.lock()
	defer l.unlock()
	if err := l.sendError(); err != nil {
		return 0, err
	}
	if o := &l.out; l.joining || o.next >= o.acked+l.window {
		l.drain() // reads the answer to HELLO, or acknowledgements
		if err := l.sendError(); err != nil {
			return 0, err
		}
	}
	l.out.lend(batch)
	l.flush()
	return l.out.settle(), nil
}

// CanReturn reports whether the next Lend or Send would return lent bytes to the caller.
func (l *Link) CanReturn() bool {
	l.lock()
	defer l.unlock()
	return l.out.owed > 0
}

// Lending reports whether there are lent bytes that no Lend or Send has returned to the caller yet.
func (l *Link) Lending() bool {
	l.lock()
	defer l.unlock()
	return l.out.lending()
}

// HasUnsent reports whether the underlying link, if there is one, has not taken all lent bytes
// that the window has room for.
func (l *Link) HasUnsent() bool {
	l.lock()
	defer l.unlock()
	o := &l.out
	return l.lower != nil && !l.joining && (l.tx.busy() || o.next < min(o.shown, o.acked+l.window))
}

// Acknowledge sends an acknowledgement if least or more bytes were delivered whose delivery the
// peer does not know of. A driver with nothing else to do calls it, so that the peer can release
// its memory.
func (l *Link) Acknowledge(least int) {
	l.lock()
	defer l.unlock()
	if l.lower != nil && !l.joining && l.in.ack()-l.told >= uint64(max(1, least)) {
		l.hurry = true
		l.flush()
	}
}

func (l *state) sendError() error {
	switch {
	case l.closed || l.out.fin:
		return link.ErrClosed
	default:
		return l.err
	}
}

// Recv returns data that has arrived. Bytes that are still in the underlying link are read straight
// into batch, unless they have a checksum. If lent bytes have been returned to the user, Recv first
// returns 0 once: a user that waits for those may want the following bytes in other memory.
func (l *Link) Recv(batch [][]byte) (int, error) {
	l.lock()
	defer l.unlock()
	switch {
	case l.closed:
		return 0, link.ErrClosed
	case link.Len(batch) == 0:
		return 0, nil
	}
	l.batch = append(l.batch[:0], batch...)
	l.dst = l.batch
	before := l.in.delivered
	l.receive()
	l.dst = nil
	clear(l.batch)
	l.flush()
	n := int(l.in.delivered - before)
	switch {
	case n > 0:
		return n, nil
	case l.in.ended():
		return 0, io.EOF
	}
	if l.in.delivered < l.in.have { // bytes that came when flush found the link broken
		return 0, nil
	}
	return 0, l.err
}

// Handle returns Config.Handle, which stays the same while underlying links come and go.
func (l *Link) Handle() int { return l.config.Handle }

// Arm reports whether an event of want has happened, after making progress. If it returns false,
// the underlying link is armed for whatever may change that: the driver must wake all who sleep on
// Handle when an event of Interest has happened on the underlying link, and after each call of its
// own.
func (l *Link) Arm(want link.Interest) bool {
	l.lock()
	defer l.unlock()
	for range maxArm {
		if l.holds(want) {
			return true
		}
		if l.lower == nil || !l.lower.Arm(l.wants()) {
			return false
		}
		l.drain()
		l.flush()
	}
	return true
}

// maxArm is how often Arm tries again when arming the underlying link reports that
// something is ready.
const maxArm = 4

func (l *state) holds(want link.Interest) bool {
	if l.closed || l.err != nil {
		return true
	}
	readable := l.in.delivered < l.in.have || l.in.ended()
	writable := l.out.fin || l.out.owed > 0
	switch o := &l.out; {
	case writable:
	case !o.lending():
		writable = o.room() > 0
	default:
		writable = l.lower != nil && !l.joining && !l.tx.busy() && o.next < o.acked+l.window
	}
	return want&link.Readable != 0 && readable || want&link.Writable != 0 && writable
}

// Readable reports whether Recv has bytes or an end to return without reading from the
// underlying link.
func (l *Link) Readable() bool {
	l.lock()
	defer l.unlock()
	return l.holds(link.Readable)
}

// Limits returns the window as Stream.
func (l *Link) Limits() link.Limits { return link.Limits{Stream: l.config.Window} }

// CloseSend ends this side's stream. The end is replayed as bytes are
// (docs/decisions/0015-link-resume.md).
func (l *Link) CloseSend() error {
	l.lock()
	defer l.unlock()
	switch {
	case l.closed:
		return link.ErrClosed
	case l.out.fin:
		return nil
	case l.err != nil:
		return l.err
	}
	if max(l.out.reached, l.out.next+l.tx.left) > l.out.end {
		l.fail(errLent)
		return l.err
	}
	l.out.fin = true
	l.setPlain()
	l.flush()
	return nil
}

// Close releases the Link and its underlying link. It informs the peer if the message can be sent
// at once; bytes that were not sent are lost.
func (l *Link) Close() error {
	l.lock()
	defer l.unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.out.fin = true
	l.flush()
	l.leave()
	l.out.buf, l.in.buf = nil, nil
	return nil
}
