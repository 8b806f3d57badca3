package ring

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// lookEvery is how many receives without a byte come before the socket is read to find out
// whether the other side is alive.
const lookEvery = 1 << 10

var errPeerGone = fmt.Errorf("%w: the other side of the shared memory has died", link.ErrBroken)

// Link is a link through a region. It implements link.Link.
type Link struct {
	region *region
	side   int
	out    writer
	in     reader
	bell

	boxes
	key   *[2]uint64 // read by the side that borrows from this one
	tried bool       // borrowing was tried

	idle    int   // receives in a row that brought nothing
	dead    bool  // the socket has ended; used by Recv only
	sendErr error // returned by all further calls
	recvErr error // returned by all further calls
	ended   bool  // CloseSend was called

	// The memory stays mapped as long as the link is referenced, so calls need no lock against
	// Close. The bell has such a lock.
	closed atomic.Bool
}

// New makes the link of one side, 0 or 1, of a region. sock is connected to that of the
// other side. New owns both descriptors, even after an error; it closes the region's at
// once.
func New(file, sock, side int) (*Link, error) {
	l, err := NewDetachable(file, sock, side)
	if err != nil {
		return nil, err
	}
	_ = unix.Close(file)
	l.file = -1
	return l, nil
}

// NewDetachable is like New, for a link that Detach may hand on. It keeps the region's descriptor.
func NewDetachable(file, sock, side int) (*Link, error) {
	l, err := adopt(file, sock, side)
	if err != nil {
		_, _ = unix.Close(file), unix.Close(sock)
		return nil, err
	}
	return l, nil
}

func adopt(file, sock, side int) (*Link, error) {
	if side != 0 && side != 1 {
		return nil, fmt.Errorf("%w: it has no side %d", ErrRegion, side)
	}
	if err := prepareSocket(sock); err != nil {
		return nil, err
	}
	r, err := open(file)
	if err != nil {
		return nil, err
	}
	return newLink(r, file, sock, side), nil
}

// prepareSocket checks and sets up the socket of a region.
func prepareSocket(sock int) error {
	kind, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return fmt.Errorf("%w: the descriptor that comes with it is no stream socket (type %d): %w", ErrRegion, kind, err)
	}
	if err := unix.SetNonblock(sock, true); err != nil {
		return fmt.Errorf("%w: its socket: %w", ErrRegion, err)
	}
	unix.CloseOnExec(sock)
	_ = unix.SetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_SNDBUF, sockBuffer) // with a larger one a sleeping writer needs more calls to fill it
	return nil
}

// Detach gives up the link and returns what another process needs to continue it: the
// region's file, the socket and the side. The caller owns the descriptors. No other call
// may be in progress. Detach fails after Close, and after TakeFastBoxes, because another
// process would not know the state of the fast boxes.
func (l *Link) Detach() (file, sock, side int, err error) {
	switch {
	case l.fastBoxes != nil:
		return -1, -1, 0, fmt.Errorf("%w: this side takes fast-box messages, and keeps the link", ErrRegion)
	case l.file < 0:
		return -1, -1, 0, fmt.Errorf("%w: its file was not kept", ErrRegion)
	case l.closed.Swap(true):
		return -1, -1, 0, link.ErrClosed
	}
	file, sock = l.give()
	l.in.publish(0)
	return file, sock, l.side, nil
}

func newLink(r *region, file, sock, side int) *Link {
	l := &Link{region: r, bell: bell{file: file, sock: sock}, side: side}
	mine, theirs := r.blocks[side], r.blocks[1-side]
	l.out = writer{b: mine, data: r.data[side], mask: r.size - 1, head: mine.head.Load(), tail: mine.tail.Load()}
	l.in = reader{b: theirs, data: r.data[1-side], mask: r.size - 1, tail: theirs.tail.Load()}
	l.out.ledger.table, l.in.borrower.table = r.loans[side], r.loans[1-side]
	l.in.stored, l.in.head = l.in.tail, l.in.tail
	runtime.AddCleanup(l, (*region).unmap, r)
	return l
}

// Send copies into the ring as much as there is room for.
func (l *Link) Send(batch [][]byte) (int, error) {
	switch {
	case l.closed.Load():
		return 0, link.ErrClosed
	case l.sendErr != nil:
		return 0, l.sendErr
	case l.ended:
		return 0, link.ErrClosed
	case l.out.b.gone.Load() != 0:
		l.sendErr = errPeerGone
		return 0, l.sendErr
	}
	n, err := l.out.write(batch)
	if err != nil {
		l.sendErr = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return 0, l.sendErr
	}
	if n > 0 && l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
	return n, nil
}

