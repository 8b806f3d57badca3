package kernel

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// LinkSpec describes the behaviour of a link.
type LinkSpec struct {
	Name     string
	Delay    time.Duration // of each piece
	Jitter   time.Duration // maximum addition to Delay
	Uneven   int           // Delay and Jitter of each link are multiplied by up to this; below 2: not
	Capacity int           // maximum bytes that are under way, or have arrived and were not received
	Chop     float64       // probability that Send and Recv move less than they could
	Lend     float64       // probability that Lend does not copy
	Reset    float64       // probability that bytes that arrive at a closed end destroy what it has sent, as with some TCPs
	Boxes    bool          `line:"-"` // its owners share memory, and have fast boxes there
}

// Watcher sees the bytes of a link.
type Watcher interface {
	// Sent is called with the bytes that an end has sent, before they can arrive.
	Sent(from *End, data []byte)
	// Received is called with the number of bytes that an end has received.
	Received(to *End, n int)
	// Ended is called when an end has stopped sending.
	Ended(from *End)
}

// EndWatcher is a Watcher that also sees when an end learns of the other's end.
type EndWatcher interface {
	// SawEnd is called when an end returns io.EOF to its owner for the first time.
	SawEnd(by *End)
}

// Link is two ends and what is under way between them.
type Link struct {
	k       *Kernel
	spec    LinkSpec
	Ends    [2]*End
	watcher Watcher
	stalled time.Duration // nothing arrives before this time
	cut     bool
	boxes   int // fast-box messages that were sent
}

// End is one end of a Link. It implements plugins/sdk/link's Link; its handle is a
// number that only Sets of the same kernel know.
type End struct {
	Name   string // "link name, end 0"
	l      *Link
	peer   *End
	handle int
	bell

	boxed *BoxedEnd // nil: no fast boxes
	given uint64    // bytes that were ever sent to this end
	taken uint64    // bytes that were ever received by this end

	in      []byte // sent to this end; [read:landed) has arrived, the rest is on its way
	read    int
	landed  int
	flight  []piece // pieces under way, from first on
	first   int
	landing *Timer        // of flight[first]
	lands   time.Duration // when the last piece arrives
	ended   bool          // CloseSend was called here
	eof     bool          // the peer has sent its end, and it has arrived
	told    bool          // the owner has received io.EOF
	closed  bool
	broken  error
	owed    debt // to the owner
}

// piece is what one Send gave, on its way to the end that holds it.
type piece struct {
	size int // bytes of the piece
	at   time.Duration
	eof  bool
}

// NewLink creates a link. w may be nil.
func (k *Kernel) NewLink(spec LinkSpec, w Watcher) *Link {
	if spec.Capacity <= 0 {
		panic(fmt.Sprintf("kernel: link %s holds %d bytes", spec.Name, spec.Capacity))
	}
	if spec.Uneven > 1 {
		times := 1 + k.Between(0, time.Duration(spec.Uneven-1))
		spec.Delay, spec.Jitter = times*spec.Delay, times*spec.Jitter
	}
	l := &Link{k: k, spec: spec, watcher: w}
	for i := range l.Ends {
		l.Ends[i] = &End{Name: spec.Name + endNames[i], l: l, bell: bell{k: k}}
		l.Ends[i].handle = k.handle(l.Ends[i])
	}
	l.Ends[0].peer, l.Ends[1].peer = l.Ends[1], l.Ends[0]
	if spec.Boxes {
		l.box()
	}
	return l
}

var endNames = [2]string{", end 0", ", end 1"}

// Name returns the name in the LinkSpec, by which traces and errors know the link.
func (l *Link) Name() string { return l.spec.Name }

// Link returns the link that e is an end of.
func (e *End) Link() *Link { return e.l }

// Peer returns the end that receives what this one sends.
func (e *End) Peer() *End { return e.peer }

// OnReady makes the kernel call f soon after something may have become possible for e: something to
// receive, room to send, an end.
func (e *End) OnReady(f func()) {
	e.notify = f
	if f != nil && (e.readable() || e.writable()) {
		e.ring()
	}
}

func (e *End) readable() bool {
	return e.closed || e.broken != nil || e.read < e.landed || e.eof || e.due()
}

func (e *End) writable() bool {
	if e.closed || e.broken != nil || e.ended || e.peer.closed {
		return true
	}
	room := e.peer.load() < e.l.spec.Capacity
	if d := &e.owed; d.shown > 0 {
		return d.back > 0 || d.short && room
	}
	return room
}

func (e *End) gone() bool { return e.closed }

// load is what counts for the capacity: bytes that were not received.
func (e *End) load() int { return len(e.in) - e.read }

