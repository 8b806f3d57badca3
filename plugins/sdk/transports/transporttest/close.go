package transporttest

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var closeCases = []Case{
	{"T-CLOSE-01", "half-close", "after CloseSend the peer reads the last bytes and io.EOF, and can still send", halfClose},
	{"T-CLOSE-02", "send-after-end", "Send after CloseSend is ErrClosed; CloseSend again is nothing", sendAfterEnd},
	{"T-CLOSE-03", "after-close", "all calls after Close report ErrClosed, and Close again is nil", afterClose},
	{"T-CLOSE-04", "close-in-use", "Close by several goroutines, while others send and receive on both ends, ends them all", closeInUse},
	{"T-CLOSE-05", "peer-gone", "when the peer has closed, Recv and Send come to a final error", peerGone},
	{"T-CLOSE-06", "error-is-final", "an error stays the same", errorIsFinal},
}

// gone reports whether err is one that a link has whose peer has closed it.
func gone(err error) bool { return ended(err) || errors.Is(err, link.ErrBroken) }

func halfClose(e *env) {
	a, b := e.pair()
	e.halfClose(a, b)
	c, d := e.pair()
	e.halfClose(d, c)
}

func (e *env) halfClose(a, b link.Link) {
	e.Helper()
	c := cut{nil, 1, 1000}
	send, recv := e.stream(a, b, 100000, c, c)
	e.together(
		func() error { return errors.Join(send(), a.CloseSend()) },
		func() error { return errors.Join(recv(), e.eof(b)) },
	)
	e.together(both(e.stream(b, a, 100000, c, c))...)
	e.must(b.CloseSend())
	e.must(e.eof(a))
}

func sendAfterEnd(e *env) {
	a, b := e.pair()
	e.must(a.CloseSend())
	e.must(a.CloseSend())
	if n, err := a.Send([][]byte{{1}}); n != 0 || !errors.Is(err, link.ErrClosed) {
		e.Fatalf("Send after CloseSend gives %d, %v", n, err)
	}
	e.must(e.eof(b))
	e.must(e.greet(b, a, "still here"))
}

func afterClose(e *env) {
	a, b := e.pair()
	e.must(e.send(b, []byte("never read")))
	for range 3 {
		e.must(a.Close())
		if n, err := a.Send([][]byte{{1}}); n != 0 || !errors.Is(err, link.ErrClosed) {
			e.Fatalf("Send after Close gives %d, %v", n, err)
		}
		if n, err := a.Recv([][]byte{make([]byte, 1)}); n != 0 || !errors.Is(err, link.ErrClosed) {
			e.Fatalf("Recv after Close gives %d, %v", n, err)
		}
		if err := a.CloseSend(); !errors.Is(err, link.ErrClosed) {
			e.Fatalf("CloseSend after Close gives %v", err)
		}
		a.Arm(link.Readable | link.Writable)
		a.Limits()
	}
}

func closeInUse(e *env) {
	a, b := e.pair()
	passed := 0 // by b.Recv, in one goroutine
	started := make(chan struct{})
	ctx := e.context()
	pass := func(n int) {
		if passed < 1<<20 && passed+n >= 1<<20 {
			close(started)
		}
		passed += n
	}
	ownEnd := func(err error) bool { return errors.Is(err, link.ErrClosed) }
	workers := []func() error{
		e.until(a.Send, a, link.Writable, ownEnd, nil),
		e.until(a.Recv, a, link.Readable, ownEnd, nil),
		e.until(b.Send, b, link.Writable, func(err error) bool { return errors.Is(err, link.ErrBroken) }, nil),
		e.until(b.Recv, b, link.Readable, gone, pass),
	}
	for range 4 {
		workers = append(workers, func() error {
			select {
			case <-started:
			case <-ctx.Done():
			}
			return a.Close()
		})
	}
	e.together(workers...)
}

// until repeats a call until it reports an error, which must be the right one.
func (e *env) until(call func([][]byte) (int, error), l link.Link, want link.Interest, right func(error) bool, pass func(int)) func() error {
	return func() error {
		buf := make([]byte, 10000)
		w := e.waiter()
		for {
			n, err := call([][]byte{buf[:1000], buf[1000:]})
			if err != nil {
				if !right(err) {
					return fmt.Errorf("the wrong end of a link that is being closed: %w", err)
				}
				return nil
			}
			if n == 0 {
				err = w.wait(l, want)
			} else if w.moved(); pass != nil {
				pass(n)
			}
			if err != nil {
				return err
			}
		}
	}
}

func peerGone(e *env) {
	for _, unread := range []string{"", "bytes that the peer never read"} {
		a, b := e.pair()
		e.must(e.send(a, []byte(unread)))
		e.must(b.Close())
		if err := e.end(a); !gone(err) {
			e.Fatalf("Recv gives %v", err)
		}
		if err := e.until(a.Send, a, link.Writable, func(err error) bool { return errors.Is(err, link.ErrBroken) }, nil)(); err != nil {
			e.Fatalf("%v", err)
		}
	}
}

func errorIsFinal(e *env) {
	a, b := e.pair()
	e.must(e.send(a, []byte("unread")))
	e.must(b.Close())
	var first error
	for first == nil {
		if _, first = a.Send([][]byte{{1}}); first == nil {
			e.must(e.waiter().wait(a, link.Writable))
		}
	}
	firstRecv := e.end(a)
	for range 5 {
		if _, err := a.Send([][]byte{{1}}); err == nil || err.Error() != first.Error() {
			e.Fatalf("Send first reports %v, then %v", first, err)
		}
		if _, err := a.Recv([][]byte{{1}}); err == nil || err.Error() != firstRecv.Error() {
			e.Fatalf("Recv first reports %v, then %v", firstRecv, err)
		}
	}
	e.must(a.Close())
	if _, err := a.Send([][]byte{{1}}); !errors.Is(err, link.ErrClosed) {
		e.Fatalf("Send after Close reports %v", err)
	}
}
