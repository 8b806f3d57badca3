package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

type state int

const (
	dialling  state = iota
	halfOpen        // a connect has come and was not confirmed
	opened          // both sides know that the link exists
	broken          // bytes may be lost
	abandoned       // a dial that was given up: if the peer still accepts it, it is reset
)

// The messages that a link has to send, each at most once: so the queue is bounded, whatever peers
// do. They are sent in this order; data come before the ends.
const (
	todoConnect = 1 << iota
	todoAccept
	todoReset
	todoConfirm
	todoCloseAck
	todoCredit
	todoPing
	todoFin
	todoClose
)

const (
	maxOut   = 16 // messages of a link that wait or are under way
	maxAhead = 64 // messages that completed before an earlier one
)

var (
	errReset    = errors.New("the peer has broken the link")
	errSilent   = errors.New("nothing was heard from the peer for the time of silence")
	errRules    = errors.New("the peer broke the rules of the protocol")
	errPeerLeft = errors.New("the peer has closed the link")
	errClosed   = net.ErrClosed
)

// stream is one end of a link: a transports.Conn. The node's mutex guards all of it.
type stream struct {
	n     *node
	cond  *sync.Cond
	write sync.Mutex // one Write at a time
	peer  *peer
	id    uint64
	far   uint64 // the link's number at the peer
	key   connectKey
	state state
	err   error // error that broke it

	answered chan struct{} // closed when a dial has its answer
	todo     int
	queued   bool // in peer.queue

	data    []*slot // written, not given to the provider
	posted  int     // given to the provider, not completed
	sendPos uint64
	allowed uint64 // position up to which the peer has room

	ring     []byte
	start    int // of the unread bytes in ring
	unread   int
	got      uint64 // position up to which everything has come
	granted  uint64 // position up to which the peer may send
	ahead    map[uint64][]byte
	end      uint64 // the length of the peer's stream, if ends
	ends     bool
	left     bool // the peer has closed the link
	finished bool // CloseWrite
	closed   bool // Close

	heard, said   time.Time
	resend        time.Time
	pause         time.Duration
	until         time.Time // when incomplete sends are given up
	readBy, sayBy time.Time
	polling
	m *messages // nil: its bytes have no boundaries
}

func newStream(n *node, p *peer) *stream {
	now := time.Now()
	l := &stream{n: n, cond: sync.NewCond(&n.mu), peer: p, id: n.number(), granted: n.set.window,
		answered: make(chan struct{}), heard: now, said: now, until: now.Add(halfOpenTime)}
	n.streams[l.id] = l
	p.links++
	p.idle = time.Time{}
	return l
}

func (l *stream) remove() {
	if l.n.streams[l.id] != l {
		return
	}
	delete(l.n.streams, l.id)
	if l.key.number != 0 {
		delete(l.n.incoming, l.key)
	}
	if l.state == halfOpen {
		l.n.half--
	}
	for _, s := range l.data {
		l.n.release(s)
	}
	l.data, l.ring, l.ahead, l.todo = nil, nil, nil, 0
	if l.peer.links--; l.peer.links == 0 {
		l.peer.idle = time.Now()
	}
	l.rest()
	l.wakeup()
}

// wakeup wakes those who wait in Read or Write, or have said so by Arm.
func (l *stream) wakeup() {
	l.cond.Broadcast()
	if l.armed != 0 {
		l.chime()
	}
}

// want adds to what the link has to say and queues it at the peer.
func (l *stream) want(what int) {
	l.todo |= what
	l.enqueue()
}

func (l *stream) enqueue() {
	if !l.queued && l.peer.dead == nil {
		l.queued = true
		l.peer.queue = append(l.peer.queue, l)
	}
}

// push sends what there is, from a goroutine that is not the node's.
func (l *stream) push() {
	if l.peer.push(l.n); l.n.again && l.n.polled == 0 || lossy(l.n.f.offer.provider) {
		l.n.f.wake()
	}
}

// next returns the next message, or nil; more says that there is one without memory for it.
func (l *stream) next() (s *slot, more bool) {
	const ends = todoFin | todoClose
	if l.todo&^ends == 0 && len(l.data) > 0 {
		return l.data[0], false
	}
	if l.todo == 0 {
		return nil, false
	}
	if s = l.n.slot(0); s == nil {
		return nil, true
	}
	what := l.todo & -l.todo
	h, rest := head{to: l.far}, s.data[headSize:headSize]
	switch what {
	case todoConnect:
		h = head{kind: kindConnect, value: l.id}
		rest = append(room(rest, l.n.set.window), l.n.f.name...)
		if l.n.set.rdma {
			h.flags = flagMessages
		}
	case todoAccept:
		h.kind, h.value = kindAccept, l.id
		rest = room(rest, l.n.set.window)
		if l.m != nil {
			h.flags = flagMessages
		}
	case todoReset:
		h.kind = kindReset
	case todoConfirm:
		h.kind = kindConfirm
	case todoCloseAck:
		h.kind = kindCloseAck
	case todoCredit:
		h.kind, h.value = kindCredit, l.granted
	case todoPing:
		h.kind = kindPing
	case todoFin:
		h.kind, h.value = kindFin, l.sendPos
	case todoClose:
		h.kind, h.value = kindClose, l.sendPos
	}
	h.size = len(rest)
	h.put(s.data)
	s.kind, s.len = h.kind, headSize+h.size
	return s, false
}

