// Package resumable is what procs and nodes need around a core/resume Link: the
// link below it that comes and goes in a poll set, bytes read ahead, and the
// HELLOs of links that have arrived.
//
// A Link is for one goroutine at a time, its owner's, who also asks somebody for
// links to run over and gives up: package resume says when.
package resumable

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
)

// Feature is the name, on business cards, of resumable links.
const Feature = "resume"

// Window is how many bytes a link has under way. Whoever lends bytes keeps them
// himself, so that a large one costs nothing but seldom acknowledgements.
const Window = 4 << 20

const (
	// bored is after how many receives in a row that bring nothing the peer is told
	// what has come, and modest how many bytes that must be: its program may wait
	// for them to be its own again.
	bored  = 4
	modest = 4 << 10
)

// JoinLimit is how long a link below may take until both ends have said HELLO.
const JoinLimit = 5 * time.Second

// How long to wait before a link below is asked for that replaces one by which no
// bytes were moved; it doubles. Two in a row may be an accident.
const (
	accidents  = 2
	firstPause = 10 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// maxArrivals is how many links a side keeps of which the HELLO has not come.
const maxArrivals = 4

// Config says what a Link is like.
type Config struct {
	Session resume.Session
	Dialler bool
	Window  int // bytes; 0: resume.DefaultWindow

	// Released is called before the link below is closed, with its handle, which
	// no poll set may have after that. It must not call the Link.
	Released func(handle int)

	// Blocked is called when the link below has not taken all that it was given:
	// somebody should Push later. It must not call the Link.
	Blocked func()
}

// Link is a link that outlives the links below it. All that a short packet needs of it is
// in one page of memory: a call of the kernel leaves few of them at hand. It keeps the contract of
// link.Link but for two things: its Handle is that of the link below, or
// link.NoHandle where there is none, and who waits on it must wait for Wants.
type Link struct {
	below    *below // one of places
	stirred  bool   // bytes may have come that nobody was given
	pending  bool   // the link below has not taken all that it was given
	up       bool
	dialler  bool
	misses   int // receives in a row that brought nothing
	sent     uint64
	received uint64
	places   [2]below // for one, and the one that replaces it

	_       [40]byte // so that lines of the cache begin with what follows
	machine resume.Link
	_       [32]byte
	in      [first]byte // what is read ahead

	released func(int)
	blocked  func()
	arrivals []arrival
	made     int // links below that both ends have used
	vain     int // how many links below in a row have moved nothing, the present one included so far
	moved    uint64
	since    time.Time // of the present link below
}

// arrival is a link that the other end has dialled.
type arrival struct {
	resume.Arrival
	l     link.Link
	since time.Time
}

// New makes one end, without a link below.
func New(c Config) *Link {
	l := &Link{dialler: c.Dialler, released: c.Released, blocked: c.Blocked}
	l.machine.Init(resume.Config{
		Session: c.Session, Dialler: c.Dialler, Window: c.Window, Frame: frame(c.Window),
	})
	return l
}

// frame is the most bytes in a frame: few frames for many bytes, but several in a
// window, so that they are acknowledged before it is full.
func frame(window int) int {
	if window == 0 {
		window = resume.DefaultWindow
	}
	return max(1, window/4)
}

// Start goes on over a link that was dialled or has arrived, and owns it. now is
// when that is.
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
	l.Welcome(now)
}

// use makes x the link below, unless the machine does not want it.
func (l *Link) use(x link.Link, now time.Time, install func(link.Link) error) {
	before, up, since := l.below, l.up, l.since
	b := &l.places[0]
	if b == before {
		b = &l.places[1]
	}
	*b = below{Link: x, owner: l, in: l.in[:]}
	l.below, l.up, l.since = b, false, now
	if err := install(b); err != nil { // the one before may be in use still
		l.below, l.up, l.since = nil, up, since
		if before != nil && !before.closed {
			l.below = before
		}
		_ = x.Close()
		return
	}
	l.stirred = true
	if all := l.progress(); all != l.moved {
		l.moved, l.vain = all, 0
	}
	l.vain++
	l.joined(!l.dialler)
}

// progress grows with each byte that the user gives or gets, or that the peer's has got:
// one long send may take many links below.
func (l *Link) progress() uint64 { return l.sent + l.received + l.machine.Status().Acked }

