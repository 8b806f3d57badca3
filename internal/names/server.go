package names

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/unproved"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/transports/socket"
)

// ErrConfig means settings with which no server can work.
var ErrConfig = errors.New("the server for names cannot begin")

// Bounds of time, and of connections.
const (
	greetLimit = 10 * time.Second // until a client has shown its key
	idleLimit  = time.Minute      // without an answer of a client's to pings
	maxRequest = 2 << 10          // bytes
	maxUnknown = 256              // clients that have not shown their key
	maxThere   = 64               // of them at one address
	maxClients = 4096             // that have
	warnings   = time.Second      // at least between two about wrong keys
)

// ServerConfig says for whom a server is.
type ServerConfig struct {
	Auth   startup.Auth
	Limits Limits
	Logger hclog.Logger // nil for silence

	// Greet is how long a client may take to show its key, and Idle how long it may
	// leave pings unanswered after that; 0: 10 s and a minute.
	Greet, Idle time.Duration
}

// Server keeps the names of those who connect. A client that says nothing, reads
// nothing or sends nonsense loses its connection and holds up nobody.
type Server struct {
	cfg ServerConfig
	tls *tls.Config

	mu      sync.Mutex
	table   *Table
	last    Holder
	unknown *unproved.Room[net.Conn]
	slow    unproved.Slow // who has shown wrong keys
	clients int
	warned  time.Time
	closed  bool
	wg      sync.WaitGroup // of Handle

	rpc     *grpc.Server
	proved  *rpc.Listener // where it takes clients that have shown their key
	serving sync.Once     // begins with the first of them: a server that nobody has used needs no Close
}

// client is one that has shown its key.
type client struct {
	holder  Holder
	address net.Addr
}

// NewServer makes a server, which uses the connections that it is given by Serve or
// Handle.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Auth.Mask() == 0 {
		return nil, fmt.Errorf("%w: no authentication mechanism is enabled", ErrConfig)
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Greet <= 0 {
		cfg.Greet = greetLimit
	}
	if cfg.Idle <= 0 {
		cfg.Idle = idleLimit
	}
	t, err := serverTLS()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s := &Server{
		cfg: cfg, tls: t, table: NewTable(cfg.Limits),
		unknown: unproved.NewRoom[net.Conn](socket.Bounds(maxThere, maxUnknown, 3)),
		rpc:     rpc.NewServer(rpc.Limits{Request: maxRequest, Greet: cfg.Greet, Silence: cfg.Idle}),
		proved:  rpc.NewListener(),
	}
	proto.RegisterNamesServer(s.rpc, asked{s: s})
	return s, nil
}

// Serve accepts connections at ln, which it closes, until ctx ends or Close.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	defer ln.Close()
	defer s.Close()
	for {
		nc, err := ln.Accept()
		var temporary interface{ Temporary() bool }
		switch {
		case err == nil:
			s.wg.Go(func() { s.handle(nc) })
		case ctx.Err() != nil || s.isClosed():
			return nil
		case errors.As(err, &temporary) && temporary.Temporary():
			select {
			case <-time.After(100 * time.Millisecond): // out of descriptors, say
			case <-ctx.Done():
			}
		default:
			return fmt.Errorf("names: no connections can be accepted any more: %w", err)
		}
	}
}

// Handle serves one connection, which it closes, until its end. It blocks.
func (s *Server) Handle(nc net.Conn) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	s.handle(nc)
}

// Close ends all connections, and with them all names, and waits for that.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for _, nc := range s.unknown.All() {
		nc.Close()
	}
	s.mu.Unlock()
	s.rpc.Stop()
	s.wg.Wait()
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Len is how many names are published.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Len()
}

func (s *Server) handle(nc net.Conn) {
	defer nc.Close()
	if !s.enter(nc) {
		return
	}
	defer s.forget(nc)
	safe, err := s.greet(nc)
	by := client{address: nc.RemoteAddr()}
	if err == nil {
		by.holder, err = s.promote(nc)
	}
	if err != nil {
		s.turnedAway(nc, err)
		return
	}
	s.serving.Do(func() { s.wg.Go(func() { _ = s.rpc.Serve(s.proved) }) }) // until Close
	s.proved.Put(rpc.NewConn(safe, &by))
	s.mu.Lock()
	s.clients--
	n := s.table.Leave(by.holder)
	s.mu.Unlock()
	s.cfg.Logger.Debug("client left", "peer", nc.RemoteAddr(), "names", n)
}

// enter counts a client that has not shown its key. One of the same address that has
// had most time to do so makes room where there are too many: those who have a key
// are quick.
func (s *Server) enter(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if out, evicted := s.unknown.Enter(nc, unproved.FromAddr(nc.RemoteAddr())); evicted {
		out.Close()
	}
	return true
}