func room(b []byte, n uint64) []byte { return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }

func (l *stream) took(s *slot) {
	l.said = time.Now()
	if s.kind == kindData {
		l.data = l.data[1:]
		l.posted++
		return
	}
	l.todo &^= l.todo & -l.todo
	if s.kind == kindReset && (l.closed || l.state == abandoned) {
		l.remove()
	}
}

func (l *stream) message(h head, rest []byte) {
	if l.state == halfOpen && h.kind != kindReset && !l.confirmed() {
		return
	}
	switch h.kind {
	case kindAccept:
		l.accepted(h, rest)
	case kindRefuse:
		if l.state == dialling {
			l.err = errClosedThere
			if h.value == refusedFull {
				l.err = errFull
			}
			close(l.answered)
			l.remove()
		}
	case kindReset:
		if l.state == dialling { // only a peer that has seen the connect has its number
			return
		}
		l.lost(errReset)
	}
	if l.state != opened {
		return
	}
	switch h.kind {
	case kindData:
		l.arrived(h.value, rest)
	case kindCredit:
		if h.value > l.allowed && h.value <= l.sendPos+mostWindow {
			l.allowed = h.value
			l.wakeup()
		}
	case kindFin, kindClose:
		if h.value < l.got || h.value > l.granted || l.ends && h.value != l.end {
			l.breakOff(errRules)
			return
		}
		l.end, l.ends, l.left = h.value, true, l.left || h.kind == kindClose
		if l.left {
			l.dropData()
		}
		l.settle()
	case kindCloseAck:
		if l.closed {
			l.remove()
		}
	}
}

// confirmed gives a link to the listener, if it has room.
func (l *stream) confirmed() bool {
	l.state = opened
	l.n.half--
	l.todo &^= todoAccept
	if l.n.open {
		select {
		case l.n.arrived <- l:
			return true
		default:
		}
	}
	l.closed = true // no caller has the link
	l.breakOff(errReset)
	return false
}

func (l *stream) accepted(h head, rest []byte) {
	switch {
	case l.key.number != 0 || h.value == 0:
	case l.state == dialling:
		n, ok := window(rest)
		if !ok || h.flags != 0 && !l.n.set.rdma {
			return
		}
		if h.flags != 0 {
			l.m = newMessages(l, n)
		}
		l.far, l.allowed, l.state = h.value, n, opened
		l.todo &^= todoConnect
		l.want(todoConfirm)
		close(l.answered)
	case l.state == opened && l.far == h.value:
		l.want(todoConfirm)
	case l.state == abandoned:
		l.far = h.value
		l.want(todoReset)
	}
}

// arrived takes data. Providers deliver in order, but may report a short message before a long
// one that was sent earlier.
func (l *stream) arrived(at uint64, b []byte) {
	n := uint64(len(b))
	switch {
	case n == 0 || at < l.got || at > l.granted || n > l.granted-at || l.ends && at+n > l.end:
		l.breakOff(errRules)
		return
	case at > l.got:
		if len(l.ahead) >= maxAhead || l.ahead[at] != nil {
			l.breakOff(errRules)
			return
		}
		if l.ahead == nil {
			l.ahead = map[uint64][]byte{}
		}
		l.ahead[at] = append([]byte(nil), b...)
		return
	}
	l.keep(b)
	for {
		b, ok := l.ahead[l.got]
		if !ok {
			break
		}
		delete(l.ahead, l.got)
		l.keep(b)
	}
	l.settle()
	l.wakeup()
}

