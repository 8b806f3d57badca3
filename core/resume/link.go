package resume

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/openimpi/impi/core/link"
)

// Defaults for what a Config leaves out, and the largest window, in bytes.
const (
	DefaultWindow = 1 << 20
	DefaultFrame  = 64 << 10
	MaxWindow     = 1 << 30
)

// Config says what a Link is like.
type Config struct {
	Session Session

	// Dialler is set at the end that makes the underlying links.
	Dialler bool

	// Window is how many bytes are kept for replay, and how many are accepted
	// ahead of the user, so a Link has memory for twice as many; it is allocated
	// when needed. The smaller of the two ends' windows counts for both
	// directions. It should cover what the path holds in one round trip. 0 means
	// DefaultWindow.
	Window int

	// Ack is after how many delivered bytes they are acknowledged if nothing
	// else is sent; 0, and anything above it, means a quarter of the window.
	Ack int

	// Frame is the most bytes that are sent in one DATA frame; 0 means
	// DefaultFrame.
	Frame int

	// Checksum asks for a CRC-32C of all frames, in both directions. It costs a
	// pass over the bytes at each end and, as they must be checked first, a copy
	// at the receiver.
	Checksum bool

	// Guard is held during each call, for a Link that several goroutines use. Nil: no
	// two calls overlap.
	Guard Locker

	// Handle is what the Link's Handle reports; 0 means link.NoHandle. It must not
	// be the handle of an underlying link, which does not last.
	Handle int
}

// Locker is a lock of the owner's, as a sync.Mutex.
type Locker interface {
	Lock()
	Unlock()
}

// Link is one end of a resumable link over underlying links that do not last. It
// keeps the contract of link.Link towards its user: Send takes bytes up to the
// window while there is no underlying link, Recv reports nothing then, and both
// fail only when the Link was given up.
//
// The methods that link.Link does not have are for the driver. All may be called
// by several goroutines if there is a Guard; none blocks.
type Link struct {
	state
	_      [40]byte                     // so that a line of the cache begins with
	memory [headerSize + quickSize]byte // of quick
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

// state is a Link without its lock. What each packet needs stands together: a call of the
// kernel leaves little of it in the cache.
type state struct {
	config Config
	plain  link.Link // for frames in a hurry: see hasten and Bare; nil if there cannot be any
	window uint64    // of both directions; own one before the first handshake
	told   uint64    // acknowledgement in the last frame
	due    uint64    // by how much a further one must be more to be worth a frame
	hurry  bool      // any further one is to be told at once
	quick  []byte    // a frame in one piece

	scratch   [][]byte  // for a call of lower or plain
	slices    [4][]byte // memory of scratch, mostly
	peeked    int       // bytes that the last Peek gave,
	peekedAck uint64    // and what their frame acknowledges

	out outgoing
	in  incoming
	tx  writer
	rx  reader

	epoch   uint64
	lower   link.Link // nil between two of them
	joining bool      // the peer's HELLO has not come
	summed  bool      // frames have checksums
	theirs  uint32    // window that the peer has announced, or 0
	cause   error     // why the last underlying link was lost

	err    error // why the Link was given up
	closed bool

	batch [][]byte // copy of the user's batch in Recv
	dst   [][]byte // what is left of it
}

// Bare is what an underlying link may be that adds something to another one below it, where
// it has nothing to add to a Send that takes all it is given. What is in a hurry is sent on
// that one, and the rest, if it does not take all, as usual.
type Bare interface {
	link.Link
	Bare() link.Link
}

var _ link.Lender = (*Link)(nil)

// New makes one end of a Link, without an underlying link yet. It panics if a size
// is negative or the window larger than MaxWindow.
func New(c Config) *Link {
	l := &Link{}
	l.Init(c)
	return l
}

// Init is New for memory of the caller's, who has not used it.
func (l *Link) Init(c Config) {
	if c.Window < 0 || c.Window > MaxWindow || c.Ack < 0 || c.Frame < 0 {
		panic(fmt.Sprintf("resume: window of %d bytes, ack after %d, frames of %d", c.Window, c.Ack, c.Frame))
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Frame == 0 {
		c.Frame = DefaultFrame
	}
	if c.Handle == 0 {
		c.Handle = link.NoHandle
	}
	l.config = c
	l.quick = l.memory[:]
	binary.BigEndian.PutUint32(l.quick, plainData)
	l.setWindow(uint64(c.Window))
	l.out.size, l.in.size = l.window, l.window
	l.scratch = l.slices[:0]
}

// Send copies what the window has room for and passes it on as far as the
// underlying link takes it.
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
		l.drain() // the answer to HELLO, or acknowledgements, may have come
		if err := l.sendError(); err != nil {
			return 0, err
		}
	}
	n := l.out.take(batch)
	l.flush()
	return n, nil
}

