package main

import (
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

var _ conn.Direct = (*stream)(nil)

// polling is what a link has for users that never wait in it: the SDK's relay, which polls the ring
// of a proc and the link in turns. So the thread that takes bytes out of the ring also gives them
// to the provider, and the one that has read a completion puts its bytes into the ring.
type polling struct {
	polls bool          // it counts in node.polled
	armed link.Interest // events that its user sleeps for
	bell  *bell         // nil before the first Handle
	sink  []byte        // where Recv stores the next bytes
	sunk  int           // number of bytes in sink
	harsh bool          // Close breaks the link
}

// awake records that the link's user polls.
func (l *stream) awake() {
	l.armed = 0
	l.n.looks++
	if !l.polls {
		l.polls = true
		l.n.polled++
	}
}

// rest records that the link's user does not poll any more. After the last one the node's goroutine
// goes on.
func (l *stream) rest() {
	if !l.polls {
		return
	}
	l.polls = false
	if l.n.polled--; l.n.polled == 0 && !l.n.ended {
		l.n.f.wake()
	}
}

// Send passes as many bytes to the provider as the peer has room for.
func (l *stream) Send(batch [][]byte) (done int, err error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if err := l.unsendable(); err != nil {
		return 0, err
	}
	l.awake()
	if !l.hasRoom() {
		l.n.progress(nil)
	}
	for _, b := range batch {
		for len(b) > 0 {
			if err := l.unsendable(); err != nil || !l.hasRoom() {
				return done, nil //nolint:nilerr // the next call returns it
			}
			s := l.n.slot(1)
			if s == nil {
				return done, nil
			}
			size := l.piece(b)
			copy(s.data[headSize:], b[:size])
			l.wrote(s, size)
			done, b = done+size, b[size:]
		}
	}
	return done, nil
}

func (l *stream) unsendable() error {
	switch {
	case l.closed, l.finished:
		return link.ErrClosed
	case l.state == broken:
		return fmt.Errorf("%w: %w", link.ErrBroken, l.err)
	case l.left:
		return fmt.Errorf("%w: %w", link.ErrBroken, errPeerLeft)
	}
	return nil
}

// Recv handles the provider's completions, and returns the bytes that have come.
func (l *stream) Recv(batch [][]byte) (int, error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	for len(batch) > 0 && len(batch[0]) == 0 {
		batch = batch[1:]
	}
	if len(batch) == 0 {
		return 0, nil
	}
	l.awake()
	if l.unread == 0 {
		l.sink, l.sunk = batch[0], 0
		l.n.progress(l)
		l.sink = nil
		if l.sunk > 0 {
			l.grant()
			return l.sunk, nil
		}
	}
	switch {
	case l.unread > 0:
		return l.read(batch[0]), nil
	case l.ends && l.got == l.end:
		return 0, io.EOF
	case l.state == broken:
		return 0, fmt.Errorf("%w: %w", link.ErrBroken, l.err)
	}
	return 0, nil
}

// Handle returns a descriptor that wakes a user that has called Arm.
func (l *stream) Handle() int {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.bell == nil && !l.closed {
		l.bell, _ = newBell() // without one the link cannot be waited for, which the caller notices
	}
	return l.bell.handle()
}

// Arm says that the user is about to sleep on Handle.
func (l *stream) Arm(want link.Interest) bool {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return true
	}
	l.n.progress(nil)
	if l.ready(want) {
		return true
	}
	l.bell.set(want)
	l.armed = want
	l.rest()
	return false
}

// served reports whether the Recv that handles completions has what it wants.
func (l *stream) served() bool {
	if l.m != nil {
		return l.m.took > 0
	}
	return len(l.sink) == 0
}

func (l *stream) ready(want link.Interest) bool {
	if l.m != nil {
		return l.m.ready()
	}
	return want&link.Readable != 0 && (l.unread > 0 || l.ends && l.got == l.end || l.state == broken) ||
		want&link.Writable != 0 && (l.hasRoom() || l.unsendable() != nil)
}

// chime wakes the user if the condition for which it sleeps holds.
func (l *stream) chime() {
	for _, one := range []link.Interest{link.Readable, link.Writable} {
		if l.armed&one != 0 && l.ready(one) {
			l.armed &^= one
			l.bell.ring(one)
		}
	}
}

// Limits reports that a user that polls should call Recv.
func (l *stream) Limits() link.Limits {
	return link.Limits{Stream: int(l.n.set.window), Memory: true}
}

// CloseSend is CloseWrite, with the error that the link's contract has for a closed one.
func (l *stream) CloseSend() error {
	if l.CloseWrite() != nil {
		return link.ErrClosed
	}
	return nil
}

// SetLinger with 0 makes Close break the link, as for a TCP connection.
func (l *stream) SetLinger(seconds int) error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.harsh = seconds == 0
	return nil
}
