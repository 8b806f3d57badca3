package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Values of a frame's header other than the number of its bytes.
const (
	frameMoved uint32 = 0          // the following bytes come by the next connection
	frameAsk   uint32 = 0xffffffff // the end that has dialled should make the next connection

	frameHeader = 4
	maxFrame    = 64 << 10
	afterMarker = 10 * time.Second // for the next connection, once the other end has moved to it
)

// ErrReplacing is wrapped if another connection cannot replace the present one, which continues.
var ErrReplacing = errors.New("the connection is being carried on by another one already")

var errFrame = errors.New("a frame is too long")

// ReplaceableConn is a connection that another one can replace, as when the certificates change by
// which its ends have proved their identity. Both ends have to use it. Nothing is lost, and no byte
// overtakes another: each end announces on the previous connection that all following bytes are on
// the next one.
type ReplaceableConn struct {
	asked func() // called when the other end asks for another connection; may be nil

	reading sync.Mutex // held by Read
	head    [frameHeader]byte
	have    int    // bytes of head
	left    uint32 // bytes of the frame
	next    chan net.Conn

	writing sync.Mutex // held by who writes
	frame   []byte

	mu      sync.Mutex
	in, out net.Conn      // they differ while the connection moves
	moving  chan struct{} // from Reserve until Read has followed, when it is closed
	read    time.Time
	write   time.Time
	done    chan struct{}
	closed  bool
}

// NewReplaceableConn returns a ReplaceableConn for the first connection. asked, unless nil, is
// called by Read when the other end asks for another connection.
func NewReplaceableConn(first net.Conn, asked func()) *ReplaceableConn {
	return &ReplaceableConn{asked: asked, next: make(chan net.Conn, 1), in: first, out: first, done: make(chan struct{})}
}

// Current returns the connection for writing.
func (m *ReplaceableConn) Current() net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out
}

// Reserve begins a move, for one caller at a time; Move or Cancel ends it.
func (m *ReplaceableConn) Reserve() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return net.ErrClosed
	case m.moving != nil:
		return ErrReplacing
	}
	m.moving = make(chan struct{})
	return nil
}

// Cancel gives up a move that was reserved.
func (m *ReplaceableConn) Cancel() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moving = nil
}

// Move writes to another connection from now on, and reads from it once the other end, which has to
// move too, has announced that it writes there. It blocks until then, while another goroutine
// reads. The previous connection is closed.
func (m *ReplaceableConn) Move(to net.Conn) error {
	followed, err := m.turn(to)
	if err != nil {
		return errors.Join(err, to.Close())
	}
	select {
	case <-followed:
		return nil
	case <-m.done:
		return net.ErrClosed
	}
}

// turn writes to another connection.
func (m *ReplaceableConn) turn(to net.Conn) (followed <-chan struct{}, err error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	if _, err := m.Current().Write(binary.BigEndian.AppendUint32(nil, frameMoved)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, net.ErrClosed
	}
	m.out = to
	_ = to.SetWriteDeadline(m.write)
	m.next <- to // has room, since only one move is under way
	return m.moving, nil
}

// Ask requests another connection from the other end, if that end has dialled.
func (m *ReplaceableConn) Ask() error {
	m.writing.Lock()
	defer m.writing.Unlock()
	_, err := m.Current().Write(binary.BigEndian.AppendUint32(nil, frameAsk))
	return err
}

// Read reads what the other end has written.
func (m *ReplaceableConn) Read(b []byte) (int, error) {
	m.reading.Lock()
	defer m.reading.Unlock()
	for m.left == 0 {
		if err := m.header(); err != nil {
			return 0, err
		}
	}
	n, err := m.source().Read(b[:min(len(b), int(m.left))])
	m.left -= uint32(n)
	return n, err
}

// header reads a frame's header, and does what it says if there are no bytes behind it.
func (m *ReplaceableConn) header() error {
	n, err := m.source().Read(m.head[m.have:])
	if m.have += n; m.have < frameHeader {
		return err // nil: part of the frame was read
	}
	m.have = 0
	switch v := binary.BigEndian.Uint32(m.head[:]); {
	case v == frameMoved:
		return m.follow()
	case v == frameAsk:
		if m.asked != nil {
			m.asked()
		}
	case v > maxFrame:
		return fmt.Errorf("%w: %d bytes", errFrame, v)
	default:
		m.left = v
	}
	return nil
}

func (m *ReplaceableConn) source() net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.in
}

func (m *ReplaceableConn) follow() error {
	late := time.NewTimer(afterMarker)
	defer late.Stop()
	select {
	case to := <-m.next:
		m.mu.Lock()
		defer m.mu.Unlock()
		before := m.in
		m.in = to
		_ = to.SetReadDeadline(m.read)
		_ = before.Close() // the other end may have done so already
		close(m.moving)
		m.moving = nil
		return nil
	case <-m.done:
		return net.ErrClosed
	case <-late.C:
		return os.ErrDeadlineExceeded
	}
}

// Write writes a frame, or several.
func (m *ReplaceableConn) Write(b []byte) (n int, err error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	for n < len(b) {
		part := b[n:min(n+maxFrame, len(b))]
		m.frame = append(binary.BigEndian.AppendUint32(m.frame[:0], uint32(len(part))), part...)
		sent, err := m.Current().Write(m.frame)
		n += max(0, sent-frameHeader)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close closes the connection, or both while one replaces the other.
func (m *ReplaceableConn) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return net.ErrClosed
	}
	m.closed = true
	close(m.done)
	if m.in != m.out {
		return errors.Join(m.in.Close(), m.out.Close())
	}
	return m.in.Close()
}

// LocalAddr returns the local address of the connection for writing.
func (m *ReplaceableConn) LocalAddr() net.Addr { return m.Current().LocalAddr() }

// RemoteAddr returns the remote address of the connection for writing.
func (m *ReplaceableConn) RemoteAddr() net.Addr { return m.Current().RemoteAddr() }

// SetDeadline sets the deadlines of Read and Write, which a next connection inherits.
func (m *ReplaceableConn) SetDeadline(t time.Time) error {
	return errors.Join(m.SetReadDeadline(t), m.SetWriteDeadline(t))
}

// SetReadDeadline sets when Read ends.
func (m *ReplaceableConn) SetReadDeadline(t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = t
	return m.in.SetReadDeadline(t)
}

// SetWriteDeadline sets when Write ends.
func (m *ReplaceableConn) SetWriteDeadline(t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write = t
	return m.out.SetWriteDeadline(t)
}
