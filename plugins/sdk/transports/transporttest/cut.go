package transporttest

import (
	"context"
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var cutCases = []Case{
	{"T-CUT-01", "cut-inside", "after a cut inside of what travels, only a beginning of what was sent is delivered, and then an end", cutInside},
}

// mostRefused bounds how many peers are refused before one is taken.
const mostRefused = 100

// cutInside puts a relay between the ends of a link that passes on so many bytes of one direction
// and then cuts the connection. A link that is resumed goes on after what has come: bytes that
// nobody has sent would stay in the stream.
func cutInside(e *env) {
	ln := e.listen()
	for _, at := range []int{1, 5, 30, 200, 1500, 10000} {
		for way := range 4 {
			e.cutOff(ln, at, way/2, way%2 == 0)
		}
	}
}

// cutOff makes a link and cuts it, with a reset or without, after that many bytes of one direction;
// 0 is the direction from the dialler.
func (e *env) cutOff(ln transports.Listener, at, direction int, reset bool) {
	e.Helper()
	r := e.relay(ln.Address())
	ends := [2]link.Link{}
	ends[0], ends[1] = e.pairAt(relayed{ln, r.address})
	e.must(e.greet(ends[0], ends[1], "before the cut"))
	e.must(e.greet(ends[1], ends[0], "and back"))
	r.cut(direction, at, reset)
	e.together(
		func() error { return e.sendOn(ends[direction]) },
		func() error { return e.beginning(ends[1-direction], at) },
	)
}

type relayed struct {
	transports.Listener
	address string
}

func (r relayed) Address() string { return r.address }

// Accept skips the remains of links that were cut: connections that became no part of a link in
// time.
func (r relayed) Accept(ctx context.Context) (l link.Link, err error) {
	for range mostRefused {
		var te *transports.Error
		if l, err = r.Listener.Accept(ctx); !errors.As(err, &te) || !te.Retryable {
			break
		}
	}
	return l, err
}

// sendOn sends until the link reports an error, and fails if it takes a mebibyte without one.
func (e *env) sendOn(l link.Link) error {
	p, w := pattern{}, e.waiter()
	for sent := 0; sent < 1<<20; {
		n, err := l.Send([][]byte{p.part(3000)})
		if err != nil {
			return nil
		}
		p.offset = uint64(sent + n)
		if sent += n; n > 0 {
			w.moved()
		} else if err := w.wait(l, link.Writable); err != nil {
			return err
		}
	}
	return nil
}

// beginning receives until the link ends, which it has to.
func (e *env) beginning(l link.Link, at int) error {
	p, w, buf := pattern{}, e.waiter(), make([]byte, 5000)
	for {
		n, err := l.Recv([][]byte{buf})
		if wrong := p.check(buf[:n]); wrong != nil {
			return fmt.Errorf("the connection was cut after %d bytes, and what nobody has sent is delivered: %w", at, wrong)
		}
		switch {
		case err != nil && gone(err):
			return nil
		case err != nil:
			return fmt.Errorf("after a cut the link reports %w", err)
		case n > 0:
			w.moved()
		default:
			if err := w.wait(l, link.Readable); err != nil {
				return err
			}
		}
	}
}
