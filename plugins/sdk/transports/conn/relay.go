package conn

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
)

// Direct is a connection that a relay reads and writes without waiting, such as a socket.Link.
// SetLinger and Close behave as for a TCP connection of package net. A transports.Conn that is a
// Direct, too, gets a relay for data plane "ring", and so does New inside a process. Recv checks
// what the hardware, or a library, has completed: it is called from one goroutine, again and again
// as long as there is traffic. Between an Arm that returns false and the next Send or Recv the
// relay does not look at the connection: the connection must watch itself then, and make Handle
// readable.
type Direct interface {
	link.Link
	SetLinger(seconds int) error
}

// NewRelay makes a ring with data of size bytes in each direction, a power of two, and a pump
// between its side 0 and a connection, which it owns, even after an error. The user makes the link
// of side 1 from the two descriptors, the region's and the socket's, which the caller owns.
//
// As long as something comes now and then it polls the ring and the connection, by the rules of
// package polling, so that neither the user nor the peer's side has to wake it. One goroutine does
// so for all relays of the process, or for some of them where there are many processors. Then the
// relay sleeps in Go's network poller.
func NewRelay(size int, far Direct) (p *Pump, region, sock int, err error) {
	mine, region, pair, err := newRing(size)
	if err != nil {
		breakDirect(far)
		return nil, -1, -1, err
	}
	r := &relay{far: far, rest: make(chan struct{}, 1)}
	r.waiting, r.woken = r.fallAsleep, r.disarm
	if r.l, err = ring.New(mine, pair[0], 0); err == nil {
		if r.hubs, err = hubs(); err == nil {
			err = r.openSet()
		}
		if err != nil {
			r.l.Break()
		}
	}
	if err != nil {
		breakDirect(far)
		return nil, -1, -1, errors.Join(err, unix.Close(region), unix.Close(pair[1]))
	}
	r.Pump = &Pump{near: relayedRing{r.l, r.set}, far: directFar{far}}
	r.pass = r.run
	return r.Pump, region, pair[1], nil
}

// most is how many bytes a look moves at once in one direction. With 64 KiB streams of 64 KiB were
// a fifth slower.
const most = 256 << 10

type relay struct {
	*Pump
	l     *ring.Link
	far   Direct
	hubs  []*hub
	rest  chan struct{} // has an element when a hub has polled for the last time
	looks int           // consecutive looks that found nothing

	// Where the relay sleeps: an epoll set of the two descriptors, which itself is in Go's network
	// poller. They are in the set only while the relay sleeps, so that what comes while it polls
	// wakes no thread.
	set *os.File
	raw syscall.RawConn
	fd  int // of set

	waiting func(uintptr) bool // r.fallAsleep
	woken   func(uintptr)      // r.disarm
	slept   bool
	failed  error // of the last look, or of fallAsleep
	event   unix.EpollEvent

	// State of both directions, used by the goroutine that polls.
	ended   bool // the user has ended its stream, and all was passed on
	gone    bool // the user has closed the link, or died
	deaf    bool // nothing is read any more: the peer has ended its stream, or the user is gone
	outFull bool // the connection takes no more
	inFull  bool // the ring takes no more
	batch   [1][]byte
}

func (r *relay) openSet() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("a set of descriptors to wait for: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // package os puts only non-blocking descriptors into its poller
		return errors.Join(fmt.Errorf("a set of descriptors to wait for: %w", err), unix.Close(fd))
	}
	r.fd, r.set = fd, os.NewFile(uintptr(fd), "relay")
	err = r.set.SetReadDeadline(time.Time{}) // fails if package os could not put the set into the poller
	if err == nil {
		r.raw, err = r.set.SyscallConn()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("wait for a set of descriptors: %w", err), r.set.Close())
	}
	return nil
}

func (r *relay) run() {
	resetOnExit(r.Pump.far, true)
	for {
		enter(r.hubs, r)
		<-r.rest
		if r.failed == nil && !r.over() {
			r.failed = r.sleep()
		}
		if r.failed != nil {
			r.fail(r.failed)
			return
		}
		if r.over() {
			r.left.Store(true)
			return
		}
	}
}

func (r *relay) over() bool { return r.ended && r.gone }

func (r *relay) step() (moved bool, err error) {
	if !r.ended {
		if moved, err = r.outward(); err != nil {
			return moved, fmt.Errorf("to the connection: %w", err)
		}
	}
	if !r.deaf {
		n, err := r.inward()
		if err != nil {
			return moved, fmt.Errorf("from the connection: %w", err)
		}
		moved = moved || n
	}
	return moved, nil
}

