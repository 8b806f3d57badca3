package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/sdk/support/unproved"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Limits of connections that have not proved the key.
const (
	GreetLimit = 10 * time.Second // for the proof
	MaxUnknown = 256              // connections in all
	maxThere   = 64               // connections from one address
	warnings   = time.Second      // interval between log lines about wrong keys, at least
)

// Conn is an encrypted connection whose two ends have proved the key to each other.
type Conn struct {
	*tls.Conn
	// Refused is the reason why this end does not accept the certificate of the other, if it has an
	// Identity to judge it by; it wraps [identity.ErrPeer]. The other end nevertheless has the key,
	// so it may send its identity and receive the reason of the refusal. The owner of the Conn
	// allows it no more than that.
	Refused error
}

// Connect is the client's side: it makes an encrypted connection over nc to a server that has the
// same key. It reads nothing after the handshake. It blocks until the handshake is complete, or ctx
// ends. If it fails the caller has to close nc.
func (k *Kind) Connect(ctx context.Context, nc net.Conn, keys Keys) (*Conn, error) {
	c := tls.Client(nc, k.clientTLS(keys.Identity))
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.HandshakeContext(ctx); err != nil {
		if strings.HasSuffix(err.Error(), "no application protocol") { // crypto/tls has no error value for this
			err = fmt.Errorf("%w: it does not speak %s", k.Version, k.Protocol)
		}
		return nil, err
	}
	secret, err := k.secretOf(c)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(k.hello(keys, secret)); err != nil {
		return nil, err
	}
	v, err := readVerdict(c)
	if err != nil {
		return nil, err
	}
	if err := k.believe(keys, v, secret); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return k.conn(c, keys.Identity, x509.ExtKeyUsageServerAuth), nil
}

// Config configures a Server.
type Config struct {
	*Kind
	Keys
	Greet  time.Duration // for proving the key; 0: GreetLimit
	Files  int           // descriptors per connection, which limits their number
	Logger hclog.Logger  // nil for silence
}

// Server accepts connections. Its methods may be called by several goroutines.
type Server struct {
	cfg Config
	tls *tls.Config

	mu      sync.Mutex
	unknown *unproved.Set[net.Conn]
	slow    unproved.Slow // addresses that have sent wrong keys
	warned  time.Time
	closed  bool
}

// New makes a Server with the time limits and certificates of cfg. It fails if the certificates
// cannot be used.
func New(cfg Config) (*Server, error) {
	if cfg.Greet <= 0 {
		cfg.Greet = GreetLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	t, err := cfg.serverTLS(cfg.Identity)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, tls: t, unknown: unproved.NewSet[net.Conn](socket.Bounds(maxThere, MaxUnknown, cfg.Files))}, nil
}

// Accept makes an encrypted connection over nc to a client that has the key. It blocks until the
// client has proved the key. If it fails, Accept has logged why, and the caller has to close nc.
func (s *Server) Accept(nc net.Conn) (*Conn, error) {
	if !s.wait(nc) {
		return nil, net.ErrClosed
	}
	defer s.forget(nc)
	c, err := s.greet(nc)
	if err != nil {
		s.turnedAway(nc, err)
		return nil, err
	}
	return c, nil
}

// Close closes the connections that have not proved the key. It refuses all that follow.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, nc := range s.unknown.All() {
		_ = nc.Close()
	}
}

// wait counts a client that has not proved the key. If there are too many, it closes the
// oldest of the same address: clients with a key prove it quickly.
func (s *Server) wait(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if out, evicted := s.unknown.Enter(nc, unproved.FromAddr(nc.RemoteAddr())); evicted {
		_ = out.Close()
	}
	return true
}

func (s *Server) forget(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown.Leave(nc)
}

func (s *Server) greet(nc net.Conn) (*Conn, error) {
	_ = nc.SetDeadline(time.Now().Add(s.cfg.Greet)) // a connection that has ended fails when it is read
	c := tls.Server(nc, s.tls)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	secret, err := s.cfg.secretOf(c)
	if err != nil {
		return nil, err
	}
	var b [helloSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return nil, err
	}
	v := s.cfg.judge(s.cfg.Keys, b[:], secret)
	if !v.granted {
		if err := s.punish(nc); err != nil {
			return nil, fmt.Errorf("%w: %s (it left before it was told: %w)", s.cfg.Denied, v.text, err)
		}
	}
	if _, err := c.Write(v.append(nil)); err != nil {
		return nil, err
	}
	if !v.granted {
		_ = c.CloseWrite()
		return nil, fmt.Errorf("%w: %s", s.cfg.Denied, v.text)
	}
	return s.cfg.conn(c, s.cfg.Identity, x509.ExtKeyUsageClientAuth), nil
}

// punish delays the answer to a client with a wrong key, longer each time for its address.
// It does not delay other clients. It returns an error if the connection ends before.
func (s *Server) punish(nc net.Conn) error {
	now := time.Now()
	s.mu.Lock()
	pause := s.slow.Wrong(unproved.FromAddr(nc.RemoteAddr()), now)
	s.mu.Unlock()
	if pause == 0 {
		return nil
	}
	_ = nc.SetReadDeadline(now.Add(min(pause, s.cfg.Greet/2))) // so that the answer comes in time
	_, err := io.Copy(io.Discard, nc)                          // the client's further bytes are ignored
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == nil:
		return io.EOF
	}
	return err
}

// turnedAway logs why a client was refused, at most once in a while if anybody can cause
// it.
func (s *Server) turnedAway(nc net.Conn, err error) {
	s.mu.Lock()
	now := time.Now()
	warn := errors.Is(err, s.cfg.Denied) && now.Sub(s.warned) >= warnings
	if warn {
		s.warned = now
	}
	s.mu.Unlock()
	level := hclog.Debug
	if warn {
		level = hclog.Warn
	}
	s.cfg.Logger.Log(level, "refused a client", "peer", nc.RemoteAddr(), "reason", err)
}
