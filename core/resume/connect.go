package resume

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// State says whether a Link has an underlying link, waits for one, or has ended.
type State uint8

// The states. In Detached the driver makes another underlying link. In one of the last three
// it may release the Link, but see End in the package comment for Done.
const (
	Detached State = iota // no underlying link: the driver has to make one
	Joining               // dialler: the acceptor has not answered yet
	Up                    // bytes move
	Done                  // all bytes were acknowledged and received, in both directions, ends included
	Failed                // given up; calls of the user return an error
	Closed                // closed by the user
)

func (s State) String() string {
	names := [...]string{"Detached", "Joining", "Up", "Done", "Failed", "Closed"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Status is the part of a Link's state that its driver needs.
type Status struct {
	State State
	Epoch uint64 // epoch of the last underlying link; 0 before the first
	Acked uint64 // bytes that the peer's user has received, as far as is known
	Err   error  // Detached: why the last underlying link was lost, nil before the first; Failed: why
}

// Status returns the Link's status. It changes only in calls of Link's methods, those by
// the user included.
func (l *Link) Status() Status {
	l.lock()
	defer l.unlock()
	s := Status{Epoch: l.epoch, Acked: l.out.acked}
	switch {
	case l.closed:
		s.State = Closed
	case l.done():
		s.State = Done
	case l.err != nil:
		s.State, s.Err = Failed, l.err
	case l.lower == nil:
		s.State, s.Err = Detached, l.cause
	case l.joining:
		s.State = Joining
	default:
		s.State = Up
	}
	return s
}

// done reports whether this side needs nothing more from the peer
// (docs/decisions/0015-link-resume.md: the end is a position too).
func (l *state) done() bool { return l.out.complete() && l.in.fin }

// Dial makes the Link use lower, an underlying link that was dialled. An earlier underlying
// link is closed; bytes that it has not delivered are replayed. The Link owns lower from
// then on. If the Link was closed or given up, Dial returns an error and does not touch
// lower.
func (l *Link) Dial(lower link.Link) error {
	l.lock()
	defer l.unlock()
	if !l.config.Dialler {
		panic("resume: Dial by the end that accepts")
	}
	if err := l.over(); err != nil {
		return err
	}
	l.epoch++
	l.install(lower)
	l.joining = true
	l.greet()
	return nil
}

// Accept makes the Link use lower (docs/decisions/0015-link-resume.md: one side dials), an
// underlying link that was accepted and whose HELLO has
// been read, as Dial does. After an error the Link does not own lower. ErrSession, ErrStale
// and the errors of a Link that was closed or given up leave the Link as it was; any other
// error means that the two ends contradict each other, and ends the Link.
func (l *Link) Accept(lower link.Link, h Hello) error {
	l.lock()
	defer l.unlock()
	if l.config.Dialler {
		panic("resume: Accept by the end that dials")
	}
	switch err := l.over(); {
	case err != nil:
		return err
	case h.Session != l.config.Session:
		return l.wrap(fmt.Errorf("HELLO: %w: %v", ErrSession, h.Session))
	case h.Epoch <= l.epoch:
		return l.wrap(fmt.Errorf("HELLO: epoch %d is %w", h.Epoch, ErrStale))
	}
	if err := l.check(&h); err != nil {
		l.fail(err)
		return l.wrap(err)
	}
	l.epoch = h.Epoch
	l.install(lower)
	l.greet()
	l.adopt(&h)
	l.flush()
	return nil
}

// over returns the error of using a Link that has ended, or nil.
func (l *state) over() error {
	if l.closed {
		return link.ErrClosed
	}
	return l.err
}

// Lost records that the driver has found the underlying link of an epoch useless, and why. It does
// nothing if that link is not in use any more.
func (l *Link) Lost(epoch uint64, why error) {
	l.lock()
	defer l.unlock()
	if l.lower != nil && epoch == l.epoch {
		l.lose(why)
	}
}

// Fail gives the Link up: there will be no further underlying link. The user still gets the
// bytes that have come, and then an error that wraps link.ErrBroken and why. If the Link is
// done, failed or closed already, Fail only closes its underlying link.
func (l *Link) Fail(why error) {
	l.lock()
	defer l.unlock()
	l.fail(why)
}

// Pump makes the progress that does not need the user: it receives as far as the window allows and
// sends what is pending. The driver calls it when an event of Interest has happened on the
// underlying link; Send and Recv do the same by themselves. It reports whether anything was
// received; if so, there may be more.
func (l *Link) Pump() (received bool) {
	l.lock()
	defer l.unlock()
	if l.closed {
		return false
	}
	received = l.drain()
	l.flush()
	return received
}

// Interest returns the events to wait for on the underlying link, 0 if there is none.
func (l *Link) Interest() link.Interest {
	l.lock()
	defer l.unlock()
	return l.wants()
}

func (l *state) wants() (want link.Interest) {
	if l.lower == nil {
		return 0
	}
	want = link.Readable
	if l.tx.busy() {
		want |= link.Writable
	}
	return want
}

func (l *state) install(lower link.Link) {
	if l.lower != nil {
		l.lower.Close()
	}
	l.lower, l.plain = lower, nil
	l.cause = nil
	l.joining = false
	l.rx, l.tx = reader{}, writer{}
}

// lose closes the underlying link; another one may replace it.
func (l *state) lose(why error) {
	why = cmp.Or(why, link.ErrBroken)
	l.install(nil)
	l.cause = l.wrap(why)
}

// fail gives the Link up, or closes only its underlying link if it needs no other one.
func (l *state) fail(why error) {
	if l.closed || l.err != nil {
		return
	}
	why = cmp.Or(why, link.ErrBroken)
	if !errors.Is(why, link.ErrBroken) {
		why = fmt.Errorf("%w: %w", link.ErrBroken, why)
	}
	if !l.done() {
		l.err = l.wrap(why)
	}
	l.leave()
}

func (l *state) wrap(why error) error {
	return fmt.Errorf("resume: session %v, epoch %d: %w", l.config.Session, l.epoch, why)
}

// leave closes the underlying link. Before that it sends GONE, if that is possible at once.
func (l *state) leave() {
	if l.lower == nil {
		return
	}
	if !l.tx.busy() && l.tx.err == nil {
		l.tx.begin(header{kind: kindGone, flags: flagSum, ack: l.in.ack()})
		l.push()
	}
	l.install(nil)
}

// check compares a HELLO with what this side knows (docs/decisions/0015-link-resume.md).
func (l *state) check(h *Hello) error {
	switch o := &l.out; {
	case l.theirs != 0 && h.Window != l.theirs:
		return fmt.Errorf("HELLO: %w: the window was %d bytes and is %d", ErrFrame, l.theirs, h.Window)
	case h.Received > o.reached:
		return fmt.Errorf("HELLO: %w: of position %d, but only %d was sent", ErrAck, h.Received, o.reached)
	case h.Ack < o.acked || h.Ack > h.Received:
		return fmt.Errorf("HELLO: %w: of position %d, not between %d, known before, and %d, received", ErrAck, h.Ack, o.acked, h.Received)
	case h.Oldest > l.in.received():
		return fmt.Errorf("HELLO: %w: the peer cannot replay from before position %d, needed is %d", ErrSequence, h.Oldest, l.in.received())
	}
	return nil
}

// adopt continues both streams at the positions of a HELLO that was checked.
func (l *state) adopt(h *Hello) {
	l.joining = false
	l.theirs = h.Window
	l.setWindow(min(uint64(l.config.Window), uint64(h.Window)))
	l.summed = l.config.Checksum || h.Checksum
	l.out.acknowledge(h.Ack)
	l.out.next = h.Received
	l.setPlain()
}