// Pause is how long the owner should be without a link below before he asks for one.
func (l *Link) Pause() time.Duration {
	if l.progress() != l.moved || l.vain <= accidents {
		return 0
	}
	return min(firstPause<<min(l.vain-accidents-1, 10), lastPause)
}

// joined notes that both ends have used the link below, if they have: it may be
// lost before anybody asks.
func (l *Link) joined(yes bool) {
	if !l.up && (yes || l.machine.Status().State == resume.Up) {
		l.up = true
		l.made++
	}
}

// Welcome reads the HELLOs of links that have arrived, as far as they have come.
func (l *Link) Welcome(now time.Time) {
	left := l.arrivals[:0]
	for i := range l.arrivals {
		a := &l.arrivals[i]
		switch h, ok, err := a.Read(a.l); {
		case err != nil || !ok && now.Sub(a.since) > JoinLimit:
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

// errSlow is why a link below is let go of that does not answer.
var errSlow = errors.New("the other end has not answered on it")

// Status says how the Link is. Of a link below of which the other end says
// nothing for long it lets go.
func (l *Link) Status(now time.Time) resume.Status {
	s := l.machine.Status()
	if s.State == resume.Joining && now.Sub(l.since) > JoinLimit {
		l.machine.Lost(s.Epoch, errSlow)
		s = l.machine.Status()
	}
	l.joined(s.State == resume.Up)
	return s
}

// Expects reports whether a link that has arrived, or the link below, still has to
// say HELLO.
func (l *Link) Expects() bool {
	return len(l.arrivals) > 0 || l.machine.Status().State == resume.Joining
}

// Made is how many links below both ends have used.
func (l *Link) Made() int { return l.made }

// Resumes is how many links below have replaced others.
func (l *Link) Resumes() int { return max(0, l.made-1) }

// Fail gives the Link up, as resume.Link does.
func (l *Link) Fail(why error) { l.machine.Fail(why) }

// Lost says that the link below is of no use, as the owner has heard.
func (l *Link) Lost(why error) { l.machine.Lost(l.machine.Status().Epoch, why) }

// Stirred reports whether Recv may have something although the link below, which a
// poll set sees, has nothing.
func (l *Link) Stirred() bool { return l.stirred }

// Wants tells for what the link below should be waited.
func (l *Link) Wants() link.Interest { return l.machine.Wants() }

// Pump receives what has come and sends what is pending.
func (l *Link) Pump() {
	l.look()
	l.machine.Pump()
}

// Push sends what is pending, an end and what is before it too.
func (l *Link) Push() {
	l.look()
	l.machine.Flush()
}

// look has the next Recv of the link below ask the kernel.
func (l *Link) look() {
	if l.below != nil {
		l.below.dry = false
	}
}

// Lend passes bytes on and leaves them where they are until the peer has them, as
// resume.Link does: Send may follow, and takes them.
func (l *Link) Lend(batch [][]byte) (int, error) {
	l.look()
	n, err := l.machine.Lend(batch)
	l.sent += uint64(n)
	return n, err
}

// Owes reports whether lent bytes are the owner's again.
func (l *Link) Owes() bool { return l.machine.Owes() }

// Lending reports whether bytes are lent that the owner has not back.
func (l *Link) Lending() bool { return l.machine.Lending() }

// Behind reports whether the link below would be given lent bytes.
func (l *Link) Behind() bool { return l.machine.Behind() }

// Recv delivers what has come.
func (l *Link) Recv(batch [][]byte) (int, error) {
	b := l.below
	switch {
	case b == nil:
	case b.inside:
		if n, ok := l.rest(b, batch); ok {
			return n, nil
		}
	case !l.stirred:
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

// recv is Recv for what the machine has to see to.
func (l *Link) recv(batch [][]byte) (int, error) {
	b := l.below
	l.misses = 0
	room := link.Len(batch)
	n, err := l.machine.Recv(batch)
	l.received += uint64(n)
	if !l.up {
		l.joined(false)
	}
	// Else the last thing that the machine did was to find nothing, or an end behind what came.
	l.stirred = n > 0 && (n == room || l.machine.Readable()) || b != nil && (b.closed || len(b.ahead) > 0)
	return n, err
}

// Peek gives bytes that have come where they lie: those of one frame, valid until
// Discard, which follows, or Recv. whole reports whether they are all of the frame. If there
// are none, more reports whether Recv may have something nevertheless.
func (l *Link) Peek() (data []byte, whole, more bool) {
	b := l.below
	switch {
	case b == nil, b.inside, len(b.ahead) == 0 && l.stirred:
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

// Discard says that the first n bytes of the last Peek are done with. It reports whether
// there may be more than the poll set knows, as Stirred does.
func (l *Link) Discard(n int) (stirred bool) {
	b := l.below
	used, answer := l.machine.Discard(n)
	b.bulk = b.bulk && n > 0
	b.inside = b.bulk
	l.fed(b, used, n, answer)
	return l.stirred
}

// idle looks whether anything has come, without the machine, and reports whether
// there is nothing to do. Most calls of one who polls end here.
func (b *below) idle() bool {
	if len(b.ahead) > 0 {
		return false
	}
	b.dry = false
	if b.inside || b.owner.pending {
		return false
	}
	room := b.in
	if b.bulk {
		room = room[:bulk]
	}
	b.one[0] = room
	n, err := b.Link.Recv(b.one[:])
	if err != nil {
		return false // the machine hears it too: it is final
	}
	b.ahead, b.dry = b.in[:n], 0 < n && n < len(room)
	return n == 0
}

// Send takes what the window has room for.
func (l *Link) Send(batch [][]byte) (n int, err error) {
	if n = l.machine.SendQuick(batch); n == 0 {
		l.look()
		n, err = l.machine.Send(batch)
	}
	l.sent += uint64(n)
	return n, err
}

// missed notes that nothing had come.
func (l *Link) missed() {
	if l.misses++; l.misses == bored {
		l.machine.Acknowledge(modest)
	}
}

// feed gives the machine what idle has read, in the quickest way. It returns how many
// bytes came of that, and whether it was of use.
func (l *Link) feed(b *below, batch [][]byte) (n int, ok bool) {
	used, n, answer := l.machine.Feed(b.ahead, batch)
	if n == 0 && !answer {
		return 0, false
	}
	l.fed(b, used, n, answer)
	return n, true
}

// rest reads what comes of a frame that has begun to where it belongs, like feed.
func (l *Link) rest(b *below, batch [][]byte) (n int, ok bool) {
	rest := l.machine.Rest()
	if rest == 0 || l.pending || len(batch) == 0 {
		return 0, false
	}
	n, err := b.recvRest(batch, rest)
	switch {
	case n == 0 && err != nil:
		return 0, false // the machine hears it too: it is final
	case n == 0:
		l.stirred = false
		l.missed()
		return 0, true
	}
	l.misses = 0
	b.inside = n < rest
	l.fed(b, 0, n, l.machine.Took(n))
	return n, true
}

// fed notes what the machine has taken of what was read ahead.
func (l *Link) fed(b *below, used, n int, answer bool) {
	b.ahead = b.ahead[used:]
	l.received += uint64(n)
	if answer {
		l.machine.Flush()
	}
	l.stirred = b.closed || len(b.ahead) > 0 || !b.dry
}

// Counts returns how many bytes the owner has sent and received.
func (l *Link) Counts() (sent, received uint64) { return l.sent, l.received }

// RTT is that of the link below, if it knows.
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

// Handle is that of the link below, or link.NoHandle.
func (l *Link) Handle() int {
	if l.below == nil {
		return link.NoHandle
	}
	return l.below.Handle()
}

// Arm reports whether one of want holds, and arms the link below if not.
func (l *Link) Arm(want link.Interest) bool { return l.machine.Arm(want) }

// Limits are those of the machine and of the link below.
func (l *Link) Limits() link.Limits {
	x := l.machine.Limits()
	if l.below != nil {
		x.Memory = l.below.Link.Limits().Memory
	}
	return x
}

// CloseSend ends this side's bytes.
func (l *Link) CloseSend() error { return l.machine.CloseSend() }

// Close releases the Link and all below it.
func (l *Link) Close() error {
	for _, a := range l.arrivals {
		_ = a.l.Close()
	}
	l.arrivals = nil
	return l.machine.Close()
}

const (
	// short is the most bytes that are worth a copy to have them in one piece: the
	// kernel takes and gives one slice quicker than several.
	short = 2 << 10
	// first is how much is read when nothing is known of what comes: the frame of a
	// packet of a page.
	first = 4<<10 + 512
	// bulk is how much is read after a frame of which more than that has come: the next
	// may be as long, and its bytes should go to where they belong.
	bulk = 1<<10 + 64
	// next is how much is read behind the bytes of a long frame, for the header of
	// the next.
	next = 512
)

// below is the link below. The machine asks for a header and then for what it
// says there is; a system call for each would cost more than the copy of what
// was read in advance.
type below struct {
	link.Link
	owner  *Link
	ahead  []byte // of in: received, not asked for yet
	dry    bool   // the last call brought all there was, in this call of the owner's
	inside bool   // a long frame, of which more is to come
	bulk   bool   // the last frame was one, or is
	closed bool
	batch  [][]byte
	one    [1][]byte
	in     []byte // first bytes, the owner's
	out    []byte // short bytes, made when they are needed
}

// Recv returns what was read ahead, and after that what there is.
func (b *below) Recv(batch [][]byte) (n int, err error) {
	b.owner.stirred = true // Recv of the owner knows better
	switch room := link.Len(batch); {
	case len(b.ahead) > 0:
	case b.dry:
		b.dry = false
		return 0, nil
	case room >= short:
		return b.recvLong(batch, room)
	default:
		b.one[0] = b.in
		if n, err = b.Link.Recv(b.one[:]); err != nil {
			return 0, err
		}
		b.ahead, b.dry = b.in[:n], 0 < n && n < len(b.in)
	}
	return b.take(batch), nil
}

// recvRest returns up to size bytes, those that were read ahead first, and reads a little
// more if there is room for all of them.
func (b *below) recvRest(batch [][]byte, size int) (n int, err error) {
	if len(b.ahead) > 0 {
		b.batch = link.Front(b.batch, batch, size)
		n = b.take(b.batch)
		clear(b.batch)
		return n, nil
	}
	room := len(batch[0])
	if room < size {
		b.batch = link.Front(b.batch, batch, size)
		room = link.Len(b.batch)
	} else {
		room = size
		b.batch = append(b.batch[:0], batch[0][:size])
	}
	offered := room
	if room == size {
		b.batch = append(b.batch, b.in[:next])
		offered += next
	}
	n, err = b.Link.Recv(b.batch)
	clear(b.batch)
	b.dry = 0 < n && n < offered
	if n > room {
		b.ahead, n = b.in[:n-room], room
	}
	return n, err
}

// take returns what was read ahead.
func (b *below) take(batch [][]byte) (n int) {
	for _, to := range batch {
		k := copy(to, b.ahead)
		b.ahead = b.ahead[k:]
		n += k
	}
	return n
}

// recvLong reads into place, and a little more.
func (b *below) recvLong(batch [][]byte, room int) (n int, err error) {
	b.batch = append(append(b.batch[:0], batch...), b.in[:next])
	n, err = b.Link.Recv(b.batch)
	clear(b.batch)
	b.dry = n > 0 && n < room+next
	b.inside = n < room
	if n > room {
		b.ahead = b.in[:n-room]
		n = room
	}
	return n, err
}

// Send tells the owner if bytes are left over.
func (b *below) Send(batch [][]byte) (int, error) {
	size := link.Len(batch)
	if len(batch) > 1 && size <= short {
		if b.out == nil {
			b.out = make([]byte, short)
		}
		at := 0
		for _, x := range batch {
			at += copy(b.out[at:], x)
		}
		b.one[0] = b.out[:size]
		batch = b.one[:]
	}
	n, err := b.Link.Send(batch)
	if b.owner.pending = n < size; b.owner.pending && err == nil && b.owner.blocked != nil {
		b.owner.blocked()
	}
	return n, err
}

// Bare is the link itself, for frames that it takes whole: then nothing is pending.
func (b *below) Bare() link.Link { return b.Link }

// Arm knows of what was read ahead.
func (b *below) Arm(want link.Interest) bool {
	b.dry = false
	return want&link.Readable != 0 && len(b.ahead) > 0 || b.Link.Arm(want)
}

// Close tells the owner first.
func (b *below) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if b.owner.below == b {
		b.owner.below = nil
	}
	if b.owner.released != nil {
		b.owner.released(b.Link.Handle())
	}
	return b.Link.Close()
}
