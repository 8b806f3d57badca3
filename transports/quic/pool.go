package quic

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// linger is how long a dialled connection without links is kept for the next.
const linger = 10 * time.Second

type target struct {
	from     netip.Addr // address to send from; invalid: any
	to       netip.AddrPort
	settings *settings
}

// pooledConn is one of the connections to a target, or the attempt to make it.
type pooledConn struct {
	t     *Transport
	at    target
	ready chan struct{} // closed when the attempt is over

	conn *connection // the result, once ready is closed
	err  error

	users int // links that this side has open or is dialling; guarded by Transport.mu
}

// leased is a link's stream that counts as a user of its pooledConn.
type leased struct {
	*stream
	pooledConn *pooledConn
	left       sync.Once
}

// Close ends both directions. What Write has taken is still sent.
func (x *leased) Close() error {
	_ = x.stream.Close() // nil, always
	x.left.Do(x.pooledConn.leave)
	return nil
}

// Break ends both directions and tells the peer that bytes were lost.
func (x *leased) Break() {
	x.stream.Break()
	x.left.Do(x.pooledConn.leave)
}

// enter returns the connection for the next link to a target, and counts a user for it. It
// is a new one if there are less than most and all have links, otherwise the one with the fewest
// links. It is none of those in taken, to which it is added, if that is not nil. fresh reports
// whether it is new.
func (t *Transport) enter(at target, most int, taken map[*pooledConn]bool) (l *pooledConn, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.peers[at] {
		if !taken[x] && (l == nil || x.users < l.users) {
			l = x
		}
	}
	if fresh = l == nil || l.users > 0 && len(t.peers[at]) < most; fresh {
		l = &pooledConn{t: t, at: at, ready: make(chan struct{})}
		t.peers[at] = append(t.peers[at], l)
		go l.connect()
	}
	l.users++
	if taken != nil {
		taken[l] = true
	}
	return l, fresh
}

func (l *pooledConn) leave() {
	l.t.mu.Lock()
	l.users--
	idle := l.users == 0
	l.t.mu.Unlock()
	if idle {
		l.rest()
	}
}

// rest closes the connection after linger, if it has no links then.
func (l *pooledConn) rest() {
	time.AfterFunc(linger, func() {
		l.t.mu.Lock()
		idle := l.users == 0 && l.connection() != nil && l.conn.busy() == 0
		if idle {
			l.t.removePooled(l)
		}
		l.t.mu.Unlock()
		if idle {
			l.conn.close(closeUnused, "not used")
		}
	})
}

// drop makes later links use another connection.
func (t *Transport) drop(l *pooledConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removePooled(l)
}

// removePooled takes a pooledConn out of the pool. The caller holds mu.
func (t *Transport) removePooled(l *pooledConn) {
	left := slices.DeleteFunc(t.peers[l.at], func(x *pooledConn) bool { return x == l })
	if len(left) == 0 {
		delete(t.peers, l.at)
	} else {
		t.peers[l.at] = left
	}
}

// connection returns the pooledConn's connection, or nil if there is none yet.
func (l *pooledConn) connection() *connection {
	select {
	case <-l.ready:
		return l.conn
	default:
		return nil
	}
}

func (l *pooledConn) open(ctx context.Context) (*stream, error) {
	var silent <-chan time.Time
	if end, ok := ctx.Deadline(); ok { // earlier, so that the caller gets this error and not the deadline's
		timer := time.NewTimer(time.Until(end) * 9 / 10)
		defer timer.Stop()
		silent = timer.C
	}
	select {
	case <-l.ready:
	case <-silent:
		return nil, errSilent
	case <-ctx.Done():
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		return nil, errors.Join(ctx.Err(), &quic.HandshakeTimeoutError{})
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.conn.open(ctx)
}

// connect makes the pooledConn's connection for all that wait for it, so it does not end with the
// context of the first Dial.
func (l *pooledConn) connect() {
	defer close(l.ready)
	udp, err := l.at.settings.bindUDP(netip.AddrPortFrom(l.at.bindAddr(), 0))
	if err == nil {
		u := &udpSocket{UDPConn: udp, from: l.at.bindAddr(), count: &l.t.counts.moved}
		e := endpoint(u)
		if err = l.handshake(e, u); err != nil {
			closeEndpoint(e)
		}
	}
	if err != nil {
		l.err = err
		l.t.counts.failed.Add(1)
		l.t.drop(l)
	}
}

// handshake makes the connection on an endpoint, which is closed with it.
func (l *pooledConn) handshake(e *quic.Transport, u *udpSocket) error {
	s := l.at.settings
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go cancelIfUnreachable(ctx, l.at.from, l.at.to, cancel)
	qc, err := e.Dial(ctx, net.UDPAddrFromAddrPort(l.at.to), s.id.Client(protocolName), s.config(-1))
	if errors.As(err, new(*quic.IdleTimeoutError)) { // the library reports it during the handshake, too
		return &quic.HandshakeTimeoutError{}
	}
	if err != nil {
		return err
	}
	control, err := qc.OpenStream()
	if err == nil {
		_, err = control.Write([]byte{controlVersion})
	}
	if err != nil {
		_ = qc.CloseWithError(closeEnds, "no control stream")
		return err
	}
	l.conn = newConnection(qc, s, l.rest)
	l.t.counts.add(qc)
	go l.conn.runControl(control)
	go l.conn.watch(u)
	context.AfterFunc(qc.Context(), func() {
		l.t.drop(l)
		l.t.counts.remove(qc)
		closeEndpoint(e)
	})
	return nil
}

func (at target) bindAddr() netip.Addr {
	if at.from.IsValid() {
		return at.from.Unmap()
	}
	return unspecified(at.to.Addr().Unmap())
}
