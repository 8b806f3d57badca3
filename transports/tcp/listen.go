package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

// Listen opens a port at at.Host, or at the setting bind if there is one; the
// address that peers get has at.Host in either case. at.Port 0 is any port, or
// the first free one of the setting port_range.
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
	ln, err := s.open(ctx, host, uint16(at.Port))
	if err != nil {
		return nil, socket.Failure(name, "listen", wanted, err)
	}
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	return &listener{
		transport: t,
		accept:    socket.NewAcceptor(ln.(*net.TCPListener)),
		address:   netip.AddrPortFrom(host, port).String(),
	}, nil
}

// open listens on the port, or on the first free one that the settings allow.
func (s *settings) open(ctx context.Context, host netip.Addr, port uint16) (net.Listener, error) {
	if s.bind.IsValid() {
		host = s.bind
	}
	first, last := port, port
	if port == 0 && s.lastPort != 0 {
		first, last = s.firstPort, s.lastPort
	}
	lc := net.ListenConfig{KeepAlive: -1, Control: s.control}
	lc.SetMultipathTCP(false)
	for p := first; ; p++ {
		ln, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(host, p).String())
		if err == nil || p == last || !errors.Is(err, syscall.EADDRINUSE) {
			return ln, err
		}
	}
}

// listener is an open port.
type listener struct {
	transport *Transport
	accept    *socket.Acceptor
	address   string
}

// Accept waits for a connection.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	conn, err := l.accept.Accept(ctx)
	if errors.Is(err, link.ErrClosed) {
		return nil, link.ErrClosed
	}
	if err != nil {
		return nil, socket.Failure(name, "accept", l.address, err)
	}
	made, err := l.transport.settings.Load().link(conn)
	if err != nil {
		return nil, socket.Failure(name, "accept", l.address, err)
	}
	return made, nil
}

// Address is "ip:port" or "[ip]:port".
func (l *listener) Address() string { return l.address }

// Close closes the port.
func (l *listener) Close() error { return l.accept.Close() }