// Lend passes bytes on from where they are, which is where they are kept for replay:
// they are the caller's again once the peer's user has them. It differs from what
// link.Lender says in that Send may follow, with the same bytes: it copies those
// that the peer has not acknowledged. To end the stream while bytes are lent gives
// the Link up.
func (l *Link) Lend(batch [][]byte) (int, error) {
	l.lock()
	defer l.unlock()
	if err := l.sendError(); err != nil {
		return 0, err
	}
	if o := &l.out; l.joining || o.next >= o.acked+l.window {
		l.drain() // the answer to HELLO, or acknowledgements, may have come
		if err := l.sendError(); err != nil {
			return 0, err
		}
	}
	l.out.lend(batch)
	l.flush()
	return l.out.settle(), nil
}

// Owes tells whether Lend, or Send, would give lent bytes back.
func (l *Link) Owes() bool {
	l.lock()
	defer l.unlock()
	return l.out.owed > 0
}

// Lending tells whether bytes are lent of which Lend and Send have not said that
// they are the user's again.
func (l *Link) Lending() bool {
	l.lock()
	defer l.unlock()
	return l.out.lending()
}

// Behind tells whether there are lent bytes that the window has room for and the
// present underlying link has not taken, if there is one.
func (l *Link) Behind() bool {
	l.lock()
	defer l.unlock()
	o := &l.out
	return l.lower != nil && !l.joining && (l.tx.busy() || o.next < min(o.shown, o.acked+l.window))
}

// Acknowledge tells the peer what was delivered, if that is least bytes or more of
// which it does not know. Somebody with nothing else to do calls it, so that the
// peer has its memory back.
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

// Recv delivers what has come. Bytes that are still in the underlying link go
// straight to batch, unless they have a checksum. Before that, once, it delivers
// nothing if lent bytes have come back: who waits for these may want what follows
// elsewhere then.
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
	if l.in.delivered < l.in.have { // came while flush found the link broken
		return 0, nil
	}
	return 0, l.err
}

// Handle is the configured one.
func (l *Link) Handle() int { return l.config.Handle }

// Arm tells whether one of want holds, after it has moved what it could. If not,
// the underlying link is armed for what may change that: the driver must wake all
// who sleep on Handle when Wants holds for the underlying link, and after each
// call of its own.
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

// maxArm is how often Arm tries again when the underlying link says that it need
// not sleep.
const maxArm = 4

// holds tells whether Recv, or Send, would not be in vain.
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

// Readable tells whether Recv has something to give, or an end to tell of, whatever the underlying
// link has.
func (l *Link) Readable() bool {
	l.lock()
	defer l.unlock()
	return l.holds(link.Readable)
}

// Limits has the window as Stream.
func (l *Link) Limits() link.Limits { return link.Limits{Stream: l.config.Window} }

// CloseSend ends this side's bytes. The end is replayed like them.
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
	l.hasten()
	l.flush()
	return nil
}

// Close releases the Link and its underlying link. It tells the peer, after what
// can be sent at once; the rest is lost.
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
