package chaos

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// ErrCut is wrapped by the error of a link that was broken on purpose.
var ErrCut = errors.New("chaos has cut the link")

// linger is how much longer than planned a closed connection may take for its last bytes.
const linger = 10 * time.Second

// disturbed is a connection whose written bytes are disturbed. They wait in a queue until
// they are due.
type disturbed struct {
	transports.Conn
	f   Faults
	may func() bool // reports whether the link may be cut, which then counts as done

	mu       sync.Mutex
	change   sync.Cond // on mu: signals changes of the fields below
	plan     *plan
	queue    []parcel
	queued   int           // bytes in queue
	free     time.Time     // when the simulated line has sent what is in queue
	last     time.Time     // when the last parcel is due
	deadline time.Time     // of Write
	ended    bool          // CloseWrite was called
	closed   bool          // Close was called
	err      error         // why the connection has ended
	broken   chan struct{} // closed when err is set
	gone     chan struct{} // closed when the connection is closed

	alarm, age *time.Timer
}

// parcel is bytes, or another action, that is due at a time.
type parcel struct {
	at   time.Time
	data []byte
	act  func() error
}

// disturb disturbs the bytes that are written to c, which it owns. may is asked before the
// link is cut.
func disturb(c transports.Conn, f Faults, number uint64, may func() bool) *disturbed {
	d := &disturbed{Conn: c, f: f, may: may, plan: newPlan(f, number), broken: make(chan struct{}), gone: make(chan struct{})}
	d.change.L = &d.mu
	if f.CutAfter > 0 {
		d.age = time.AfterFunc(f.CutAfter, func() { d.cut(fmt.Sprintf("when it was %v old", f.CutAfter)) })
	}
	go d.run()
	return d
}

// Write puts p into the queue, and waits while the queue is full.
func (d *disturbed) Write(p []byte) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n < len(p) {
		if err := d.room(); err != nil {
			return n, err
		}
		s := d.plan.next(min(len(p)-n, d.f.Buffer-d.queued))
		if s.cut {
			at := d.plan.offset
			d.plan.cutAt = never // not allowed: the link is never cut
			d.put(parcel{at: d.last, act: func() error { d.cut(fmt.Sprintf("after %d bytes", at)); return nil }})
			continue
		}
		d.send(p[n:n+s.n], s)
		n += s.n
	}
	return n, nil
}

func (d *disturbed) room() error {
	for {
		switch {
		case d.err != nil:
			return d.err
		case d.closed || d.ended:
			return net.ErrClosed
		case d.queued < d.f.Buffer:
			return nil
		case !d.deadline.IsZero() && !time.Now().Before(d.deadline):
			return os.ErrDeadlineExceeded
		}
		d.change.Wait()
	}
}

// send schedules bytes: they leave one after the other, at the bandwidth of the line, and
// take the delay and their jitter without overtaking.
func (d *disturbed) send(b []byte, s step) {
	if now := time.Now(); d.free.Before(now) {
		d.free = now
	}
	d.free = d.free.Add(s.stall)
	if d.f.Bandwidth > 0 {
		d.free = d.free.Add(time.Duration(float64(len(b)) / float64(d.f.Bandwidth) * float64(time.Second)))
	}
	if at := d.free.Add(d.f.Delay + s.jitter); at.After(d.last) {
		d.last = at
	}
	d.queued += len(b)
	d.put(parcel{at: d.last, data: append([]byte(nil), b...)})
}

func (d *disturbed) put(p parcel) {
	d.queue = append(d.queue, p)
	d.change.Broadcast()
}

func (d *disturbed) run() {
	for {
		p, ok := d.first()
		if !ok {
			return
		}
		if wait := time.Until(p.at); wait > 0 {
			select {
			case <-time.After(wait):
			case <-d.broken:
				return
			}
		}
		err := d.leave(p)
		d.mu.Lock()
		d.queue = d.queue[1:]
		d.queued -= len(p.data)
		d.change.Broadcast()
		d.mu.Unlock()
		if err != nil {
			d.fail(err)
			return
		}
	}
}

// first waits for the first parcel. ok is false if none will come.
func (d *disturbed) first() (p parcel, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) == 0 && d.err == nil {
		d.change.Wait()
	}
	if d.err != nil {
		return parcel{}, false
	}
	return d.queue[0], true
}

func (d *disturbed) leave(p parcel) error {
	if p.act != nil {
		return p.act()
	}
	_, err := d.Conn.Write(p.data)
	return err
}

// Read reads what the other side has sent.
func (d *disturbed) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // net.Conn reports it bare
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.err != nil && errors.Is(d.err, ErrCut):
			return n, d.err
		case d.closed:
			return n, net.ErrClosed
		}
	}
	return n, err
}

// CloseWrite queues the end after the bytes.
func (d *disturbed) CloseWrite() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return d.err
	case d.closed:
		return net.ErrClosed
	case d.ended:
		return nil
	}
	d.ended = true
	d.put(parcel{at: d.last, act: d.Conn.CloseWrite})
	return nil
}

// Close ends the connection when all that was written has been sent.
func (d *disturbed) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.err != nil {
		return nil
	}
	d.closed = true
	now := time.Now()
	_ = d.Conn.SetReadDeadline(now)
	until := now
	if d.last.After(now) {
		until = d.last
	}
	_ = d.Conn.SetWriteDeadline(until.Add(linger))
	d.put(parcel{at: d.last, act: func() error { return net.ErrClosed }}) // run closes the connection
	return nil
}

// Break ends the connection at once; the peer sees that bytes were lost.
func (d *disturbed) Break() { d.fail(net.ErrClosed) }

func (d *disturbed) cut(when string) {
	d.mu.Lock()
	gone := d.err != nil || d.closed
	d.mu.Unlock()
	if !gone && d.may() {
		d.fail(fmt.Errorf("%w %s", ErrCut, when))
	}
}

func (d *disturbed) fail(err error) {
	d.mu.Lock()
	if d.err != nil {
		d.mu.Unlock()
		return
	}
	d.err = err
	close(d.broken)
	for _, t := range []*time.Timer{d.alarm, d.age} {
		if t != nil {
			t.Stop()
		}
	}
	whole := d.closed && len(d.queue) == 0
	d.change.Broadcast()
	d.mu.Unlock()
	if whole {
		_ = d.Conn.Close()
	} else {
		conn.Break(d.Conn)
	}
	close(d.gone)
}

func (d *disturbed) SetDeadline(t time.Time) error {
	return errors.Join(d.SetReadDeadline(t), d.SetWriteDeadline(t))
}

// SetWriteDeadline bounds the wait for room in the queue.
func (d *disturbed) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.alarm != nil {
		d.alarm.Stop()
	}
	if d.deadline = t; !t.IsZero() {
		d.alarm = time.AfterFunc(time.Until(t), func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.change.Broadcast()
		})
	}
	return nil
}
