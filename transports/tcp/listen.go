package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

// Listen opens a port at at.Host, or at the setting bind if that is set. The listener's
// address has at.Host in either case, followed by the addresses of the setting also. If
// at.Port is 0 the port is any free one, or the first free one of the setting port_range.
func (t *Transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	s := t.settings.Load()
	wanted := net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	host, err := netip.ParseAddr(at.Host)
	if err != nil {
		return nil, socket.BadAddress(name, "listen", wanted, "the host must be given as an IP address")
	}
	if at.Port < 0 || at.Port > 65535 {
		return nil, socket.BadAddress(name, "listen", wanted, "a port is a number from 0 to 65535")
	}
	if at.Port == 0 && s.lastPort != 0 {
		wanted = net.JoinHostPort(at.Host, fmt.Sprintf("%d-%d", s.firstPort, s.lastPort))
	}
	lns, err := s.open(ctx, host, uint16(at.Port))
	if err != nil {
		e := s.failure("listen", wanted, err)
		if at.Port == 0 && s.lastPort != 0 && errors.Is(err, syscall.EADDRINUSE) {
			e.Reason = socket.RangeInUse
		}
		return nil, e
	}
	port := uint16(lns[0].Addr().(*net.TCPAddr).Port)
	addresses := []string{netip.AddrPortFrom(host, port).String()}
	for _, a := range s.also {
		addresses = append(addresses, netip.AddrPortFrom(a, port).String())
	}
	l := &listener{transport: t, streams: s.streams}
	if at.IPChannel { // for hosts that do not know links of several connections
		l.streams = 1
	}
	l.address = stripe.Address(strings.Join(addresses, ","), l.streams)
	for _, ln := range lns {
		l.ports = append(l.ports, socket.NewAcceptor(ln.(*net.TCPListener)))
	}
	if s.id != nil || len(l.ports) > 1 || l.streams > 1 {
		l.gate = newGate(l.ports, t.waiting, l.admit)
	}
	return l, nil
}

// open listens on the port, or on the first one that the settings allow and that is free at
// all addresses.
func (s *settings) open(ctx context.Context, host netip.Addr, port uint16) ([]net.Listener, error) {
	hosts := append([]netip.Addr{host}, s.also...)
	if s.bind.IsValid() {
		hosts = []netip.Addr{s.bind}
	}
	first, last := port, port
	if port == 0 && s.lastPort != 0 {
		first, last = s.firstPort, s.lastPort
	}
	// A port that is free at one address may be taken at another.
	for tries, p := 0, first; ; tries++ {
		lns, err := s.openAll(ctx, hosts, p)
		again := errors.Is(err, syscall.EADDRINUSE) && (p != last || p == 0 && len(hosts) > 1 && tries < 20)
		if !again {
			return lns, err
		}
		if p != last {
			p++
		}
	}
}

// openAll listens on one port at several addresses: at 0.0.0.0 by IPv4 alone, at :: by both families.
// Port 0 means any port, but the same at each address.
func (s *settings) openAll(ctx context.Context, hosts []netip.Addr, port uint16) (lns []net.Listener, err error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: s.control}
	lc.SetMultipathTCP(false)
	for _, h := range hosts {
		network := "tcp"
		if h.Is4() {
			network = "tcp4"
		}
		ln, err := lc.Listen(ctx, network, netip.AddrPortFrom(h, port).String())
		if err != nil {
			for _, open := range lns {
				open.Close()
			}
			return nil, err
		}
		lns = append(lns, ln)
		port = uint16(ln.Addr().(*net.TCPAddr).Port)
	}
	return lns, nil
}

type listener struct {
	transport *Transport
	address   string
	ports     []*socket.Acceptor
	gate      *gate // nil: one port, whose connections are links without further steps
	streams   int   // most connections of a link
	groups    stripe.Groups
}

// Accept waits for a connection.
func (l *listener) Accept(ctx context.Context) (made link.Link, err error) {
	if l.gate != nil {
		made, err = l.gate.accept(ctx)
	} else {
		var c socket.Conn
		if c, err = l.ports[0].Accept(ctx); err == nil {
			made, err = l.admit(ctx, c.(*net.TCPConn))
		}
	}
	var te *transports.Error
	switch {
	case err == nil:
		return made, nil
	case errors.Is(err, link.ErrClosed):
		return nil, link.ErrClosed
	case errors.As(err, &te):
		return nil, err
	}
	return nil, socket.Failure(name, "accept", l.address, err)
}

// admit makes a link of a connection. It returns nil if the connection was added to a link.
func (l *listener) admit(ctx context.Context, raw *net.TCPConn) (link.Link, error) {
	s := l.transport.settings.Load()
	var c transports.Conn
	var err error
	switch {
	case l.streams > 1:
		c, err = l.join(ctx, s, raw)
	case s.id != nil:
		c, err = s.secureAccept(ctx, raw, l.address)
	default:
		made, err := s.link(raw)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
	if c == nil || err != nil {
		return nil, err
	}
	made, err := s.linkOf(c)
	if errors.Is(err, syscall.ENOTCONN) {
		return nil, nil //nolint:nilnil // its peer has gone already
	}
	return made, err
}

// Address returns "ip:port" or "[ip]:port", or several separated by commas. If links may have
// several connections, their number follows.
func (l *listener) Address() string { return l.address }

// Close implements transports.Listener.
func (l *listener) Close() error {
	if l.gate != nil {
		return l.gate.close()
	}
	return l.ports[0].Close()
}
