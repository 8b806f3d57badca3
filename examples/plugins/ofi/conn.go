package main

import (
	"net"
	"os"
	"time"
)

var errTime = os.ErrDeadlineExceeded

func over(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// Write accepts bytes as far as the peer has room for them.
func (l *stream) Write(b []byte) (done int, err error) {
	l.write.Lock()
	defer l.write.Unlock()
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(b) > 0 {
		s, err := l.writable()
		if err != nil {
			return done, err
		}
		size := l.piece(b)
		n.mu.Unlock()
		copy(s.data[headSize:], b[:size])
		n.mu.Lock()
		if err := l.unwritable(); err != nil {
			n.release(s)
			return done, err
		}
		l.wrote(s, size)
		done, b = done+size, b[size:]
	}
	return done, nil
}

func (l *stream) hasRoom() bool { return l.allowed > l.sendPos && len(l.data)+l.posted < maxOut }

func (l *stream) piece(b []byte) int {
	return min(len(b), l.n.set.fragment, int(min(l.allowed-l.sendPos, mostWindow)))
}

// wrote sends a message with so many bytes of data.
func (l *stream) wrote(s *slot, size int) {
	l.queue(s, size)
	l.push()
}

func (l *stream) queue(s *slot, size int) {
	head{kind: kindData, size: size, to: l.far, value: l.sendPos}.put(s.data)
	s.kind, s.len = kindData, headSize+size
	l.sendPos += uint64(size)
	l.data = append(l.data, s)
	l.enqueue()
}

func (l *stream) unwritable() error {
	switch {
	case l.closed, l.finished:
		return errClosed
	case l.state == broken:
		return l.err
	case l.left:
		return errPeerLeft
	case over(l.sayBy):
		return errTime
	}
	return nil
}

// writable waits until some bytes can be sent.
func (l *stream) writable() (*slot, error) {
	for {
		if err := l.unwritable(); err != nil {
			return nil, err
		}
		if l.hasRoom() {
			if s := l.n.slot(1); s != nil {
				return s, nil
			}
			return nil, errMemory
		}
		l.cond.Wait()
	}
}

// CloseWrite ends this side's stream after what was written. Read goes on.
func (l *stream) CloseWrite() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return errClosed
	}
	if !l.finished {
		l.finished = true
		if l.state == opened && !l.left {
			l.want(todoFin)
			l.push()
		}
	}
	return nil
}

// Close gives up the link. Bytes that were written are still sent to the peer.
func (l *stream) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return nil
	}
	if l.harsh {
		l.breakOff(errReset)
	}
	l.closed = true
	l.ring, l.unread, l.start = nil, 0, 0
	l.rest()
	l.bell.close()
	l.bell, l.armed = nil, 0
	l.until = time.Now().Add(lingerTime)
	switch {
	case l.state == broken && l.todo == 0, l.left && l.ends && l.got == l.end && l.todo == 0:
		l.remove()
	case l.state == opened && !l.left:
		l.todo &^= todoFin
		l.want(todoClose)
		if !l.ends {
			l.granted = max(l.granted, l.got) // what is under way is dropped
		}
		l.push()
	}
	l.wakeup()
	l.n.f.wake()
	return nil
}

// Break ends the link so that the peer sees a failure: bytes were lost.
func (l *stream) Break() {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if !l.closed {
		l.breakOff(errReset)
		l.push()
		l.wakeup()
	}
}

// SetReadDeadline sets when Read fails with errTime, a blocked one too; the zero time means never.
func (l *stream) SetReadDeadline(at time.Time) error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.readBy = at
	l.alarm(at)
	return nil
}

// SetWriteDeadline sets when Write fails with errTime, a blocked one too; the zero time means
// never.
func (l *stream) SetWriteDeadline(at time.Time) error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.sayBy = at
	l.alarm(at)
	return nil
}

// SetDeadline sets the time at which Read and Write give up.
func (l *stream) SetDeadline(at time.Time) error {
	_ = l.SetReadDeadline(at) // never fails
	return l.SetWriteDeadline(at)
}

func (l *stream) alarm(at time.Time) {
	l.wakeup()
	if !at.IsZero() {
		time.AfterFunc(time.Until(at), func() {
			l.n.mu.Lock()
			defer l.n.mu.Unlock()
			l.wakeup()
		})
	}
}

type place string

// Network returns the name of the transport.
func (place) Network() string { return name }

func (p place) String() string { return string(p) }

// LocalAddr returns the address of this end.
func (l *stream) LocalAddr() net.Addr { return place(l.n.f.text(l.n.f.name)) }

// RemoteAddr returns the address of the peer.
func (l *stream) RemoteAddr() net.Addr { return place(l.n.f.text([]byte(l.peer.blob))) }
