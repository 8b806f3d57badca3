package rdma

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
)

// ErrRules is wrapped by the error of a link whose other side has broken the rules of the data
// plane.
var ErrRules = errors.New("the rules of data plane rdma were broken")

const (
	// lookEvery is how many receives without a byte come before the socket is read to find out
	// whether the plugin is alive.
	lookEvery = 1 << 10
	// longSize is how many bytes a piece of lent memory needs to be sent from where it is.
	longSize = 32 << 10
	// directSize is how many bytes a message is read of at least into the receiver's memory.
	directSize = 4 << 10
)

var errRecalled = errors.New("memory was recalled that the plugin has not read into in time")

var errGone = fmt.Errorf("%w: the plugin has died, or has lost the connection", link.ErrBroken)

// Link is the proc's side of a control region. It implements link.Lender: memory of its Regions is
// sent from where it is, and read into where it is wanted; other memory is copied through the
// bounce memory.
//
// After a Recv that has returned nothing the plugin may write to the first slice of the batch, if
// that is memory of the Regions, until it is delivered or Recall or Close has returned. If the next
// call begins with another slice, what was read is read again, into that.
type Link struct {
	region  *region
	bell    *ring.Bell
	file    int // of the region, for Detach
	channel int // by which regions are lent and the plugin is woken; -1 after Close
	out     producer
	in      consumer
	regions *Regions // nil: nothing is lent
	lent    map[uint32]uint32
	freed   uint64 // regions.freed as it was when lent was checked

	sending
	receiving

	mu     sync.Mutex // one goroutine may send while another receives
	err    error      // why it cannot be used any more
	idle   int        // receives in a row that brought nothing
	dead   bool       // the socket has ended
	ended  bool       // CloseSend was called
	closed atomic.Bool

	channelMu sync.Mutex // while channel is used, which Close closes
	patience  time.Duration
	counts    struct{ sent, received uint64 }
}

var _ link.Lender = (*Link)(nil)

// New makes the proc's side. file is that of the region, sock the socket for waking, channel that
// by which regions are lent. It owns the descriptors, even after an error. regions may be nil.
func New(file, sock, channel int, regions *Regions) (*Link, error) {
	l, err := adopt(file, sock, channel)
	if err != nil {
		_, _, _ = unix.Close(file), unix.Close(sock), unix.Close(channel)
		return nil, err
	}
	l.regions = regions
	return l, nil
}

func adopt(file, sock, channel int) (*Link, error) {
	kind, err := unix.GetsockoptInt(channel, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, fmt.Errorf("%w: its region channel is no SOCK_SEQPACKET socket (type %d): %w", ErrRegion, kind, err)
	}
	unix.CloseOnExec(channel)
	r, err := open(file)
	if err != nil {
		return nil, err
	}
	bell, err := ring.AdoptBell(sock)
	if err != nil {
		r.unmap()
		return nil, err
	}
	l := newLink(r, bell)
	l.file, l.channel = file, channel
	runtime.AddCleanup(l, (*region).unmap, r)
	return l, l.resume()
}

func newLink(r *region, bell *ring.Bell) *Link {
	sub, comp := r.blocks[0], r.blocks[1]
	l := &Link{region: r, bell: bell, file: -1, channel: -1, lent: map[uint32]uint32{}, patience: patience}
	l.out = producer{b: sub, entries: r.rings[0], head: sub.head.Load(), tail: sub.tail.Load()}
	l.in = consumer{b: comp, entries: r.rings[1], tail: comp.tail.Load()}
	l.in.head = l.in.tail
	l.reads = map[uint64]*read{}
	l.stages = make([]bool, r.shape.Slots)
	return l
}

// resume takes over where the node has left off.
func (l *Link) resume() error {
	n := *l.region.notes
	slots := uint64(l.region.shape.Slots)
	if n.sent-n.acknowledged > slots || l.out.head-l.out.tail > uint64(len(l.out.entries)) {
		return fmt.Errorf("%w: the node's notes say that %d messages were sent and %d acknowledged", ErrRegion, n.sent, n.acknowledged)
	}
	l.sent, l.acknowledged, l.arrived, l.freedSlots, l.offered = n.sent, n.acknowledged, n.arrived, n.arrived, n.offered
	return nil
}

