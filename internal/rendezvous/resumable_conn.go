package rendezvous

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
)

const (
	// window is how many bytes each side keeps for a peer that has not got them, and
	// takes for a user that has not.
	window = 256 << 10
	// joinLimit is how long the other end may take to say from where it goes on.
	joinLimit = 5 * time.Second
	// goneAfter is how long one waits for a peer that seems to have ended: its
	// kernel closed the connection in order, or refuses new ones.
	goneAfter = 10 * time.Second
)

// forGood is why a session was given up.
type forGood struct{ why error }

func (f *forGood) Error() string { return f.why.Error() }
func (f *forGood) Unwrap() error { return f.why }

// notAgain says that a session was given up after so long.
func notAgain(after time.Duration, why error) error {
	return &forGood{fmt.Errorf("it was not made again within %v; %w", after, why)}
}

// resumableConn is a net.Conn that outlives the connections below it: core/resume says how.
type resumableConn struct {
	mu   sync.Mutex
	more sync.Cond // something has changed
	wg   sync.WaitGroup

	id      resume.Session
	machine *resume.Link
	apart   bool          // was told to lost
	kept    time.Duration // how long it is without a connection at most
	local   net.Addr
	remote  net.Addr
	read    deadline
	write   deadline
	joining *time.Timer

	// lost is called when there is no connection below any more, found when there is one
	// again, and stop by Close: with the lock, so none may block.
	lost  func(epoch uint64, why error)
	found func()
	stop  func()
}

func newResumableConn(id resume.Session, dialler bool, nc net.Conn) *resumableConn {
	l := &resumableConn{
		id:      id,
		machine: resume.New(resume.Config{Session: id, Dialler: dialler, Window: window, Frame: window / 4}),
		local:   nc.LocalAddr(), remote: nc.RemoteAddr(),
		lost: func(uint64, error) {}, found: func() {}, stop: func() {},
	}
	l.more.L = &l.mu
	l.read.l, l.write.l = l, l
	return l
}

// dial goes on over a connection that this end has made, and owns it.
func (l *resumableConn) dial(nc net.Conn) error {
	return l.goOn(nc, l.machine.Dial)
}

// arrive goes on over a connection that the other end has made, of which h was read.
// It owns nc if there is no error.
func (l *resumableConn) arrive(nc net.Conn, h resume.Hello) error {
	return l.goOn(nc, func(x link.Link) error { return l.machine.Accept(x, h) })
}

func (l *resumableConn) goOn(nc net.Conn, install func(link.Link) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &carrier{owner: l, nc: nc}
	if err := install(c); err != nil {
		l.pump()
		return err
	}
	l.local, l.remote, l.apart = nc.LocalAddr(), nc.RemoteAddr(), false
	c.start()
	epoch := l.machine.Status().Epoch
	if l.joining != nil {
		l.joining.Stop()
	}
	l.joining = time.AfterFunc(joinLimit, func() { l.slow(epoch) })
	l.found()
	l.pump()
	return nil
}

// orphan says that the first connection was lost before it was of use. Another may have
// come by then.
func (l *resumableConn) orphan(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.machine.Status(); s.State == resume.Apart && s.Epoch == 0 && !l.apart {
		l.apart = true
		l.lost(0, why)
	}
}

// slow lets go of a connection on which the other end has not answered.
func (l *resumableConn) slow(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.machine.Status(); s.State == resume.Joining && s.Epoch == epoch {
		l.machine.Lost(epoch, fmt.Errorf("no answer for %v: %w", joinLimit, os.ErrDeadlineExceeded))
		l.pump()
	}
}

// pump moves what can be moved, and sees what came of it. The caller has the lock.
func (l *resumableConn) pump() {
	for l.machine.Pump() {
	}
	if s := l.machine.Status(); s.State == resume.Apart && s.Epoch > 0 && !l.apart {
		l.apart = true
		l.lost(s.Epoch, s.Err)
	}
	l.more.Broadcast()
}

// fail gives up, unless there is a connection of a later epoch.
func (l *resumableConn) fail(epoch uint64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.machine.Status(); s.State == resume.Apart && s.Epoch == epoch {
		l.machine.Fail(why)
		l.pump()
	}
}

// Read is that of net.Conn.
func (l *resumableConn) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		n, err := l.machine.Recv([][]byte{b})
		l.pump()
		switch {
		case n > 0 || err != nil || len(b) == 0:
			return n, err
		case l.read.over():
			return 0, os.ErrDeadlineExceeded
		}
		l.more.Wait()
	}
}

// Write is that of net.Conn. It returns when the bytes are kept for whatever connection
// there will be.
func (l *resumableConn) Write(b []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(b) > 0 {
		k, err := l.machine.Send([][]byte{b})
		l.pump()
		n, b = n+k, b[k:]
		switch {
		case err != nil:
			return n, err
		case k > 0:
			continue
		case l.write.over():
			return n, os.ErrDeadlineExceeded
		}
		l.more.Wait()
	}
	return n, nil
}

// CloseWrite ends this side's bytes. The other side learns of it on whatever connection
// there will be.
func (l *resumableConn) CloseWrite() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.machine.CloseSend()
	l.pump()
	return err
}

// Close ends the connection, and waits for its goroutines.
func (l *resumableConn) Close() error {
	l.mu.Lock()
	_ = l.machine.Close() // it has no more to say, whether the other end heard it or not
	l.stop()
	for _, d := range []*deadline{&l.read, &l.write} {
		d.stop()
	}
	if l.joining != nil {
		l.joining.Stop()
	}
	l.more.Broadcast()
	l.mu.Unlock()
	l.wg.Wait()
	return nil
}

// LocalAddr is that of the last connection below.
func (l *resumableConn) LocalAddr() net.Addr { return l.addr(&l.local) }

// RemoteAddr is that of the last connection below.
func (l *resumableConn) RemoteAddr() net.Addr { return l.addr(&l.remote) }

func (l *resumableConn) addr(a *net.Addr) net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *a
}

// SetDeadline is that of net.Conn.
func (l *resumableConn) SetDeadline(t time.Time) error {
	return errors.Join(l.SetReadDeadline(t), l.SetWriteDeadline(t))
}

// SetReadDeadline is that of net.Conn.
func (l *resumableConn) SetReadDeadline(t time.Time) error { return l.read.set(t) }

// SetWriteDeadline is that of net.Conn.
func (l *resumableConn) SetWriteDeadline(t time.Time) error { return l.write.set(t) }

// deadline wakes who waits too long.
type deadline struct {
	l     *resumableConn
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) set(t time.Time) error {
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	d.stop()
	d.at = t
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			d.l.mu.Lock()
			defer d.l.mu.Unlock()
			d.l.more.Broadcast()
		})
	}
	d.l.more.Broadcast()
	return nil
}

// stop needs the lock.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

var _ net.Conn = (*resumableConn)(nil)
