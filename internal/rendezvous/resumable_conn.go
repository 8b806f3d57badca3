package rendezvous

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	// window is how many bytes each side keeps until the peer has received them, and
	// receives before the user reads them.
	window = 256 << 10
	// joinLimit is how long the other end may take to send its HELLO.
	joinLimit = 5 * time.Second
	// goneAfter is how long to wait for a peer that has probably ended: its kernel closed
	// the connection in order, or refuses new ones.
	goneAfter = 10 * time.Second
)

type forGood struct{ why error }

func (f *forGood) Error() string { return f.why.Error() }
func (f *forGood) Unwrap() error { return f.why }

func notAgain(after time.Duration, why error) error {
	return &forGood{fmt.Errorf("it was not made again within %v; %w", after, why)}
}

// resumableConn is a net.Conn that outlives the connections below it, by core/resume. It does not
// use internal/resumable, which never blocks, whereas TLS and the server read and write with
// goroutines that block.
type resumableConn struct {
	mu   sync.Mutex
	more sync.Cond // signalled when something has changed
	wg   sync.WaitGroup

	id       resume.ResumableID
	machine  *resume.Link
	detached bool          // the connection below is lost, and there is no other one yet
	broken   time.Time     // when the connection was lost, if apart
	kept     time.Duration // maximum time without a connection
	local    net.Addr
	remote   net.Addr
	read     deadline
	write    deadline
	joining  *time.Timer

	// lost is called when the connection below is lost, found when there is one again, renew when
	// another one is wanted, and stop by Close. They are called with the lock, so they must not block.
	lost  func(epoch uint64, why error)
	found func()
	renew func() // nil: this end does not dial
	stop  func()
}

func newResumableConn(id resume.ResumableID, dialler bool, nc net.Conn) *resumableConn {
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

// dial continues over a connection that this end has made, and owns it.
func (l *resumableConn) dial(nc net.Conn) error {
	return l.goOn(nc, l.machine.Dial)
}

// arrive continues over a connection that the other end has made, and of which h has been
// read. It owns nc unless it returns an error.
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
	l.local, l.remote, l.detached = nc.LocalAddr(), nc.RemoteAddr(), false
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

// orphan says that the first connection was lost before it was used. Another one may have arrived
// meanwhile.
func (l *resumableConn) orphan(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.machine.Status(); s.State == resume.Detached && s.Epoch == 0 && !l.detached {
		l.detached, l.broken = true, time.Now()
		l.lost(0, why)
	}
}

// slow gives up a connection on which the other end has not answered in time.
func (l *resumableConn) slow(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.machine.Status(); s.State == resume.Joining && s.Epoch == epoch {
		l.machine.Lost(epoch, fmt.Errorf("no answer for %v: %w", joinLimit, os.ErrDeadlineExceeded))
		l.pump()
	}
}

// pump moves what can be moved between user and connection, and handles the result. The caller has
// the lock.
func (l *resumableConn) pump() {
	for l.machine.Pump() {
	}
	if s := l.machine.Status(); s.State == resume.Detached && s.Epoch > 0 && !l.detached {
		l.detached, l.broken = true, time.Now()
		l.lost(s.Epoch, s.Err)
	}
	l.more.Broadcast()
}

// since returns when the connection below was lost; zero: there is one.
func (l *resumableConn) since() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.detached {
		return time.Time{}
	}
	return l.broken
}

// fail gives the session up, unless a later connection than that of epoch exists.
func (l *resumableConn) fail(epoch uint64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.machine.Status(); s.State == resume.Detached && s.Epoch == epoch {
		l.machine.Fail(why)
		l.pump()
	}
}

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

// Write implements net.Conn. It returns when the bytes are kept for replay.
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

// CloseWrite ends this side's stream. If there is no connection below, the other side learns of the
// end by the next one.
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
	_ = l.machine.Close() // nothing more is sent, whether or not the other end has received everything
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

// LocalAddr returns the local address of the last connection below.
func (l *resumableConn) LocalAddr() net.Addr { return l.addr(&l.local) }

// RemoteAddr returns the remote address of the last connection below.
func (l *resumableConn) RemoteAddr() net.Addr { return l.addr(&l.remote) }

func (l *resumableConn) addr(a *net.Addr) net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *a
}

// SetDeadline implements net.Conn.
func (l *resumableConn) SetDeadline(t time.Time) error {
	return errors.Join(l.SetReadDeadline(t), l.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (l *resumableConn) SetReadDeadline(t time.Time) error { return l.read.set(t) }

// SetWriteDeadline implements net.Conn.
func (l *resumableConn) SetWriteDeadline(t time.Time) error { return l.write.set(t) }

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

// stop stops the timer. The caller has the lock.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

var _ net.Conn = (*resumableConn)(nil)
