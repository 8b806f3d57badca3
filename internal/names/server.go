package names

import (
	"bufio"
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

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/unproved"
	"github.com/openimpi/impi/transports/socket"
)

// ErrConfig means settings with which no server can work.
var ErrConfig = errors.New("the server for names cannot begin")

// Bounds of time, and of connections.
const (
	greetLimit = 10 * time.Second // until a client has shown its key
	idleLimit  = time.Minute      // without a word of a client's, which pings
	writeLimit = 10 * time.Second // for a client to take an answer
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
	// say nothing after that; 0: 10 s and a minute.
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
	clients map[net.Conn]bool
	warned  time.Time
	closed  bool
	wg      sync.WaitGroup // of Handle
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
	return &Server{
		cfg: cfg, tls: t, table: NewTable(cfg.Limits), clients: make(map[net.Conn]bool),
		unknown: unproved.NewRoom[net.Conn](socket.Bounds(maxThere, maxUnknown, 3)),
	}, nil
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
	for nc := range s.clients {
		nc.Close()
	}
	s.mu.Unlock()
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
	c, err := s.greet(nc)
	if err == nil {
		err = s.promote(nc)
	}
	if err != nil {
		s.turnedAway(nc, err)
		return
	}
	defer s.expel(nc)
	by := s.holder()
	err = s.converse(c, by)
	s.mu.Lock()
	n := s.table.Leave(by)
	s.mu.Unlock()
	s.cfg.Logger.Debug("client left", "peer", nc.RemoteAddr(), "names", n, "reason", err)
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
func (s *Server) promote(nc net.Conn) error {
	s.forget(nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case len(s.clients) >= maxClients:
		return fmt.Errorf("there are %d clients, which is the most", len(s.clients))
	}
	s.clients[nc] = true
	return nil
}

func (s *Server) expel(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, nc)
}

func (s *Server) holder() Holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// greet makes the connection a safe one and has the client show its key.
func (s *Server) greet(nc net.Conn) (*tls.Conn, error) {
	nc.SetDeadline(time.Now().Add(s.cfg.Greet))
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
	answer := judge(s.cfg.Auth, b[:], secret)
	if answer.Code != CodeOK {
		if err := s.punish(nc); err != nil {
			return nil, fmt.Errorf("%w: %s (it left before it was told: %w)", ErrDenied, answer.Text, err)
		}
	}
	if _, err := c.Write(answer.Append(nil)); err != nil {
		return nil, err
	}
	if answer.Code != CodeOK {
		_ = c.CloseWrite()
		return nil, fmt.Errorf("%w: %s", ErrDenied, answer.Text)
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

// converse answers a client until it leaves or breaks a rule.
func (s *Server) converse(c *tls.Conn, by Holder) error {
	in := bufio.NewReaderSize(c, maxFrame)
	var buf [maxFrame]byte
	var out []byte
	for {
		_ = c.SetReadDeadline(time.Now().Add(s.cfg.Idle)) // a connection that is over says so when it is read
		b, err := readFrame(in, &buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("it has said nothing for %v", s.cfg.Idle)
		case err != nil:
			return err
		}
		r, err := ParseRequest(b)
		var a Answer
		if err != nil {
			a = Answer{CodeBad, err.Error()}
		} else {
			s.mu.Lock()
			a = s.table.Do(by, &r)
			s.mu.Unlock()
			s.log(c, &r, &a)
		}
		out = a.Append(out[:0])
		_ = c.SetWriteDeadline(time.Now().Add(writeLimit))
		if _, err := c.Write(out); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (s *Server) log(c *tls.Conn, r *Request, a *Answer) {
	switch {
	case r.Op == OpPing:
	case a.Code == CodeOK && r.Op != OpLookup:
		s.cfg.Logger.Info(r.Op.String(), "service", r.Service, "scope", r.Scope, "peer", c.RemoteAddr())
	default:
		s.cfg.Logger.Debug(r.Op.String(), "service", r.Service, "scope", r.Scope, "peer", c.RemoteAddr(), "answer", a.String())
	}
}