func (r *relay) outward() (moved bool, err error) {
	first, _, err := r.l.Bytes()
	switch {
	case err == io.EOF: //nolint:errorlint // a link reports it bare
		r.ended, r.outFull = true, false
		resetOnExit(r.Pump.far, false)
		if err := r.far.CloseSend(); err != nil && r.l.Alive() {
			return false, err
		}
		return true, nil
	case err != nil:
		return false, err
	case len(first) == 0:
		r.outFull = false
		return false, nil
	}
	r.batch[0] = first[:min(len(first), most)]
	n, err := r.far.Send(r.batch[:])
	if n > 0 {
		r.l.Discard(n)
		if r.patience != nil {
			r.patience.Reset(linger)
		}
	}
	r.outFull = n == 0
	return n > 0, err
}

func (r *relay) inward() (moved bool, err error) {
	room, _, err := r.l.Space()
	switch {
	case errors.Is(err, ring.ErrRegion):
		return false, err
	case err != nil:
		r.unheard(fmt.Errorf("%w: %w", ErrGone, err))
		return false, nil
	}
	if r.inFull = len(room) == 0; r.inFull {
		return false, nil
	}
	r.batch[0] = room[:min(len(room), most)]
	n, err := r.far.Recv(r.batch[:])
	if n > 0 {
		r.l.Fill(n)
	}
	switch {
	case err == io.EOF: //nolint:errorlint // a link reports it bare
		r.deaf = true
		if err := r.l.CloseSend(); err != nil && r.l.Alive() {
			return false, err
		}
		return true, nil
	case err != nil && !r.l.Alive():
		r.unheard(fmt.Errorf("%w: %w", ErrGone, err))
		return false, nil
	}
	return n > 0, err
}

// unheard ends the direction from the peer, as the user has closed the link. What the user has sent
// is still passed on, until the peer takes nothing for some time: it may not be reading.
func (r *relay) unheard(why error) {
	r.deaf, r.inFull = true, false
	if r.patience == nil {
		r.patience = time.AfterFunc(linger, func() { r.fail(why) })
	}
}

func (r *relay) sleep() error {
	if r.gone && r.inFull { // and no room will be made any more
		r.unheard(ErrGone)
	}
	r.slept, r.failed = false, nil
	err := r.raw.Read(r.waiting)
	_ = r.raw.Control(r.woken) // fails if the set is closed
	if err = cmp.Or(r.failed, err); err != nil {
		return err
	}
	r.gone = !r.l.Alive()
	return nil
}

// fallAsleep is called by the poller, first after it has forgotten earlier events, so that none is
// missed, and again after each event. It reports whether the sleep is over.
func (r *relay) fallAsleep(uintptr) bool {
	if r.slept {
		return true
	}
	var ready bool
	ready, r.failed = r.arm()
	r.slept = !ready && r.failed == nil
	return !r.slept
}

// arm puts into the set what is waited for, and reports whether that holds already.
func (r *relay) arm() (ready bool, err error) {
	var near, far link.Interest
	if !r.ended && !r.outFull {
		near |= link.Readable
	}
	if r.outFull {
		far |= link.Writable
	}
	switch {
	case r.inFull:
		near |= link.Writable
	case !r.deaf:
		far |= link.Readable
	}
	if !r.gone { // even if only the user's end is waited for; once that has come, it would end each sleep
		err = r.add(r.l, near)
	}
	if err == nil && far != 0 { // otherwise a connection that has failed would end each sleep
		err = r.add(r.far, far)
	}
	if err != nil {
		return false, err
	}
	return r.l.Arm(near) || far != 0 && r.far.Arm(far), nil
}

func (r *relay) add(l link.Link, want link.Interest) error {
	r.event.Events = 0
	if want&link.Readable != 0 {
		r.event.Events |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if want&link.Writable != 0 {
		r.event.Events |= unix.EPOLLOUT
	}
	if err := unix.EpollCtl(r.fd, unix.EPOLL_CTL_ADD, l.Handle(), &r.event); err != nil {
		return fmt.Errorf("wait for a link: %w", err)
	}
	return nil
}

// disarm takes everything out of the set. A call fails if its descriptor is not in there.
func (r *relay) disarm(uintptr) {
	_ = unix.EpollCtl(r.fd, unix.EPOLL_CTL_DEL, r.far.Handle(), nil)
	_ = unix.EpollCtl(r.fd, unix.EPOLL_CTL_DEL, r.l.Handle(), nil)
}

type relayedRing struct {
	*ring.Link
	set *os.File
}

func (s relayedRing) CloseWrite() error { return s.CloseSend() }

func (s relayedRing) Break() {
	s.Link.Break()
	_ = s.set.Close() // wakes the relay
}

func (s relayedRing) Close() error { return errors.Join(s.Link.Close(), s.set.Close()) }

type directFar struct{ Direct }

func (f directFar) CloseWrite() error { return f.CloseSend() }

// breakDirect ends a connection so that its peer sees a failure.
func breakDirect(far Direct) {
	_ = far.SetLinger(0) // fails only if it is closed
	_ = far.Close()
}
