package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

const (
	// unsent is how many bytes of a connection wait in the kernel for their first transmission. More
	// would come late if this connection is slower than the others, which then wait for it.
	unsent = 128 << 10
	// near is the round trip below which one connection fills any network that two procs can fill.
	// A link of one connection is one that a proc can have to itself.
	near = 5 * time.Millisecond
	// otherWayTime is how long a connection to another of the peer's addresses may take.
	otherWayTime = time.Second
)

// dialledLink makes a link of a connection that was dialled, and later of others if the peer's
// address says so.
func (s *settings) dialledLink(ctx context.Context, raw *net.TCPConn, list []netip.AddrPort, streams int, address string) (l link.Link, err error) {
	var c transports.Conn
	switch {
	case streams > 1:
		c, err = s.dialSeveral(ctx, raw, list, streams, address)
	case s.id != nil:
		c, err = s.secureDial(ctx, raw, address)
	default:
		if l, err = s.link(raw); err != nil {
			return nil, s.failure("dial", address, err)
		}
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if l, err = s.linkOf(c); err != nil {
		return nil, s.failure("dial", address, err)
	}
	return l, nil
}

// dialled makes a transports.Conn of a dialled connection, which it closes after an error.
func (s *settings) dialled(ctx context.Context, raw *net.TCPConn, address string) (transports.Conn, error) {
	if s.id != nil {
		return s.secureDial(ctx, raw, address)
	}
	c, err := s.opened(raw)
	if err != nil {
		return nil, s.failure("dial", address, err)
	}
	return c, nil
}

// accepted is dialled for a connection that was accepted.
func (s *settings) accepted(ctx context.Context, raw *net.TCPConn, address string) (transports.Conn, error) {
	if s.id != nil {
		return s.secureAccept(ctx, raw, address)
	}
	return s.opened(raw)
}

// opened is for connections without TLS.
func (s *settings) opened(raw *net.TCPConn) (transports.Conn, error) {
	if err := s.tuneConn(raw); err != nil {
		raw.Close()
		return nil, err
	}
	return socket.Heed(raw).(transports.Conn), nil
}

// dialSeveral makes a link's connection of first, to which others are added when it has carried
// much. These are dialled to the peer's addresses in turn, or to that of the first where the others
// do not answer. There are at most most in all, or only first if the peer is near.
func (s *settings) dialSeveral(ctx context.Context, first *net.TCPConn, list []netip.AddrPort, most int, address string) (transports.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if rtt, _ := conn.Estimate(first); rtt > 0 && rtt < s.near {
		most = 1
	}
	from, far := first.LocalAddr().(*net.TCPAddr).AddrPort(), first.RemoteAddr().(*net.TCPAddr).AddrPort()
	c, err := stripe.Begin(ctx, stripe.Plan{Most: most, Dial: func(ctx context.Context, i int) (transports.Conn, error) {
		raw, err := first, error(nil)
		if i > 0 {
			raw, err = s.another(ctx, from.Addr(), far, list[i%len(list)])
		}
		if err != nil {
			return nil, s.failure("dial", address, err)
		}
		if most > 1 {
			limitUnsent(raw, unsent)
		}
		return s.dialled(ctx, raw, address)
	}})
	if err != nil {
		return nil, s.several("dial", address, err)
	}
	return c, nil
}

// another dials one more connection of a link whose first one leads from there to far.
func (s *settings) another(ctx context.Context, from netip.Addr, far, to netip.AddrPort) (*net.TCPConn, error) {
	if to.Addr().Unmap() != far.Addr().Unmap() {
		soon, cancel := context.WithTimeout(ctx, otherWayTime)
		defer cancel()
		if c, err := s.connect(soon, netip.Addr{}, to); err == nil { // from the address that the kernel's route selects
			return c, nil
		}
	}
	return s.connect(ctx, from, far)
}

// join makes a link's connection of one that was accepted, or adds it to that of a link, and
// returns nil then. It closes raw after an error.
func (l *listener) join(ctx context.Context, s *settings, raw *net.TCPConn) (transports.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	limitUnsent(raw, unsent)
	c, err := s.accepted(ctx, raw, l.address)
	if err != nil {
		return nil, err
	}
	whole, err := l.groups.Accept(ctx, l.streams, c)
	switch {
	case errors.Is(err, stripe.ErrEnded), errors.Is(err, io.EOF):
		return nil, nil //nolint:nilnil // a link has ended while its dialler added this
	case err != nil:
		e := s.several("accept", l.address, err)
		e.Retryable = true
		e.Reason = fmt.Sprintf("%s was turned away: %s", raw.RemoteAddr(), e.Reason)
		return nil, e
	case whole == nil:
		return nil, nil //nolint:nilnil // see above
	case whole == c:
		limitUnsent(raw, 0)
	}
	return whole, nil
}

// linkOf makes a link of a connection: one of the kernel's, if a proc can have that.
func (s *settings) linkOf(c transports.Conn) (link.Link, error) {
	if plain, ok := c.(socket.Conn); ok && s.id == nil {
		l, err := s.link(plain)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	return conn.New(c), nil
}

func (s *settings) several(op, address string, err error) *transports.Error {
	var e *transports.Error
	if errors.As(err, &e) {
		return e
	}
	e = s.failure(op, address, err)
	switch {
	case errors.Is(err, stripe.ErrProtocol):
		e.Code, e.Retryable, e.Reason = transports.CodeProtocol, false, err.Error()
	case errors.Is(err, stripe.ErrGivenUp):
		e.Code, e.Retryable, e.Reason = transports.CodeRefused, true, err.Error()
	}
	return e
}

// limitUnsent bounds the bytes that wait in the kernel for their first transmission; 0 is the
// system's limit. On kernels that cannot bound them, several connections are only slower.
func limitUnsent(c *net.TCPConn, bytes int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // the connection is closed, as the next call shows
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) })
}