// Unread returns the number of bytes that have arrived and were not received.
func (e *End) Unread() int { return e.landed - e.read }

// Send sends as much as there is room for, or less.
func (e *End) Send(batch [][]byte) (int, error) {
	switch {
	case e.closed || e.ended:
		return 0, link.ErrClosed
	case e.broken != nil:
		return 0, e.broken
	case e.peer.closed && len(batch) > 0 && e.owed.shown == 0 && e.InFlight() && e.l.spec.Reset == 0:
		return link.Len(batch), nil // the answer comes after what the peer has sent before
	case e.peer.closed:
		return 0, e.refused()
	case e.owed.shown > 0 && len(batch) > 0:
		panic(fmt.Errorf("%w: %s sends while it has lent %d bytes", ErrLoan, e.Name, e.owed.shown))
	}
	return e.push(batch), nil
}

// push sends as much as there is room for, or less.
func (e *End) push(batch [][]byte) int {
	n := min(link.Len(batch), e.l.spec.Capacity-e.peer.load())
	if n <= 0 {
		return 0
	}
	if len(batch) > 1 && e.l.k.Chance(e.l.spec.Chop) {
		n = min(n, e.l.whole(batch))
	} else {
		n = e.l.chop(n)
	}
	data := e.peer.hold(batch, n)
	if e.l.watcher != nil {
		e.l.watcher.Sent(e, data)
	}
	e.l.k.mix(data)
	e.dispatch(piece{size: n})
	return n
}

var errClosed = errors.New("the peer has closed it")

// refused is the result of sending to a closed end. As with TCP, the answer may destroy what the
// sender has yet to receive.
func (e *End) refused() error {
	if e.l.k.Chance(e.l.spec.Reset) {
		e.lose()
		e.fail(errClosed)
		return e.broken
	}
	return e.breach(errClosed)
}

func (e *End) hold(batch [][]byte, n int) []byte {
	if e.read > 0 && len(e.in)+n > cap(e.in) {
		e.in = e.in[:copy(e.in, e.in[e.read:])]
		e.landed -= e.read
		e.read = 0
	}
	e.given += uint64(n)
	at := len(e.in)
	for _, b := range batch {
		e.in = append(e.in, b[:min(len(b), n-(len(e.in)-at))]...)
	}
	return e.in[at:]
}

// chop makes n smaller now and then, but never 0.
func (l *Link) chop(n int) int {
	if n > 1 && l.k.Chance(l.spec.Chop) {
		if l.k.Chance(0.3) {
			return 1 + l.k.rng.IntN(min(n, 200)) // small sizes split headers
		}
		return 1 + l.k.rng.IntN(n)
	}
	return n
}

// whole returns the length of the first few slices of a batch, since a writer may have to stop
// between two slices, where something new begins.
func (l *Link) whole(batch [][]byte) (n int) {
	for _, b := range batch[:1+l.k.rng.IntN(len(batch)-1)] {
		n += len(b)
	}
	return max(n, 1)
}

// dispatch puts p on its way. Pieces of one direction never overtake each other.
func (e *End) dispatch(p piece) {
	k, to := e.l.k, e.peer
	if e.l.cut || to.broken != nil || to.closed {
		to.in = to.in[:len(to.in)-p.size]
		return
	}
	p.at = max(k.now+e.l.spec.Delay+k.Between(0, e.l.spec.Jitter), to.lands, e.l.stalled)
	to.lands = p.at
	to.flight = append(to.flight, p)
	if len(to.flight)-to.first == 1 {
		to.await()
	}
}

func (e *End) await() {
	d := max(e.flight[e.first].at, e.l.stalled) - e.l.k.now
	if e.landing == nil {
		e.landing = e.l.k.After(d, e.land)
		return
	}
	e.landing.Reset(d)
}

func (e *End) land() {
	now := e.l.k.now
	if now < e.l.stalled {
		e.await()
		return
	}
	for ; e.first < len(e.flight) && e.flight[e.first].at <= now; e.first++ {
		e.eof = e.eof || e.flight[e.first].eof
		e.landed += e.flight[e.first].size
	}
	if e.first == len(e.flight) {
		e.flight, e.first = e.flight[:0], 0
	} else {
		e.await()
	}
	e.ring()
}

