package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/auth"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// ErrConfig means settings that a server cannot use.
var ErrConfig = errors.New("the server for names cannot start")

// Limits of time, and of connections.
const (
	idleLimit  = time.Minute // for a client's answer to pings
	maxRequest = 2 << 10     // bytes
	maxClients = 4096        // connections at a time
)

// ServerConfig says whom a server serves, how many names it keeps, and how long it waits.
type ServerConfig struct {
	Auth   startup.Auth
	Limits names.Limits
	Logger hclog.Logger // nil for silence

	// Greet is the maximum time for a client to prove the key, and Idle the maximum time without an
	// answer to pings after that; 0 means 10 s and a minute.
	Greet, Idle time.Duration
}

// Server keeps the names of its clients. A client that sends nothing, reads nothing or
// breaks the protocol loses its connection and delays no other client.
type Server struct {
	cfg  ServerConfig
	auth *auth.Server

	mu      sync.Mutex
	table   *names.Table
	last    names.Publisher
	clients int
	closed  bool
	wg      sync.WaitGroup // running calls of Handle

	rpc     *grpc.Server
	proved  *rpc.Listener // source of clients that have proved the key
	serving sync.Once     // starts with the first client: a server that was never used needs no Close
}

type admitted struct {
	holder  names.Publisher
	address net.Addr
}

// NewServer makes a server. It serves the connections of Serve and Handle.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Auth.Mask() == 0 {
		return nil, fmt.Errorf("%w: no authentication mechanism is enabled", ErrConfig)
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Greet <= 0 {
		cfg.Greet = auth.GreetLimit
	}
	if cfg.Idle <= 0 {
		cfg.Idle = idleLimit
	}
	d, err := auth.New(auth.Config{Kind: &kind, Keys: keysOf(cfg.Auth), Greet: cfg.Greet, Files: 3, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s := &Server{
		cfg: cfg, auth: d, table: names.NewTable(cfg.Limits),
		rpc:    rpc.NewServer(rpc.Limits{Request: maxRequest, Greet: cfg.Greet, Silence: cfg.Idle}),
		proved: rpc.NewListener(),
	}
	proto.RegisterNamesServer(s.rpc, asked{s: s})
	return s, nil
}

// Serve accepts connections from ln until ctx ends or Close, and closes ln.
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
			case <-time.After(100 * time.Millisecond): // for example, out of descriptors
			case <-ctx.Done():
			}
		default:
			return fmt.Errorf("names: cannot accept connections any more: %w", err)
		}
	}
}

// Handle serves one connection until its end, and closes it. It blocks.
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

// Close ends all connections, and with them all names, and waits until they have ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.auth.Close()
	s.rpc.Stop()
	s.wg.Wait()
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Len returns the number of published names.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Len()
}

func (s *Server) handle(nc net.Conn) {
	defer nc.Close()
	safe, err := s.auth.Accept(nc)
	if err != nil {
		return
	}
	by := admitted{address: nc.RemoteAddr()}
	if by.holder, err = s.promote(); err != nil {
		s.cfg.Logger.Debug("refused a client", "peer", nc.RemoteAddr(), "reason", err)
		return
	}
	s.serving.Do(func() { s.wg.Go(func() { _ = s.rpc.Serve(s.proved) }) }) // until Close
	s.proved.Put(rpc.NewConn(safe, &by))
	s.mu.Lock()
	s.clients--
	n := s.table.RemovePublisher(by.holder)
	s.mu.Unlock()
	s.cfg.Logger.Debug("client left", "peer", nc.RemoteAddr(), "names", n)
}

func (s *Server) promote() (names.Publisher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, net.ErrClosed
	case s.clients >= maxClients:
		return 0, fmt.Errorf("there are %d clients already, the most allowed", s.clients)
	}
	s.clients++
	s.last++
	s.table.AddPublisher(s.last)
	return s.last, nil
}

type asked struct {
	proto.UnimplementedNamesServer
	s *Server
}

// do carries out a request and logs it, without owner and port, which are secrets.
func (a asked) do(ctx context.Context, what string, n names.Name, level hclog.Level, do func(t *names.Table, by names.Publisher) error) error {
	s, by := a.s, rpc.PeerOf(ctx).(*admitted)
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
	return &proto.Done{}, a.do(ctx, "publish", n, hclog.Info, func(t *names.Table, by names.Publisher) error {
		return t.Publish(by, o, n, string(r.Port), r.Renew)
	})
}

func (a asked) Unpublish(ctx context.Context, r *proto.UnpublishRequest) (*proto.Done, error) {
	n, o := nameOf(r.Name), ownerOf(r.Owner)
	return &proto.Done{}, a.do(ctx, "unpublish", n, hclog.Info, func(t *names.Table, _ names.Publisher) error { return t.Unpublish(o, n) })
}

func (a asked) Lookup(ctx context.Context, r *proto.ServiceName) (*proto.LookupReply, error) {
	n, port := nameOf(r), ""
	err := a.do(ctx, "look up", n, hclog.Debug, func(t *names.Table, _ names.Publisher) (err error) {
		port, err = t.Lookup(n)
		return err
	})
	return &proto.LookupReply{Port: []byte(port)}, err
}

func nameOf(n *proto.ServiceName) names.Name {
	return names.Name{Scope: string(n.GetScope()), Service: string(n.GetService())}
}

func ownerOf(b []byte) *names.Owner {
	var o names.Owner
	copy(o[:], b)
	return &o
}
