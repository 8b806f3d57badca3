package kernel

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/core/link"
)

// LinkSpec says how a link behaves.
type LinkSpec struct {
	Name     string
	Delay    time.Duration // of each piece
	Jitter   time.Duration // at most this much is added to Delay
	Capacity int           // bytes that are under way, or arrived and not received
	Chop     float64       // how likely Send and Recv move less than they could
	Reset    float64       // how likely Close loses what was sent if there is something unread, as TCP may
}

// Watcher sees the bytes of a link.
type Watcher interface {
	// Sent is called with what an end has sent, and before it can arrive.
	Sent(from *End, data []byte)
	// Received is called with how much an end has taken out.
	Received(to *End, n int)
	// Ended is called when an end has said that it sends no more.
	Ended(from *End)
}

// Link is two ends and what is under way between them.
type Link struct {
	k       *Kernel
	spec    LinkSpec
	Ends    [2]*End
	watcher Watcher
	stalled time.Duration // nothing arrives before
	cut     bool
}

// End is one end of a Link. It implements core/link's Link; its handle is a
// number that only Sets of the same kernel know.
type End struct {
	Name   string // "link name, end 0"
	l      *Link
	peer   *End
	handle int
	notify func() // something may have become possible; nil: nobody waits

	in      []byte // arrived
	read    int    // of in, how much was received
	flight  []piece
	landing *Timer // of flight[0]
	onWay   int    // bytes of flight and in, which the sender's capacity counts
	lands   time.Duration
	ended   bool // our CloseSend
	eof     bool // the peer's end has arrived
	closed  bool
	broken  error
	nudge   *Timer // of notify
}

// piece is what one Send gave, on its way to the end that holds it.
type piece struct {
	data []byte
	at   time.Duration
	eof  bool
}

// NewLink makes a link. w may be nil.
func (k *Kernel) NewLink(spec LinkSpec, w Watcher) *Link {
	if spec.Capacity <= 0 {
		panic(fmt.Sprintf("kernel: link %s holds %d bytes", spec.Name, spec.Capacity))
	}
	l := &Link{k: k, spec: spec, watcher: w}
	for i := range l.Ends {
		l.Ends[i] = &End{Name: fmt.Sprintf("%s, end %d", spec.Name, i), l: l, handle: len(k.ends)}
		k.ends = append(k.ends, l.Ends[i])
	}
	l.Ends[0].peer, l.Ends[1].peer = l.Ends[1], l.Ends[0]
	return l
}

// Name is the link's name.
func (l *Link) Name() string { return l.spec.Name }

// WasCut tells whether Cut was called.
func (l *Link) WasCut() bool { return l.cut }

// Link is the link that e is an end of.
func (e *End) Link() *Link { return e.l }

// Peer is the other end.
func (e *End) Peer() *End { return e.peer }

// OnReady has f called, from the kernel, soon after something may have become
// possible for e: something to receive, room to send, an end.
func (e *End) OnReady(f func()) {
	e.notify = f
	if f != nil && (e.readable() || e.writable()) {
		e.poke()
	}
}

// poke lets whoever waits for e look at it.
func (e *End) poke() {
	if e.notify == nil {
		return
	}
	if e.nudge == nil {
		e.nudge = e.l.k.After(0, func() {
			if e.notify != nil {
				e.notify()
			}
		})
		return
	}
	if e.nudge.index < 0 {
		e.nudge.Reset(0)
	}
}

func (e *End) readable() bool {
	return e.closed || e.broken != nil || e.read < len(e.in) || e.eof
}

func (e *End) writable() bool {
	return e.closed || e.broken != nil || e.ended || e.peer.closed || e.peer.onWay < e.l.spec.Capacity
}

// Send takes what there is room for, or less.
func (e *End) Send(batch [][]byte) (int, error) {
	switch {
	case e.closed || e.ended:
		return 0, link.ErrClosed
	case e.broken != nil:
		return 0, e.broken
	case e.peer.closed:
		e.fail(errors.New("the peer has closed it"))
		return 0, e.broken
	}
	n := e.l.chop(min(link.Len(batch), e.l.spec.Capacity-e.peer.onWay))
	if n <= 0 {
		return 0, nil
	}
	data := make([]byte, 0, n)
	for _, b := range batch {
		data = append(data, b[:min(len(b), n-len(data))]...)
	}
	if e.l.watcher != nil {
		e.l.watcher.Sent(e, data)
	}
	e.l.k.mix(data)
	e.peer.onWay += n
	e.dispatch(piece{data: data})
	return n, nil
}