// keep gives bytes to the reader that waits, or appends them to those that are unread.
func (l *stream) keep(b []byte) {
	l.got += uint64(len(b))
	if l.closed {
		return
	}
	if l.m != nil && l.m.take(b) {
		return
	}
	if len(l.sink) > 0 && l.unread == 0 {
		n := copy(l.sink, b)
		l.sink, l.sunk, b = l.sink[n:], l.sunk+n, b[n:]
		if len(b) == 0 {
			return
		}
	}
	if need := l.unread + len(b); need > len(l.ring) {
		size := max(4096, len(l.ring))
		for size < need {
			size *= 2
		}
		ring := make([]byte, size)
		n := copy(ring, l.ring[l.start:min(len(l.ring), l.start+l.unread)])
		copy(ring[n:], l.ring[:l.unread-n])
		l.ring, l.start = ring, 0
	}
	at := (l.start + l.unread) & (len(l.ring) - 1)
	n := copy(l.ring[at:], b)
	copy(l.ring, b[n:])
	l.unread += len(b)
}

// settle does what is due when all of the peer's stream has come.
func (l *stream) settle() {
	if l.ends && l.got == l.end {
		l.wakeup()
		if l.left {
			l.want(todoCloseAck)
		}
	}
}

func (l *stream) dropData() {
	for _, s := range l.data {
		l.n.release(s)
	}
	l.data = nil
	l.wakeup()
}

// lost ends a link whose peer cannot be told.
func (l *stream) lost(err error) {
	switch l.state {
	case broken, abandoned:
		return
	case dialling:
		close(l.answered)
	case halfOpen:
		l.err = err
		l.remove()
		return
	}
	l.state, l.err = broken, err
	l.todo &= todoReset
	l.dropData()
	if l.closed {
		l.remove()
	}
}

// breakOff ends a link and tells the peer that bytes were lost.
func (l *stream) breakOff(err error) {
	switch l.state {
	case halfOpen:
		l.n.half--
		l.closed = true
	case opened:
	default:
		return
	}
	l.state, l.err, l.todo = broken, err, 0
	l.dropData()
	l.until = time.Now().Add(lingerTime)
	l.want(todoReset)
}

func (l *stream) tick(now time.Time) {
	silence := l.n.set.silence
	switch {
	case (l.state == dialling || l.state == halfOpen) && now.After(l.resend):
		l.pause = min(2*l.pause, resendLast)
		l.resend = now.Add(l.pause)
		if l.state == dialling {
			l.want(todoConnect)
		} else {
			l.want(todoAccept)
		}
	case l.state == opened && silence > 0 && now.Sub(l.heard) > silence:
		l.breakOff(errSilent)
	case l.state == opened && silence > 0 && now.Sub(l.said) > silence/4:
		l.want(todoPing)
	}
	if l.m != nil {
		l.m.tick(now)
	}
	if now.After(l.until) && (l.state == halfOpen || l.state == abandoned || l.closed) || l.state == broken && l.closed && l.todo == 0 {
		l.remove()
	}
}

func (n *node) dial(ctx context.Context, blob []byte) (*stream, error) {
	n.mu.Lock()
	p := n.peer(string(blob))
	switch {
	case p == nil || len(n.streams) >= maxStreams:
		n.mu.Unlock()
		return nil, errFull
	case p.dead != nil:
		n.mu.Unlock()
		return nil, p.dead
	}
	l := newStream(n, p)
	l.pause, l.resend = resendFirst, time.Now().Add(resendFirst)
	l.want(todoConnect)
	p.push(n)
	n.mu.Unlock()
	n.f.wake()
	select {
	case <-l.answered:
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case l.state == opened && ctx.Err() == nil:
		return l, nil
	case l.state == opened:
		l.closed = true
		l.breakOff(errReset)
		l.push()
		return nil, ctx.Err()
	case l.state == dialling && l.err == nil:
		l.state, l.until, l.todo = abandoned, time.Now().Add(halfOpenTime), 0
		return nil, ctx.Err()
	}
	l.remove()
	return nil, l.err
}

// Read blocks until some bytes have come, the peer has ended its stream, or the deadline is over.
func (l *stream) Read(b []byte) (int, error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for {
		switch {
		case l.closed:
			return 0, errClosed
		case l.unread > 0 && len(b) > 0:
			return l.read(b), nil
		case l.ends && l.got == l.end:
			return 0, io.EOF
		case l.state == broken:
			return 0, l.err
		case len(b) == 0:
			return 0, nil
		case over(l.readBy):
			return 0, errTime
		}
		l.cond.Wait()
	}
}

func (l *stream) read(b []byte) int {
	n := copy(b[:min(len(b), l.unread)], l.ring[l.start:])
	n += copy(b[n:min(len(b), l.unread)], l.ring)
	l.start = (l.start + n) & (len(l.ring) - 1)
	l.unread -= n
	l.grant()
	return n
}

// grant has the peer send more, once a quarter of the window was read.
func (l *stream) grant() {
	if limit := l.got - uint64(l.unread) + l.n.set.window; limit >= l.granted+l.n.set.window/4 && !l.ends && l.state == opened {
		l.granted = limit
		l.want(todoCredit)
		l.push()
	}
}