// wakeReader wakes a sleeping reader. Only the side that has changed the word does.
func (l *Link) wakeReader() {
	if !l.out.b.readerSleeps.CompareAndSwap(1, 0) {
		return
	}
	l.ring()
}

// Recv implements link.Link. It copies what is in the ring, as far as there is room in batch.
func (l *Link) Recv(batch [][]byte) (int, error) {
	if l.closed.Load() {
		return 0, link.ErrClosed
	}
	if l.recvErr != nil && (!errors.Is(l.recvErr, io.EOF) || link.Len(batch) > 0) {
		return 0, l.recvErr
	}
	if !l.tried {
		l.tryBorrowing()
	}
	n, err := l.in.read(batch)
	if n == 0 && err == nil && l.in.due() {
		if n, err = l.in.take(batch); err == nil && n > 0 {
			l.repay()
		}
	}
	switch {
	case err != nil:
		l.recvErr = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return 0, l.recvErr
	case n > 0:
		l.idle = 0
		l.free()
		return n, nil
	}
	if l.idle++; l.idle < lookEvery && l.in.b.ended.Load() == 0 && !l.dead || link.Len(batch) == 0 {
		return 0, nil // a poll that brings nothing must cost next to nothing
	}
	l.idle = 0
	return 0, l.atEnd()
}

// free tells the writer of room, if it waits for that or may do so soon.
func (l *Link) free() {
	size := l.in.mask + 1
	if l.in.publish(size/8) && l.in.b.writerSleeps.Load() != 0 && l.in.head-l.in.tail <= size-size/4 {
		if l.in.b.writerSleeps.CompareAndSwap(1, 0) {
			l.dead = l.drain() || l.dead // makes the other side's socket writable
		}
	}
}

func (l *Link) repay() {
	if l.in.next.size > 0 {
		return
	}
	l.in.b.taken.Swap(l.in.taken)
	if l.in.b.writerSleeps.Load() != 0 && l.in.b.writerSleeps.CompareAndSwap(1, 0) {
		l.dead = l.drain() || l.dead
	}
}

// atEnd finds out whether the stream has ended when the ring is empty.
func (l *Link) atEnd() error {
	if !l.dead {
		l.dead = l.drain()
	}
	ended := l.in.b.ended.Load() != 0
	if !ended && !l.dead {
		return nil
	}
	if n, err := l.in.waiting(); n > 0 || err != nil || l.in.due() || l.in.fastBoxDue() {
		return nil // written before the end; the next call reads it
	}
	l.recvErr = io.EOF
	if !ended {
		l.recvErr = errPeerGone
	}
	return l.recvErr
}

// Arm announces that the caller is about to sleep on the socket.
func (l *Link) Arm(want link.Interest) bool {
	if l.closed.Load() {
		return true
	}
	if want&link.Readable != 0 {
		if l.recvErr != nil || !l.dead && l.drain() {
			l.dead = true
			return true
		}
		l.idle = lookEvery // after a wake-up Recv reads the socket too
		l.in.publish(0)
		l.in.b.readerSleeps.Swap(1)
		if n, err := l.in.waiting(); n > 0 || err != nil || l.in.due() || l.in.fastBoxDue() || l.in.b.ended.Load() != 0 || l.dead {
			l.in.b.readerSleeps.Store(0)
			return true
		}
	}
	if want&link.Writable != 0 {
		l.plug()
		l.out.b.writerSleeps.Swap(1)
		if l.out.movable() || l.sendErr != nil || l.out.b.gone.Load() != 0 {
			l.out.b.writerSleeps.Store(0)
			return true
		}
	}
	return false
}

// Limits returns the size of a ring as Stream.
func (l *Link) Limits() link.Limits { return link.Limits{Stream: int(l.out.mask) + 1, Memory: true} }

// Counts returns how many bytes this side has sent and received: copied ones since the
// region was made, by every owner of the link, and lent ones since New. No other call may
// be in progress.
func (l *Link) Counts() (sent, received uint64) {
	return l.out.head + l.out.lent, l.in.tail + l.in.lent
}