// Recv returns the bytes that have arrived, or fewer.
func (e *End) Recv(batch [][]byte) (int, error) {
	switch {
	case e.closed:
		return 0, link.ErrClosed
	case e.due(): // the fast-box message must be taken first
		return 0, nil
	case e.broken != nil && e.read == e.landed:
		return 0, e.broken
	}
	have := e.in[e.read:e.landed]
	if len(have) == 0 {
		if e.eof && link.Len(batch) > 0 {
			if w, ok := e.l.watcher.(EndWatcher); ok && !e.told {
				w.SawEnd(e)
			}
			e.told = true
			return 0, io.EOF
		}
		return 0, nil
	}
	n := e.l.chop(e.before(min(len(have), link.Len(batch))))
	have = have[:n]
	e.collect(have)
	for _, b := range batch {
		have = have[copy(b, have):]
	}
	e.read += n
	e.taken += uint64(n)
	if e.read == len(e.in) {
		e.in, e.read, e.landed = e.in[:0], 0, 0
	}
	if e.l.watcher != nil {
		e.l.watcher.Received(e, n)
	}
	e.l.k.mixNumbers(uint64(e.handle), uint64(n))
	e.peer.ring()
	return n, nil
}

// Handle returns the number by which Sets of this kernel identify the end.
func (e *End) Handle() int { return e.handle }

// Arm returns false: a Set finds out what is ready by itself.
func (e *End) Arm(link.Interest) bool { return false }

// Limits returns the link's capacity as Stream.
func (e *End) Limits() link.Limits { return link.Limits{Stream: e.l.spec.Capacity} }

// CloseSend ends this direction, unless it is broken. The peer sees the end after all bytes.
func (e *End) CloseSend() error {
	switch {
	case e.closed:
		return link.ErrClosed
	case e.broken != nil:
		return e.broken
	case !e.ended:
		e.end()
	}
	return nil
}

func (e *End) end() {
	e.ended = true
	e.owed.keep()
	if e.l.watcher != nil {
		e.l.watcher.Ended(e)
	}
	e.dispatch(piece{eof: true})
}

// Close releases this end. Bytes that it did not receive are lost; if there were any, bytes that it
// has sent may be lost too.
func (e *End) Close() error {
	if e.closed {
		return nil
	}
	lent := e.owed.untaken() > 0
	if lent {
		e.forfeit()
	}
	if !e.ended && e.broken == nil {
		e.end()
	}
	if lent {
		e.peer.reset()
	} else if e.load() > 0 && e.l.k.Chance(e.l.spec.Reset) {
		e.peer.reset()
	}
	e.closed, e.notify = true, nil
	e.lose()
	e.in, e.read, e.landed = nil, 0, 0
	e.peer.ring()
	return nil
}

// Cut breaks the link: each end fails when the news reaches it. Bytes under way are lost.
func (l *Link) Cut(why error) {
	if l.cut {
		return
	}
	l.cut = true
	l.k.mixNumbers(uint64(l.Ends[0].handle))
	for _, e := range l.Ends {
		e.drop(why)
	}
}

// reset breaks an end whose peer has closed without having read everything.
func (e *End) reset() { e.drop(errors.New("reset by the peer")) }

// drop loses the bytes under way to e, which notices after a while.
func (e *End) drop(why error) {
	e.lose()
	k, s := e.l.k, e.l.spec
	k.After(k.Between(0, s.Delay+s.Jitter), func() { e.fail(why) })
}

func (e *End) lose() {
	e.peer.forfeit()
	if e.landing != nil {
		e.landing.Stop()
	}
	e.flight, e.first = nil, 0
	e.in = e.in[:e.landed]
}

func (e *End) fail(why error) {
	if e.broken == nil {
		e.broken = e.breach(why)
		e.ring()
	}
}

func (e *End) breach(why error) error { return fmt.Errorf("%w: %s: %w", link.ErrBroken, e.Name, why) }

// Forever is longer than any run, for Stall.
const Forever = 1 << 60 * time.Nanosecond

// Stall delays all arrivals until d from now.
func (l *Link) Stall(d time.Duration) { l.stalled = max(l.stalled, l.k.now+d) }

// Over reports whether nothing can happen on the link any more.
func (l *Link) Over() bool { return l.cut || l.Ends[0].closed && l.Ends[1].closed }

// Open reports whether e can still send.
func (e *End) Open() bool { return !e.closed && !e.ended && e.broken == nil }

// Ready reports whether e is ready for one of the interests in want, as a Set would find.
func (e *End) Ready(want link.Interest) bool {
	return want&link.Readable != 0 && e.readable() || want&link.Writable != 0 && e.writable()
}

// InFlight reports whether something that the peer has sent has not arrived.
func (e *End) InFlight() bool { return e.first < len(e.flight) }

// HasEnd reports whether the end of the peer's bytes has arrived.
func (e *End) HasEnd() bool { return e.eof }