// chop makes n smaller now and then, but not 0.
func (l *Link) chop(n int) int {
	if n > 1 && l.k.Chance(l.spec.Chop) {
		if l.k.Chance(0.3) {
			return 1 + l.k.rng.IntN(min(n, 200)) // splits headers
		}
		return 1 + l.k.rng.IntN(n)
	}
	return n
}

// dispatch puts p on its way. Pieces of one direction never overtake each other.
func (e *End) dispatch(p piece) {
	k, to := e.l.k, e.peer
	if e.l.cut || to.broken != nil {
		return
	}
	p.at = max(k.now+e.l.spec.Delay+k.Between(0, e.l.spec.Jitter), to.lands, e.l.stalled)
	to.lands = p.at
	to.flight = append(to.flight, p)
	if len(to.flight) == 1 {
		to.await()
	}
}

// await has the first piece land in its time.
func (e *End) await() {
	d := max(e.flight[0].at, e.l.stalled) - e.l.k.now
	if e.landing == nil {
		e.landing = e.l.k.After(d, e.land)
		return
	}
	e.landing.Reset(d)
}

// land is the arrival of pieces.
func (e *End) land() {
	now := e.l.k.now
	if now < e.l.stalled {
		e.await()
		return
	}
	n := 0
	for ; n < len(e.flight) && e.flight[n].at <= now; n++ {
		e.eof = e.eof || e.flight[n].eof
		if !e.closed && e.broken == nil {
			e.in = append(e.in, e.flight[n].data...)
		}
		e.flight[n] = piece{}
	}
	e.flight = e.flight[n:]
	if len(e.flight) > 0 {
		e.await()
	}
	e.poke()
}

// Recv gives what has arrived, or less.
func (e *End) Recv(batch [][]byte) (int, error) {
	switch {
	case e.closed:
		return 0, link.ErrClosed
	case e.broken != nil && e.read == len(e.in):
		return 0, e.broken
	}
	have := e.in[e.read:]
	if len(have) == 0 {
		if e.eof && link.Len(batch) > 0 {
			return 0, io.EOF
		}
		return 0, nil
	}
	n := e.l.chop(min(len(have), link.Len(batch)))
	have = have[:n]
	for _, b := range batch {
		have = have[copy(b, have):]
	}
	e.read += n
	if e.read == len(e.in) {
		e.in, e.read = e.in[:0], 0
	}
	e.onWay -= n
	if e.l.watcher != nil {
		e.l.watcher.Received(e, n)
	}
	e.l.k.mixNumbers(uint64(e.handle), uint64(n))
	e.peer.poke()
	return n, nil
}

// Handle is a number for Sets of this kernel.
func (e *End) Handle() int { return e.handle }

// Arm answers false: a Set knows what has become ready.
func (e *End) Arm(link.Interest) bool { return false }

// Limits has the capacity as Stream.
func (e *End) Limits() link.Limits { return link.Limits{Stream: e.l.spec.Capacity} }

// CloseSend ends this side's bytes.
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
	if e.l.watcher != nil {
		e.l.watcher.Ended(e)
	}
	e.dispatch(piece{eof: true})
}

// Close releases this end. What it was sent is lost, and if there was any, what
// it has sent may be lost too.
func (e *End) Close() error {
	if e.closed {
		return nil
	}
	if !e.ended && e.broken == nil {
		e.end()
	}
	if e.onWay > 0 && e.l.k.Chance(e.l.spec.Reset) {
		e.peer.reset()
	}
	e.closed, e.notify = true, nil
	e.in, e.read = nil, 0
	e.peer.poke()
	return nil
}

// Cut fails both ends, each when the news reach it. What is under way is lost.
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

// reset is for an end whose peer has closed without having read everything.
func (e *End) reset() { e.drop(errors.New("reset by the peer")) }

// drop loses what is under way to e, which hears of it in a while.
func (e *End) drop(why error) {
	if e.landing != nil {
		e.landing.Stop()
	}
	e.flight = nil
	k, s := e.l.k, e.l.spec
	k.After(k.Between(0, s.Delay+s.Jitter), func() { e.fail(why) })
}

func (e *End) fail(why error) {
	if e.broken == nil {
		e.broken = fmt.Errorf("%w: %s: %w", link.ErrBroken, e.Name, why)
		e.poke()
	}
}

// Stall lets nothing arrive for d.
func (l *Link) Stall(d time.Duration) { l.stalled = max(l.stalled, l.k.now+d) }
