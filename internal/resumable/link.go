// Package resumable is what procs and nodes need in addition to a core/resume Link: reading
// ahead, the HELLOs of links that were accepted, and a link below that is replaced while it
// is in a poll set (docs/decisions/0015-link-resume.md).
//
// One goroutine at a time may use a Link: its owner's, which also asks for links below and
// gives up when package resume says so.
package resumable

import (
	"cmp"
	"errors"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Feature is the name, on business cards, of resumable links.
const Feature = "resume"

// Window is the maximum number of bytes that a link has under way: what a path of 1 Gb/s and
// 200 ms holds, and some more. Memory is made for what is under way only.
const Window = 32 << 20

// ackAfter is how many bytes are acknowledged at once where no other frame does it. A sender keeps
// at least as many, which should stay in the cache.
const ackAfter = 1 << 20

const (
	// bored is how many receives in a row that bring nothing are followed by an
	// acknowledgement, if at least modest bytes were received: the peer's program may wait
	// for its memory.
	bored  = 4
	modest = 4 << 10
)

// JoinLimit is the maximum time of a link below until both ends have sent HELLO, but see
// Config.FirstLimit.
const JoinLimit = 5 * time.Second

// The pauses before asking for another link below, after one on which no bytes were moved.
// The pause doubles each time, but two such links in a row may be an accident.
const (
	accidents  = 2
	firstPause = 10 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// maxArrivals is how many accepted links a side keeps whose HELLO has not come.
const maxArrivals = 4

// Config configures a Link.
type Config struct {
	Session resume.ResumableID
	Dialler bool
	Window  int // bytes; 0: resume.DefaultWindow

	// FirstLimit is the maximum time of the links below until both ends have sent HELLO on one of them
	// for the first time, where that is more than JoinLimit: the owner of the other end may not be
	// ready yet.
	FirstLimit time.Duration

	// Released is called before the link below is closed, with its handle, which must leave
	// every poll set by then. It must not call the Link.
	Released func(handle int)

	// Blocked is called when the link below has not accepted all bytes: Push should be called
	// later. It must not call the Link.
	Blocked func()
}

// Link is a link that outlives the links below it. The fields that a short packet needs are in one
// page of memory, since after a system call few pages are in the cache. It keeps the contract of
// link.Link with two exceptions: Handle is that of the link below, or link.NoHandle if there is
// none, and a goroutine that sleeps on it must wait for what Interest returns.
type Link struct {
	below    *below // points into places
	buffered bool   // Recv may return bytes that the poll set does not report
	pending  bool   // the link below has not taken all bytes
	up       bool
	dialler  bool
	misses   int // receives in a row that brought nothing
	sent     uint64
	received uint64
	places   [2]below // for the present link below, and the one that replaces it

	_       [40]byte // aligns what follows to a cache line
	machine resume.Link
	_       [32]byte
	in      [first]byte // bytes that are read ahead

	released func(int)
	blocked  func()
	arrivals []arrival
	made     int // number of links below that both ends have used
	vain     int // number of links below in a row, up to the present one, that have moved nothing
	moved    uint64
	since    time.Time     // when the present link below was made
	early    time.Duration // Config.FirstLimit
}

type arrival struct {
	resume.Arrival
	l     link.Link
	since time.Time
}

// New makes one end without a link below.
func New(c Config) *Link {
	l := &Link{dialler: c.Dialler, released: c.Released, blocked: c.Blocked, early: c.FirstLimit}
	l.machine.Init(resume.Config{
		Session: c.Session, Dialler: c.Dialler, Window: c.Window, Ack: ackAfter, Frame: frame(c.Window),
	})
	return l
}

// frame is the most bytes in a frame: a frame should be long, but several must fit into a
// window, so that they are acknowledged before it is full.
func frame(window int) int {
	window = cmp.Or(window, resume.DefaultWindow)
	return min(max(1, window/4), ackAfter)
}

// Start takes over a link that was dialled or accepted and uses it as the link below. now
// is the present time.
func (l *Link) Start(x link.Link, now time.Time) {
	if l.dialler {
		l.use(x, now, l.machine.Dial)
		return
	}
	if len(l.arrivals) == maxArrivals {
		_ = l.arrivals[0].l.Close()
		l.arrivals = l.arrivals[1:]
	}
	l.arrivals = append(l.arrivals, arrival{l: x, since: now})
	l.ReadHellos(now)
}

// use makes x the link below, unless install refuses it.
func (l *Link) use(x link.Link, now time.Time, install func(link.Link) error) {
	before, up, since := l.below, l.up, l.since
	b := &l.places[0]
	if b == before {
		b = &l.places[1]
	}
	*b = below{Link: x, owner: l, in: l.in[:]}
	l.below, l.up, l.since = b, false, now
	if err := install(b); err != nil { // the previous link below may still be in use
		l.below, l.up, l.since = nil, up, since
		if before != nil && !before.closed {
			l.below = before
		}
		_ = x.Close()
		return
	}
	l.buffered = true
	if all := l.progress(); all != l.moved {
		l.moved, l.vain = all, 0
	}
	l.vain++
	l.joined(!l.dialler)
}

// progress grows with each byte that the user gives or gets, and that the peer's user has
// got: a long send may take many links below.
func (l *Link) progress() uint64 { return l.sent + l.received + l.machine.Status().Acked }

// Pause returns how long the owner should wait before it asks for a link below.
func (l *Link) Pause() time.Duration {
	if l.progress() != l.moved || l.vain <= accidents {
		return 0
	}
	return min(firstPause<<min(l.vain-accidents-1, 10), lastPause)
}

// joined records that both ends have used the link below, if they have. It is called early,
// since that link may be lost before anybody asks.
func (l *Link) joined(yes bool) {
	if !l.up && (yes || l.machine.Status().State == resume.Up) {
		l.up = true
		l.made++
	}
}

// ReadHellos reads the HELLOs of accepted links, as far as they have come, and uses those that
// are complete.
func (l *Link) ReadHellos(now time.Time) {
	left := l.arrivals[:0]
	for i := range l.arrivals {
		a := &l.arrivals[i]
		switch h, ok, err := a.Read(a.l); {
		case err != nil || !ok && now.Sub(a.since) > l.joinLimit():
			_ = a.l.Close()
		case ok:
			l.use(a.l, now, func(x link.Link) error { return l.machine.Accept(x, h) })
		default:
			left = append(left, *a)
		}
	}
	clear(l.arrivals[len(left):])
	l.arrivals = left
}

// joinLimit is how long the present link below may take until both ends have sent HELLO.
func (l *Link) joinLimit() time.Duration {
	if l.made == 0 {
		return max(JoinLimit, l.early)
	}
	return JoinLimit
}

var errSlow = errors.New("the other end has not answered on it")

// Status returns the state of the Link. It closes a link below on which the other end has
// not answered in time.
func (l *Link) Status(now time.Time) resume.Status {
	s := l.machine.Status()
	if s.State == resume.Joining && now.Sub(l.since) > l.joinLimit() {
		l.machine.Lost(s.Epoch, errSlow)
		s = l.machine.Status()
	}
	l.joined(s.State == resume.Up)
	return s
}

// AwaitsHello reports whether an accepted link, or the link below, still has to send HELLO.
func (l *Link) AwaitsHello() bool {
	return len(l.arrivals) > 0 || l.machine.Status().State == resume.Joining
}

// LowerLinks returns the number of links below that both ends have used.
func (l *Link) LowerLinks() int { return l.made }

// Resumes returns the number of links below that have replaced earlier ones.
func (l *Link) Resumes() int { return max(0, l.made-1) }

// Fail gives the Link up, as resume.Link does.
func (l *Link) Fail(why error) { l.machine.Fail(why) }

// Lost reports to the Link that the link below cannot be used any more.
func (l *Link) Lost(why error) { l.machine.Lost(l.machine.Status().Epoch, why) }

// Buffered reports whether Recv may return bytes although the link below, which a poll set
// sees, has none.
func (l *Link) Buffered() bool { return l.buffered }

// Interest returns the events to wait for on the link below.
func (l *Link) Interest() link.Interest { return l.machine.Interest() }

// Pump receives what has come and sends what is pending.
func (l *Link) Pump() {
	l.look()
	l.machine.Pump()
}

// SendPending sends what is pending, including the end of the stream.
func (l *Link) SendPending() {
	l.look()
	l.machine.Flush()
}

// look makes the next Recv of the link below call the kernel.
func (l *Link) look() {
	if l.below != nil {
		l.below.dry = false
	}
}

// Lend sends bytes without copying them, as resume.Link does: they stay in the caller's
// memory until the peer has them. Send may follow with the same bytes, and copies them.
func (l *Link) Lend(batch [][]byte) (int, error) {
	l.look()
	n, err := l.machine.Lend(batch)
	l.sent += uint64(n)
	return n, err
}

// CanReturn reports whether lent bytes can be returned to the owner.
func (l *Link) CanReturn() bool { return l.machine.CanReturn() }

// Lending reports whether bytes are lent that were not returned to the owner.
func (l *Link) Lending() bool { return l.machine.Lending() }

// HasUnsent reports whether the link below has not taken all lent bytes that the window
// allows.
func (l *Link) HasUnsent() bool { return l.machine.HasUnsent() }

// Recv implements link.Link. Without a link below it returns nothing, as with one that has nothing
// to read.
func (l *Link) Recv(batch [][]byte) (int, error) {
	b := l.below
	switch {
	case b == nil:
	case b.inside:
		if n, ok := l.rest(b, batch); ok {
			return n, nil
		}
	case !l.buffered:
		if b.idle() {
			l.missed()
			return 0, nil
		}
		l.misses = 0
		if n, ok := l.feed(b, batch); ok {
			return n, nil
		}
	}
	return l.recv(batch)
}

// recv is Recv by the state machine of core/resume.
func (l *Link) recv(batch [][]byte) (int, error) {
	b := l.below
	l.misses = 0
	room := link.Len(batch)
	n, err := l.machine.Recv(batch)
	l.received += uint64(n)
	if !l.up {
		l.joined(false)
	}
	// Otherwise the machine has found nothing in its last step, or an end after the received bytes.
	l.buffered = n > 0 && (n == room || l.machine.Readable()) || b != nil && (b.closed || len(b.ahead) > 0)
	return n, err
}

// Peek returns received bytes in place: those of one frame, valid until Discard, which
// follows, or Recv. whole reports whether they are all of the frame. If there are none,
// more reports whether Recv may nevertheless have bytes.
func (l *Link) Peek() (data []byte, whole, more bool) {
	b := l.below
	switch {
	case b == nil, b.inside, len(b.ahead) == 0 && l.buffered:
		return nil, false, true
	case len(b.ahead) == 0 && b.idle():
		l.missed()
		return nil, false, false
	}
	l.misses = 0
	data, whole = l.machine.Peek(b.ahead)
	b.bulk = len(data) > 0 && !whole
	return data, whole, true
}

// Discard releases the first n bytes of the last Peek. It reports whether there may be more bytes
// than the poll set reports, as Buffered does.
func (l *Link) Discard(n int) (buffered bool) {
	b := l.below
	used, answer := l.machine.Discard(n)
	b.bulk = b.bulk && n > 0
	b.inside = b.bulk
	l.fed(b, used, n, answer)
	return l.buffered
}

// Send accepts as many bytes as the window has room for.
func (l *Link) Send(batch [][]byte) (n int, err error) {
	if n = l.machine.SendQuick(batch); n == 0 {
		l.look()
		n, err = l.machine.Send(batch)
	}
	l.sent += uint64(n)
	return n, err
}

func (l *Link) missed() {
	if l.misses++; l.misses == bored {
		l.machine.Acknowledge(modest)
	}
}

// feed gives the machine the bytes that idle has read, by the shortest path. It returns how
// many bytes the user got, and whether it could use that path.
func (l *Link) feed(b *below, batch [][]byte) (n int, ok bool) {
	used, n, answer := l.machine.Feed(b.ahead, batch)
	if n == 0 && !answer {
		return 0, false
	}
	l.fed(b, used, n, answer)
	return n, true
}

// rest reads the rest of a frame that has begun straight into the user's memory. It returns
// the same as feed.
func (l *Link) rest(b *below, batch [][]byte) (n int, ok bool) {
	rest := l.machine.DirectBytes()
	if rest == 0 || l.pending || len(batch) == 0 {
		return 0, false
	}
	n, err := b.recvRest(batch, rest)
	switch {
	case n == 0 && err != nil:
		return 0, false // the machine has to get the error, too
	case n == 0:
		l.buffered = false
		l.missed()
		return 0, true
	}
	l.misses = 0
	b.inside = n < rest
	l.fed(b, 0, n, l.machine.ReadDirect(n))
	return n, true
}

// fed records how much the machine has taken of what was read ahead.
func (l *Link) fed(b *below, used, n int, answer bool) {
	b.ahead = b.ahead[used:]
	l.received += uint64(n)
	if answer {
		l.machine.Flush()
	}
	l.buffered = b.closed || len(b.ahead) > 0 || !b.dry
}

// Counts returns how many bytes the owner has sent and received.
func (l *Link) Counts() (sent, received uint64) { return l.sent, l.received }

// RTT returns the round-trip time of the link below, if that measures it.
func (l *Link) RTT() (time.Duration, bool) {
	if l.below == nil {
		return 0, false
	}
	k, ok := l.below.Link.(interface{ RTT() (time.Duration, bool) })
	if !ok {
		return 0, false
	}
	return k.RTT()
}

// Handle returns the handle of the link below, or link.NoHandle.
func (l *Link) Handle() int {
	if l.below == nil {
		return link.NoHandle
	}
	return l.below.Handle()
}

// Arm reports whether one of the events in want has happened, and otherwise arms the link below.
func (l *Link) Arm(want link.Interest) bool { return l.machine.Arm(want) }

// Limits returns the window as Stream, and Memory of the link below.
func (l *Link) Limits() link.Limits {
	x := l.machine.Limits()
	if l.below != nil {
		x.Memory = l.below.Link.Limits().Memory
	}
	return x
}

// CloseSend ends this side's stream.
func (l *Link) CloseSend() error { return l.machine.CloseSend() }

// Close releases the Link and all links below.
func (l *Link) Close() error {
	for _, a := range l.arrivals {
		_ = a.l.Close()
	}
	l.arrivals = nil
	return l.machine.Close()
}
