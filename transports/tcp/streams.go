package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
	"github.com/openimpi/impi/transports/stripe"
)

const (
	// streamsMark comes in an address before the number of connections of a link.
	streamsMark = "/"
	// unsent is how many bytes of a connection wait in the kernel for their first transmission. More
	// would come late if this connection is slower than the others, which then wait for it.
	unsent = 128 << 10
	// otherWayTime is how long a connection to another of the peer's addresses may take.
	otherWayTime = time.Second
)

// opened makes a connection one that can be part of a link.
func (s *settings) opened(raw *net.TCPConn) (transports.Conn, error) {
	if err := s.tuneConn(raw); err != nil {
		raw.Close()
		return nil, err
	}
	return socket.Heed(raw).(transports.Conn), nil
}

// dialled makes a connection of one that was dialled. It closes it after an error.
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

// dialSeveral makes one connection of first and count-1 others, which are dialled to the peer's addresses
// in turn, or to that of the first where the others do not answer. It closes them all after an error.
func (s *settings) dialSeveral(ctx context.Context, first *net.TCPConn, list []netip.AddrPort, count int, address string) (transports.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conns, errs := make([]transports.Conn, count), make([]error, count)
	var wg sync.WaitGroup
	for i, hello := range stripe.Hellos(count) {
		wg.Go(func() {
			raw, err := first, error(nil)
			if i > 0 {
				raw, err = s.another(ctx, first, list, i)
			}
			if err != nil {
				errs[i] = s.failure("dial", address, err)
			} else if conns[i], errs[i] = s.dialled(ctx, raw, address); errs[i] == nil {
				errs[i] = s.greet(ctx, conns[i], hello, address)
			}
			if errs[i] != nil {
				cancel() // the others have no use without it
			}
		})
	}
	wg.Wait()
	err := firstCause(errs)
	if err == nil {
		if err = within(ctx, conns[0], func() error { return stripe.Await(conns[0]) }); err == nil {
			return stripe.New(conns), nil
		}
		e := s.failure("dial", address, err)
		if errors.Is(err, stripe.ErrProtocol) {
			e.Code, e.Retryable = transports.CodeProtocol, false
		}
		err = e
	}
	for _, c := range conns {
		if c != nil {
			_ = c.Close() // the error is reported already
		}
	}
	return nil, err
}

// greet says on a connection which one it is.
func (s *settings) greet(ctx context.Context, c transports.Conn, hello stripe.Hello, address string) error {
	if err := limitUnsent(c); err != nil {
		return s.failure("dial", address, err)
	}
	if err := within(ctx, c, func() error { return hello.Say(c) }); err != nil {
		return s.failure("dial", address, err)
	}
	return nil
}

// firstCause returns the error because of which the others were given up.
func firstCause(errs []error) (first error) {
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// another dials connection i of a link.
func (s *settings) another(ctx context.Context, first *net.TCPConn, list []netip.AddrPort, i int) (*net.TCPConn, error) {
	near, far := first.LocalAddr().(*net.TCPAddr).AddrPort(), first.RemoteAddr().(*net.TCPAddr).AddrPort()
	if to := list[i%len(list)]; to.Addr().Unmap() != far.Addr().Unmap() {
		soon, cancel := context.WithTimeout(ctx, otherWayTime)
		defer cancel()
		if c, err := s.connect(soon, netip.Addr{}, to); err == nil { // from where the kernel's route to it begins
			return c, nil
		}
	}
	return s.connect(ctx, near.Addr(), far)
}

// join makes a connection of one that was accepted and the others of its link, once all are there. For all
// but one of them it returns nil. It closes raw after an error.
func (l *listener) join(ctx context.Context, s *settings, raw *net.TCPConn) (transports.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	c, err := s.accepted(ctx, raw, l.address)
	if err != nil {
		return nil, err
	}
	conns, err := l.meet(ctx, c)
	if err != nil {
		_ = c.Close()
		e := s.turnedAway(raw, l.address, err)
		if errors.Is(err, stripe.ErrProtocol) {
			e.Code = transports.CodeProtocol
		}
		return nil, e
	}
	if conns == nil {
		return nil, nil //nolint:nilnil // see above
	}
	if err := within(ctx, conns[0], func() error { return stripe.Welcome(conns[0]) }); err != nil {
		for _, c := range conns {
			_ = c.Close()
		}
		return nil, s.turnedAway(raw, l.address, err)
	}
	return stripe.New(conns), nil
}

// meet waits for the other connections of c's link.
func (l *listener) meet(ctx context.Context, c transports.Conn) ([]transports.Conn, error) {
	if err := limitUnsent(c); err != nil {
		return nil, err
	}
	var h stripe.Hello
	err := within(ctx, c, func() (err error) {
		h, err = stripe.Hear(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if h.Count != l.streams {
		return nil, fmt.Errorf("%w: it says that a link has %d connections, and it is %d here", stripe.ErrProtocol, h.Count, l.streams)
	}
	return l.groups.Join(ctx, h, c)
}

// limitUnsent bounds the bytes that wait in the kernel before they are sent first.
func limitUnsent(c net.Conn) error {
	for {
		if raw, ok := c.(*net.TCPConn); ok {
			control, err := raw.SyscallConn()
			if err != nil {
				return err
			}
			cerr := control.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
			})
			return errors.Join(cerr, err)
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return fmt.Errorf("%T is not TCP", c)
		}
		c = above.NetConn()
	}
}
