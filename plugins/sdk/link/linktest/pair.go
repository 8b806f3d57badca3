package linktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Pair returns the two ends of an in-memory link that holds at most capacity
// bytes in each direction; both are *End. It has no handle and starts nothing:
// bytes move inside the calls. It panics if capacity is not positive.
func Pair(capacity int) (a, b link.Link) {
	if capacity <= 0 {
		panic(fmt.Sprintf("link: a pair that holds %d bytes", capacity))
	}
	s := &shared{capacity: capacity}
	return &End{s: s, out: &s.pipes[0], in: &s.pipes[1]},
		&End{s: s, out: &s.pipes[1], in: &s.pipes[0]}
}

// End is one end of a Pair.
type End struct {
	s       *shared
	out, in *pipe
	closed  bool
}

// shared is the state that the two ends of a pair share; mu guards all of it and the ends.
type shared struct {
	mu       sync.Mutex
	capacity int
	pipes    [2]pipe
	broken   error
}

type pipe struct {
	bytes.Buffer
	ended bool // its sender called CloseSend or Close
	gone  bool // its receiver called Close: bytes that are sent now are lost
}

var errPeerClosed = fmt.Errorf("%w: the peer has closed it", link.ErrBroken)

// Send takes as much of batch as fits into the pair's capacity.
func (e *End) Send(batch [][]byte) (int, error) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	switch {
	case e.closed:
		return 0, link.ErrClosed
	case e.s.broken != nil:
		return 0, e.s.broken
	case e.out.ended:
		return 0, link.ErrClosed
	case e.out.gone:
		return 0, errPeerClosed
	}
	n := 0
	for _, b := range batch {
		fit := min(len(b), e.s.capacity-e.out.Len())
		e.out.Write(b[:fit])
		n += fit
	}
	return n, nil
}

// Recv fills batch from what the peer has sent.
func (e *End) Recv(batch [][]byte) (int, error) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	switch {
	case e.closed:
		return 0, link.ErrClosed
	case e.s.broken != nil:
		return 0, e.s.broken
	case e.in.Len() == 0 && e.in.ended && link.Len(batch) > 0:
		return 0, io.EOF
	}
	n := 0
	for _, b := range batch {
		got, _ := e.in.Read(b) // io.EOF: nothing is under way
		n += got
	}
	return n, nil
}

// Handle returns NoHandle: the kernel knows nothing of a pair.
func (e *End) Handle() int { return link.NoHandle }

// Arm reports whether one of the interests in want holds. As there is nothing to sleep on, false
// only means that a call now would move nothing.
func (e *End) Arm(want link.Interest) bool {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.closed || e.s.broken != nil {
		return true
	}
	readable := e.in.Len() > 0 || e.in.ended
	writable := e.out.Len() < e.s.capacity || e.out.ended || e.out.gone
	return want&link.Readable != 0 && readable || want&link.Writable != 0 && writable
}

// Limits returns the capacity as Stream.
func (e *End) Limits() link.Limits { return link.Limits{Stream: e.s.capacity} }

// CloseSend ends this direction; the peer reads what is under way and then io.EOF.
func (e *End) CloseSend() error {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.closed {
		return link.ErrClosed
	}
	if e.s.broken != nil {
		return e.s.broken
	}
	e.out.ended = true
	return nil
}

// Close ends both directions. The peer still reads what is under way to it.
func (e *End) Close() error {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.closed = true
	e.out.ended = true
	e.in.gone = true
	e.in.Buffer = bytes.Buffer{}
	return nil
}

// Break fails both ends at once, like a cut cable: bytes on the way are lost and every
// later call returns err, which is made to wrap link.ErrBroken. Only the first Break has an
// effect.
func (e *End) Break(err error) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.s.broken != nil {
		return
	}
	switch {
	case err == nil:
		err = link.ErrBroken
	case !errors.Is(err, link.ErrBroken):
		err = fmt.Errorf("%w: %w", link.ErrBroken, err)
	}
	e.s.broken = err
	e.s.pipes[0].Buffer, e.s.pipes[1].Buffer = bytes.Buffer{}, bytes.Buffer{}
}