func (s *Server) forget(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown.Leave(nc)
}

// punish has a client with a wrong key wait for its answer, longer each time that one
// comes from its address. Others wait for nothing. An error tells that the connection
// is over before.
func (s *Server) punish(nc net.Conn) error {
	now := time.Now()
	s.mu.Lock()
	pause := s.slow.Wrong(unproved.FromAddr(nc.RemoteAddr()), now)
	s.mu.Unlock()
	if pause == 0 {
		return nil
	}
	_ = nc.SetReadDeadline(now.Add(min(pause, s.cfg.Greet/2))) // the answer must come in time
	_, err := io.Copy(io.Discard, nc)                          // it has nothing more to say that counts
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == nil:
		return io.EOF
	}
	return err
}

// promote makes a client of one that has shown its key.
func (s *Server) promote(nc net.Conn) (Holder, error) {
	s.forget(nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, net.ErrClosed
	case s.clients >= maxClients:
		return 0, fmt.Errorf("there are %d clients, which is the most", s.clients)
	}
	s.clients++
	s.last++
	s.table.Enter(s.last)
	return s.last, nil
}

// greet makes the connection a safe one and has the client show its key.
func (s *Server) greet(nc net.Conn) (*tls.Conn, error) {
	_ = nc.SetDeadline(time.Now().Add(s.cfg.Greet)) // a connection that is over says so when it is read
	c := tls.Server(nc, s.tls)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	secret, err := secretOf(c)
	if err != nil {
		return nil, err
	}
	var b [helloSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return nil, err
	}
	v := judge(s.cfg.Auth, b[:], secret)
	if !v.granted {
		if err := s.punish(nc); err != nil {
			return nil, fmt.Errorf("%w: %s (it left before it was told: %w)", ErrDenied, v.text, err)
		}
	}
	if _, err := c.Write(v.append(nil)); err != nil {
		return nil, err
	}
	if !v.granted {
		_ = c.CloseWrite()
		return nil, fmt.Errorf("%w: %s", ErrDenied, v.text)
	}
	return c, nil
}

// turnedAway logs why a client did not get in; what anybody can cause as often as
// they like is said once in a while.
func (s *Server) turnedAway(nc net.Conn, err error) {
	s.mu.Lock()
	now := time.Now()
	warn := errors.Is(err, ErrDenied) && now.Sub(s.warned) >= warnings
	if warn {
		s.warned = now
	}
	s.mu.Unlock()
	level := hclog.Debug
	if warn {
		level = hclog.Warn
	}
	s.cfg.Logger.Log(level, "turned away", "peer", nc.RemoteAddr(), "reason", err)
}

// asked is what one client asks: the requests of proto.Names.
type asked struct {
	proto.UnimplementedNamesServer
	s *Server
}

// do carries a request out and logs it, without owner and port, which are secrets.
func (a asked) do(ctx context.Context, what string, n Name, level hclog.Level, do func(t *Table, by Holder) error) error {
	s, by := a.s, rpc.PeerOf(ctx).(*client)
	s.mu.Lock()
	err := do(s.table, by.holder)
	s.mu.Unlock()
	if err != nil {
		s.cfg.Logger.Debug(what, "service", n.Service, "scope", n.Scope, "peer", by.address, "answer", err)
		return toStatus(err)
	}
	s.cfg.Logger.Log(level, what, "service", n.Service, "scope", n.Scope, "peer", by.address)
	return nil
}

func (a asked) Publish(ctx context.Context, r *proto.PublishRequest) (*proto.Done, error) {
	n, o := nameOf(r.Name), ownerOf(r.Owner)
	return &proto.Done{}, a.do(ctx, "publish", n, hclog.Info, func(t *Table, by Holder) error {
		return t.Publish(by, o, n, string(r.Port), r.Renew)
	})
}

func (a asked) Unpublish(ctx context.Context, r *proto.UnpublishRequest) (*proto.Done, error) {
	n, o := nameOf(r.Name), ownerOf(r.Owner)
	return &proto.Done{}, a.do(ctx, "unpublish", n, hclog.Info, func(t *Table, _ Holder) error { return t.Unpublish(o, n) })
}

func (a asked) Lookup(ctx context.Context, r *proto.ServiceName) (*proto.LookupReply, error) {
	n, port := nameOf(r), ""
	err := a.do(ctx, "look up", n, hclog.Debug, func(t *Table, _ Holder) (err error) {
		port, err = t.Lookup(n)
		return err
	})
	return &proto.LookupReply{Port: []byte(port)}, err
}

func nameOf(n *proto.ServiceName) Name { return Name{string(n.GetScope()), string(n.GetService())} }

func ownerOf(b []byte) *Owner {
	var o Owner
	copy(o[:], b)
	return &o
}
