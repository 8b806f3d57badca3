package quic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

// backlog is how many links may wait for Accept, and streams for a place in a link.
const backlog = 1024

// refusalsEvery is the minimum interval between two reports of refused peers, which
// anybody can cause.
const refusalsEvery = time.Second

type listener struct {
	t        *Transport
	settings *settings
	endpoint *quic.Transport
	quic     *quic.Listener
	address  string
	groups   stripe.Groups
	made     chan transports.Conn
	waiting  chan struct{} // has an element per waiting link
	refused  chan error
	closed   chan struct{}

	mu     sync.Mutex
	over   bool
	conns  map[*connection]struct{}
	told   time.Time // when a refused peer was last reported
	untold int       // refused peers since then
}

// Listen opens a UDP port at at.Host, or at the setting bind if that is set; the listener's
// address has at.Host in either case. If at.Port is 0 the port is any free one, or the
// first free one of the setting port_range.
func (t *Transport) Listen(_ context.Context, at transports.ListenSpec) (transports.Listener, error) {
	s := t.settings.Load()
	wanted := net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	if s == nil {
		return nil, socket.BadAddress(name, "listen", wanted, errNotConfigured.Error())
	}
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
	udp, err := s.openPort(host, uint16(at.Port))
	if err != nil {
		e := s.failure("listen", wanted, err)
		if at.Port == 0 && s.lastPort != 0 && errors.Is(err, syscall.EADDRINUSE) {
			e.Reason = socket.RangeInUse
		}
		return nil, e
	}
	port := uint16(udp.LocalAddr().(*net.UDPAddr).Port)
	l := &listener{
		t: t, settings: s, endpoint: endpoint(portSocket{udp}), address: stripe.Address(netip.AddrPortFrom(host, port).String(), s.streams),
		made: make(chan transports.Conn), waiting: make(chan struct{}, backlog), refused: make(chan error, 1),
		closed: make(chan struct{}), conns: make(map[*connection]struct{}),
	}
	if err := l.start(); err != nil {
		closeEndpoint(l.endpoint)
		return nil, s.failure("listen", wanted, err)
	}
	return l, nil
}

// openPort binds the port, or the first free one that the settings allow.
func (s *settings) openPort(host netip.Addr, port uint16) (*net.UDPConn, error) {
	if s.bind.IsValid() {
		host = s.bind
	}
	first, last := port, port
	if port == 0 && s.lastPort != 0 {
		first, last = s.firstPort, s.lastPort
	}
	for p := first; ; p++ {
		udp, err := s.bindUDP(netip.AddrPortFrom(host, p))
		if err == nil || p == last || !errors.Is(err, syscall.EADDRINUSE) {
			return udp, err
		}
	}
}

func (l *listener) start() (err error) {
	tr := l.endpoint
	tr.StatelessResetKey = l.settings.resetKey()
	tr.ConnContext = l.observe
	config := l.settings.config(maxLinks)
	config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) {
		if l.isClosed() {
			return nil, link.ErrClosed
		}
		return config, nil
	}
	secure := l.settings.id.Server(protocolName)
	secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return l.t.settings.Load().id.Server(protocolName), nil // which Configure may have replaced
	}
	if l.quic, err = tr.Listen(secure, config); err != nil {
		return err
	}
	l.t.mu.Lock()
	l.t.listeners[l] = struct{}{}
	l.t.mu.Unlock()
	go l.serve()
	return nil
}

// observe reports handshakes that fail because of the peer's identity.
func (l *listener) observe(ctx context.Context, peer *quic.ClientInfo) (context.Context, error) {
	context.AfterFunc(ctx, func() {
		var te *quic.TransportError
		if cause := context.Cause(ctx); errors.As(cause, &te) && te.ErrorCode.IsCryptoError() {
			l.reportRefused(peer.RemoteAddr, te)
		}
	})
	return ctx, nil
}

// reportRefused makes Accept report a peer that was refused, or that has refused us.
func (l *listener) reportRefused(peer net.Addr, te *quic.TransportError) {
	code, _, reason := l.settings.judgeTransport(te)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.untold++; time.Since(l.told) < refusalsEvery {
		return
	}
	verdict := "refused a client"
	if te.Remote {
		verdict = "gone again"
	}
	e := &transports.Error{
		Transport: name, Op: "accept", Address: l.address, Code: code, Retryable: true, Cause: te,
		Reason: fmt.Sprintf("%s was %s: %s", peer, verdict, reason),
	}
	if l.untold > 1 {
		e.Reason += fmt.Sprintf("; %d in all since the last report", l.untold)
	}
	select {
	case l.refused <- e:
		l.told, l.untold = time.Now(), 0
	default:
	}
}