// Detach gives up the link and returns what another process needs to continue it: the arguments of
// New. The caller owns the descriptors. No other call may be in progress. It fails if something is
// under way that the other process would not know of.
func (l *Link) Detach() (file, sock, channel int, err error) {
	switch {
	case len(l.queue) > 0 || len(l.reads) > 0 || len(l.loans) > 0 || len(l.lent) > 0 || l.peerEnded:
		return -1, -1, -1, fmt.Errorf("%w: a message was received in part, or memory is lent", ErrRules)
	case l.closed.Swap(true):
		return -1, -1, -1, link.ErrClosed
	}
	*l.region.notes = notes{l.sent, l.acknowledged, l.arrived, l.offered}
	l.out.b.head.Swap(l.out.head) // with it the notes are stored
	file, sock, channel = l.file, l.bell.Give(), l.channel
	l.file, l.channel = -1, -1
	return file, sock, channel, nil
}

func (l *Link) usable() error {
	if l.closed.Load() {
		return link.ErrClosed
	}
	return l.err
}

func (l *Link) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: %w", link.ErrBroken, err)
	}
}

// submit gives the plugin an entry and wakes it, if it sleeps.
func (l *Link) submit(e Entry) {
	if l.err != nil {
		return
	}
	if err := l.out.put(e); err != nil {
		l.fail(fmt.Errorf("%w: submissions: %w", ErrRules, err))
		return
	}
	if s := &l.out.b.readerSleeps; s.Load() != 0 && s.CompareAndSwap(1, 0) {
		l.ring()
	}
}

// ring wakes the plugin.
func (l *Link) ring() {
	l.channelMu.Lock()
	defer l.channelMu.Unlock()
	if l.channel >= 0 {
		wake(l.channel)
	}
}

// pollOne handles the next completion, and reports whether there was one.
func (l *Link) pollOne() bool {
	if l.err != nil {
		return false
	}
	e, ok, err := l.in.next()
	if err == nil && ok {
		err = l.complete(&e)
	} else if err != nil {
		err = fmt.Errorf("%w: completions: %w", ErrRules, err)
	}
	if err != nil {
		l.fail(err)
	}
	return ok && err == nil
}

func (l *Link) poll() {
	for l.pollOne() {
	}
}

// complete checks a completion and takes note of it.
func (l *Link) complete(e *Entry) error {
	switch e.Kind {
	case SlotSent:
		return l.slotSent(e)
	case LoanSent:
		return l.loanSent(e)
	case Arrived, Offered:
		return l.come(e)
	case WasRead:
		return l.wasRead(e)
	case PeerEnded:
		if l.peerEnded {
			return fmt.Errorf("%w: the end of the peer's messages came twice", ErrRules)
		}
		l.peerEnded = true
		return nil
	}
	return fmt.Errorf("%w: a completion of kind %d, which there is not", ErrRules, e.Kind)
}

// atEnd finds out whether the link has ended when nothing is left to be delivered.
func (l *Link) atEnd() error {
	if !l.dead {
		l.dead = l.bell.Drain()
	}
	gone := l.out.b.gone.Load() != 0 // before a look at the ring, which has what came before that
	switch {
	case l.in.waits() && l.err == nil:
		return nil // submitted before the end
	case l.err != nil:
		return l.err
	case l.peerEnded && len(l.queue) == 0:
		return io.EOF
	case l.dead || gone:
		l.err = errGone
		return l.err
	}
	return nil
}

// Handle returns the socket, or link.NoHandle after Close.
func (l *Link) Handle() int { return l.bell.Handle() }

// Alive reports whether the plugin still has its end of the socket.
func (l *Link) Alive() bool { return l.bell.Alive() && l.out.b.gone.Load() == 0 }

// Arm announces that the caller is about to sleep on the socket.
func (l *Link) Arm(want link.Interest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return true
	}
	if want&link.Readable != 0 {
		if l.dead = l.dead || l.bell.Drain(); l.dead {
			return true
		}
		l.idle = lookEvery // after a wake-up Recv reads the socket too
		l.in.b.readerSleeps.Swap(1)
		if l.in.waits() || l.deliverable() || l.err != nil || l.out.b.gone.Load() != 0 || l.peerEnded && len(l.queue) == 0 {
			l.in.b.readerSleeps.Store(0)
			return true
		}
	}
	if want&link.Writable != 0 {
		l.bell.Plug()
		l.out.b.writerSleeps.Swap(1)
		if l.in.waits() || l.movable() || l.err != nil || l.out.b.gone.Load() != 0 {
			l.out.b.writerSleeps.Store(0)
			return true
		}
	}
	return false
}

// Limits returns the size of the slots for sending as Stream.
func (l *Link) Limits() link.Limits {
	return link.Limits{Stream: l.region.shape.area(), Memory: true}
}

// Counts returns how many bytes this side has sent and received. No other call may be in progress.
func (l *Link) Counts() (sent, received uint64) { return l.counts.sent, l.counts.received }

// CloseSend ends this side's messages.
func (l *Link) CloseSend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if !l.ended {
		l.ended = true
		l.submit(Entry{Kind: End})
	}
	return l.err
}
