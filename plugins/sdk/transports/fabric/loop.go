package fabric

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/polling"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// linger is how long a pump whose proc has gone waits for the peer to take something.
const linger = 10 * time.Second

// lookEvery is how many looks that find nothing come before the socket is read to find out whether
// the proc is alive.
const lookEvery = 1 << 10

// NewPump makes the plugin's side of data plane "rdma" for a connection, which it owns, even after
// an error. fds are the descriptors of the proc's side, which the caller owns: of the control
// region, the socket and the region channel.
func NewPump(c Conn, cache *Cache) (p *conn.Pump, fds [3]int, err error) {
	port, fds, err := rdma.NewPort(shapeFor(c.Limits()))
	if err != nil {
		discard(c)
		return nil, fds, err
	}
	l := &loop{port: port, conn: c}
	if l.pump, err = newPump(port, c, cache); err == nil {
		err = l.openSet()
	}
	if err != nil {
		discard(c)
		port.Close()
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, fds, err
	}
	return conn.NewLoop(loopNear{l}, loopFar{l}, l.run), fds, nil
}

// discard ends a connection that nobody uses.
func discard(c Conn) {
	c.Break()
	_ = c.Close() // it is broken
}

// loop runs a pump: it polls as long as something comes now and then, and then sleeps in Go's
// network poller.
type loop struct {
	pump *pump
	port *rdma.Port
	conn Conn

	set   *os.File // an epoll set, with both descriptors while the loop sleeps
	raw   syscall.RawConn
	fd    int // of set
	slept bool
	err   error
	event unix.EpollEvent

	weight int // cost of a look that finds nothing, in polls of a proc
	looks  uint

	stopped atomic.Bool // run has to end
	mu      sync.Mutex  // of what follows
	running bool        // run uses both sides
	near    ending
	far     ending
}

// ending says whether a side has to be closed, and whether that was done.
type ending struct{ wanted, done bool }

// due reports whether the side is to be closed now.
func (e *ending) due(running bool) bool {
	if !e.wanted || e.done || running {
		return false
	}
	e.done = true
	return true
}

// closeSides closes those sides for which that is wanted, unless run uses them.
func (l *loop) closeSides() (err error) {
	if l.far.due(l.running) {
		err = l.conn.Close()
	}
	if l.near.due(l.running) {
		l.port.Close()
	}
	return err
}

func (l *loop) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = true
}

// end gives up what run has used. The proc takes the end of its socket for the end of all reads, so
// that comes last.
func (l *loop) end(err error) {
	if err != nil {
		l.conn.Break() // so that no read is under way when its memory is unmapped
	}
	l.pump.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
	_ = l.closeSides() // the cause of it is known
}

func (l *loop) openSet() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		return fmt.Errorf("a set of descriptors to wait for: %w", err)
	}
	l.fd, l.set = fd, os.NewFile(uintptr(fd), "fabric")
	if l.raw, err = l.set.SyscallConn(); err == nil {
		err = l.set.SetReadDeadline(time.Time{}) // fails if package os could not put the set into the poller
	}
	if err != nil {
		return errors.Join(fmt.Errorf("wait for a set of descriptors: %w", err), l.set.Close())
	}
	return nil
}

const (
	onePoll    = 100 * time.Nanosecond // approximate time of a poll of a proc
	weighEvery = 64
)

// look is one step. Now and then it measures how long one takes that finds nothing: a look at a
// vendor's queue takes longer than the polls by which package polling counts, and the proc that waits
// for the core would wait as long.
func (l *loop) look() (moved bool, err error) {
	if l.looks++; l.looks%weighEvery != 0 {
		return l.pump.step()
	}
	before := time.Now()
	if moved, err = l.pump.step(); !moved { // one that was interrupted changes the weight little
		l.weight = max(1, min(int(time.Since(before)/onePoll), 2*l.weight))
	}
	return moved, err
}

// run passes messages on until the proc has gone and has nothing left to be passed on.
func (l *loop) run() (err error) {
	l.begin()
	defer func() { l.end(err) }()
	spin, err := polling.NewSpinner("auto")
	if err != nil {
		return err
	}
	var patience time.Time // when the peer has had enough time
	l.weight = 1
	for i, empty := 0, 0; ; i += l.weight {
		if l.stopped.Load() {
			return errStopped
		}
		var moved bool
		moved, err = l.look()
		if err != nil {
			return err
		}
		if moved {
			i, empty, patience = -l.weight, 0, time.Time{}
			if spin.Yields() && spin.PollsBeforeYield() == 0 {
				polling.Yield() // the proc may share the core
			}
			continue
		}
		if i == 0 {
			spin.Begin()
		}
		if empty++; empty%lookEvery == 0 {
			if err = l.port.Look(); err != nil {
				return err
			}
		}
		if !spin.Over(i) && !l.port.Left() {
			continue
		}
		i, empty = -l.weight, 0
		if done, err := l.pump.finished(); done || err != nil {
			return err
		}
		if l.port.Left() {
			if patience.IsZero() {
				patience = time.Now().Add(linger)
			}
			_ = l.set.SetReadDeadline(patience) // fails if it is closed, which sleep finds
		}
		if err := l.sleep(); err != nil {
			return err
		}
	}
}

func (l *loop) sleep() error {
	l.slept, l.err = false, nil
	err := l.raw.Read(l.fallAsleep)
	_ = l.raw.Control(l.disarm) // fails if the set is closed
	return errors.Join(l.err, err)
}

// fallAsleep is called by the poller, first after it has forgotten earlier events, so that none is
// missed, and again after each event. It reports whether the sleep is over.
func (l *loop) fallAsleep(uintptr) bool {
	if l.slept {
		return true
	}
	var ready bool
	ready, l.err = l.arm()
	l.slept = !ready && l.err == nil
	return !l.slept
}

func (l *loop) arm() (ready bool, err error) {
	l.event.Events = unix.EPOLLIN
	if !l.port.Left() { // whose socket's end would end each sleep
		err = unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, l.port.Handle(), &l.event)
	}
	if err == nil && !l.pump.connEnded {
		err = unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, l.conn.Handle(), &l.event)
	}
	if err != nil {
		return false, fmt.Errorf("wait for a link: %w", err)
	}
	ready, err = l.port.Arm()
	return ready || !l.pump.connEnded && l.conn.Arm(), err
}

// disarm takes both out of the set. A call fails if its descriptor is not in there.
func (l *loop) disarm(uintptr) {
	_ = unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, l.port.Handle(), nil)
	_ = unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, l.conn.Handle(), nil)
}

var errStopped = errors.New("the link was broken by this process")

type loopNear struct{ l *loop }

func (n loopNear) Alive() bool { return n.l.port.Alive() }

// Break closes the proc's side, or has run do it when nothing is read any more.
func (n loopNear) Break() {
	n.l.stopped.Store(true)
	_ = n.l.set.Close() // wakes run
	n.l.mu.Lock()
	defer n.l.mu.Unlock()
	n.l.near.wanted = true
	_ = n.l.closeSides() // of this side there is no error
}

func (n loopNear) Close() error {
	n.Break()
	return nil
}

type loopFar struct{ l *loop }

func (loopFar) CloseWrite() error { return nil } // the end is a message

// Break ends the connection at once.
func (f loopFar) Break() { f.l.conn.Break() }

// Close closes the connection, or has run do it when it calls nothing else of it any more.
func (f loopFar) Close() error {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	f.l.far.wanted = true
	return f.l.closeSides()
}
