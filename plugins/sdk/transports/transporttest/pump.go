package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var errStuck = errors.New("nothing moved until the suite's patience ended")

// slice is how long one poll(2) sleeps, in milliseconds. Close does not wake
// sleepers, so they look up now and then.
const slice = 50

// waiter bounds the waits of one transfer; each success renews the deadline.
type waiter struct {
	patience time.Duration
	deadline time.Time
}

func (e *env) waiter() *waiter {
	w := &waiter{patience: e.h.Patience}
	w.moved()
	return w
}

func (w *waiter) moved() { w.deadline = time.Now().Add(w.patience) }

// wait sleeps until l may have become want, as its owner would: Arm, then poll.
func (w *waiter) wait(l link.Link, want link.Interest) error {
	if time.Now().After(w.deadline) {
		return errStuck
	}
	if !l.Arm(want) {
		ready(l, want, slice)
	}
	return nil
}

// ready asks poll(2) about l's handle; a link without one is always worth a try.
func ready(l link.Link, want link.Interest, milliseconds int) bool {
	fd := l.Handle()
	if fd == link.NoHandle {
		runtime.Gosched()
		return true
	}
	p := []unix.PollFd{{Fd: int32(fd)}}
	if want&link.Readable != 0 {
		p[0].Events |= unix.POLLIN
	}
	if want&link.Writable != 0 {
		p[0].Events |= unix.POLLOUT
	}
	n, err := unix.Poll(p, milliseconds)
	for errors.Is(err, unix.EINTR) { // the runtime's signals say nothing about the link
		n, err = unix.Poll(p, milliseconds)
	}
	return n > 0
}

// send sends all of batch, which it uses up.
func (e *env) send(l link.Link, batch ...[]byte) error {
	return e.move("send", l, l.Send, link.Writable, batch)
}

// recv fills all of batch, which it uses up.
func (e *env) recv(l link.Link, batch ...[]byte) error {
	return e.move("receive", l, l.Recv, link.Readable, batch)
}

func (e *env) move(what string, l link.Link, call func([][]byte) (int, error), want link.Interest, batch [][]byte) error {
	w := e.waiter()
	for total := link.Len(batch); total > 0; {
		n, err := call(batch)
		if err != nil {
			return fmt.Errorf("%s, %d bytes before the end: %w", what, total, err)
		}
		if n < 0 || n > total {
			return fmt.Errorf("%s says that it has moved %d of %d bytes", what, n, total)
		}
		if n > 0 {
			w.moved()
			total -= n
			batch = link.Advance(batch, n)
		} else if err := w.wait(l, want); err != nil {
			return fmt.Errorf("%s, %d bytes before the end: %w", what, total, err)
		}
	}
	return nil
}

// end receives until the stream ends and returns the error that says so; bytes
// before it are a failure.
func (e *env) end(l link.Link) error {
	w := e.waiter()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.Recv([][]byte{buf})
		switch {
		case err != nil:
			return err
		case n > 0:
			return fmt.Errorf("%d bytes came where none were sent: %x", n, buf[:min(n, 16)])
		default:
			if err := w.wait(l, link.Readable); err != nil {
				return err
			}
		}
	}
}

// ended reports whether err is io.EOF itself: callers of Recv may compare it, like
// those of an io.Reader.
func ended(err error) bool {
	return err == io.EOF //nolint:errorlint // a wrapped one would be a fault
}

// eof expects the end of the stream now, and again.
func (e *env) eof(l link.Link) error {
	for range 3 {
		if err := e.end(l); !ended(err) {
			return fmt.Errorf("io.EOF was to come, not: %w", err)
		}
	}
	return nil
}

func (e *env) greet(from, to link.Link, text string) error {
	if err := e.send(from, []byte(text)); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if err := e.recv(to, got); err != nil {
		return err
	}
	if !bytes.Equal(got, []byte(text)) {
		return fmt.Errorf("%q was sent, %q came", text, got)
	}
	return nil
}