// serve accepts connections until the listener is closed and has none.
func (l *listener) serve() {
	for {
		qc, err := l.quic.Accept(context.Background())
		if err != nil {
			return
		}
		c := newConnection(qc, l.settings, l.release)
		l.mu.Lock()
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		l.t.counts.add(qc)
		context.AfterFunc(qc.Context(), func() {
			l.t.counts.remove(qc)
			l.mu.Lock()
			delete(l.conns, c)
			l.mu.Unlock()
			l.release()
		})
		go l.take(c)
		go c.watch(nil)
		l.release() // the listener may be closed by now
	}
}

// take serves a connection: first its control stream, then its links.
func (l *listener) take(c *connection) {
	control, err := c.qc.AcceptStream(c.qc.Context())
	if err != nil {
		return
	}
	var version [1]byte
	if _, err := io.ReadFull(control, version[:]); err != nil || version[0] != controlVersion {
		c.close(closeRules, fmt.Sprintf("version %d of the control stream is not known here", version[0]))
		return
	}
	go c.runControl(control)
	for {
		s, err := c.qc.AcceptStream(c.qc.Context())
		if err != nil {
			return
		}
		go l.admit(c, s)
	}
}

// admit answers a stream that is to become a link, and passes it to Accept.
func (l *listener) admit(c *connection, s *quic.Stream) {
	var hello [1]byte
	_ = s.SetReadDeadline(time.Now().Add(l.settings.handshake)) // always nil
	if _, err := io.ReadFull(s, hello[:]); err != nil || hello[0] != linkOpen {
		turnAway(s, resetClosed)
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	// The peer may have been judged by the certificates of an earlier Configure.
	if id := l.t.settings.Load().id; id != l.settings.id && id.Judge(c.qc.ConnectionState().TLS.PeerCertificates, x509.ExtKeyUsageClientAuth) != nil {
		turnAway(s, resetIdentity)
		return
	}
	select {
	case <-l.closed:
		turnAway(s, resetClosed)
		return
	case l.waiting <- struct{}{}:
	default:
		turnAway(s, resetBusy)
		return
	}
	defer func() { <-l.waiting }()
	c.begin(s.StreamID())
	x := &stream{s: s, of: c}
	if _, err := s.Write([]byte{linkTaken}); err != nil {
		x.Break()
		return
	}
	made := transports.Conn(x)
	if l.settings.streams > 1 {
		if made = l.join(x); made == nil {
			return
		}
	}
	select {
	case l.made <- made:
	case <-l.closed:
		conn.Break(made)
	}
}

// join makes a link's connection of a stream. It returns nil if the stream was added to another
// link's connection, or refused.
func (l *listener) join(x *stream) transports.Conn {
	ctx, cancel := context.WithTimeout(x.s.Context(), l.settings.handshake)
	defer cancel()
	go func() {
		select {
		case <-l.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	whole, _ := l.groups.Accept(ctx, l.settings.streams, x) // the dialler learns that the connection was given up
	return whole
}

func turnAway(s *quic.Stream, code quic.StreamErrorCode) {
	s.CancelRead(stopClosed)
	s.CancelWrite(code)
}

// Accept waits for a link. A refused peer is an error, after which the listener works as
// before.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	if l.isClosed() {
		return nil, link.ErrClosed
	}
	select {
	case x := <-l.made:
		return conn.New(x), nil
	case err := <-l.refused:
		return nil, err
	case <-l.closed:
		return nil, link.ErrClosed
	case <-ctx.Done():
		return nil, l.settings.failure("accept", l.address, ctx.Err())
	}
}

// Address is "ip:port" or "[ip]:port". If links may have several connections, their number follows.
func (l *listener) Address() string { return l.address }

// Close stops accepting. The UDP port is closed with the last link.
func (l *listener) Close() error {
	l.mu.Lock()
	if !l.over {
		l.over = true
		close(l.closed)
	}
	l.mu.Unlock()
	l.release()
	return nil
}

func (l *listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// release closes the port of a closed listener when it has no links any more.
func (l *listener) release() {
	if !l.isClosed() {
		return
	}
	for _, c := range l.connections() {
		if c.busy() > 0 {
			return
		}
	}
	go l.end() // in a goroutine: end waits for the callers of this function
}

func (l *listener) end() {
	for _, c := range l.connections() {
		c.close(closeUnused, "the listener is closed")
	}
	l.t.mu.Lock()
	_, mine := l.t.listeners[l]
	delete(l.t.listeners, l)
	l.t.mu.Unlock()
	if mine {
		_ = l.quic.Close() // ends serve
		closeEndpoint(l.endpoint)
	}
}

func (l *listener) connections() []*connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
}
