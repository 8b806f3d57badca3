package names

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
)

// How a request fails.
var (
	// ErrUnreachable means that there was no answer of the server's.
	ErrUnreachable = errors.New("the server for names does not answer")
	// ErrDenied means that one side does not have the other's key.
	ErrDenied = errors.New("the server for names and this job do not have the same key")
	// ErrPublished means that the service is published already.
	ErrPublished = errors.New("the service is published already")
	// ErrUnknown means that there is no such service, or none of this job's.
	ErrUnknown = errors.New("this job has published no such service")
	// ErrNotFound means that no such service is published.
	ErrNotFound = errors.New("no such service is published")
	// ErrFull means that there are too many names.
	ErrFull = errors.New("the server for names has no room")
)

// How often a connection is used at least, after which time one that is not needed is
// closed, and the pauses before one that broke is made again.
const (
	pingEvery  = 5 * time.Second
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

// Settings say how to reach a server.
type Settings struct {
	Server string // "host:port"
	Auth   startup.Auth
	Owner  Owner

	// Dial makes the connection; nil is TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Ping replaces how often the connection is used at least, and First the pause before
	// it is made again; 0: 5 s and 500 ms.
	Ping, First time.Duration

	Logger hclog.Logger // nil for silence
}

// Session is a node's end: it connects when it is first used, and keeps the
// connection while it holds names. One that breaks is made again, and the names are
// published again.
type Session struct {
	set  Settings
	ctx  context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once     // of Close
	turn chan struct{} // holds what follows, for who has taken it out

	conn    *conn
	mine    map[name]string // ports, by what stands for them
	keeping bool            // keep runs
	used    bool            // since keep looked
}

// conn is a connection whose ends have proved who they are.
type conn struct {
	*tls.Conn
	in  *bufio.Reader
	buf [maxFrame]byte
}

type name struct{ scope, service string }

// NewSession makes a session. It does not connect yet.
func NewSession(set Settings) *Session {
	if set.Logger == nil {
		set.Logger = hclog.NewNullLogger()
	}
	if set.Dial == nil {
		set.Dial = (&net.Dialer{}).DialContext
	}
	if set.Ping <= 0 {
		set.Ping = pingEvery
	}
	if set.First <= 0 {
		set.First = firstPause
	}
	s := &Session{set: set, turn: make(chan struct{}, 1), mine: make(map[name]string)}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.turn <- struct{}{}
	return s
}

// Close ends the connection, and with it the names. Requests that are under way
// fail.
func (s *Session) Close() {
	s.end()
	s.once.Do(func() {
		<-s.turn // and nobody gets it again
		s.hangUp()
	})
	s.wg.Wait()
}

// Publish has service stand for port.
func (s *Session) Publish(ctx context.Context, scope, service, port string) error {
	r := Request{Op: OpPublish, Owner: s.set.Owner, Scope: scope, Service: service, Port: port}
	_, err := s.do(ctx, r, func() { s.mine[name{scope, service}] = port })
	return err
}

// Unpublish ends that. Any site of the job can do it.
func (s *Session) Unpublish(ctx context.Context, scope, service string) error {
	r := Request{Op: OpUnpublish, Owner: s.set.Owner, Scope: scope, Service: service}
	_, err := s.do(ctx, r, func() { delete(s.mine, name{scope, service}) })
	return err
}

// Lookup gives the port that service stands for.
func (s *Session) Lookup(ctx context.Context, scope, service string) (port string, err error) {
	return s.do(ctx, Request{Op: OpLookup, Scope: scope, Service: service}, func() {})
}

// do carries a request out, and done if it went well. A connection may have broken
// since it was last used: then it is made again, once.
func (s *Session) do(ctx context.Context, r Request, done func()) (string, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(net.ErrClosed) })()
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return "", fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
	if s.ctx.Err() != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreachable, net.ErrClosed)
	}
	s.used = true
	old := s.conn != nil
	a, err := s.ask(ctx, r)
	if err != nil && old && ctx.Err() == nil && !errors.Is(err, ErrDenied) {
		if r.Op == OpPublish {
			r.Op = OpRenew // in case that it was heard
		}
		a, err = s.ask(ctx, r)
	}
	if err != nil {
		return "", err
	}
	s.keep()
	if err := a.err(); err != nil {
		return "", err
	}
	done()
	return a.Text, nil
}

// ask sends a request, by a connection that it makes if there is none, and waits for
// the answer. The caller has the turn.
func (s *Session) ask(ctx context.Context, r Request) (Answer, error) {
	if s.conn == nil {
		if err := s.connect(ctx); err != nil {
			return Answer{}, err
		}
	}
	a, err := s.conn.ask(ctx, &r)
	if err != nil {
		s.hangUp()
		return a, s.unreachable(ctx, err)
	}
	return a, nil
}

func (s *Session) hangUp() {
	if s.conn != nil {
		s.conn.Conn.NetConn().Close()
		s.conn = nil
	}
}

func (s *Session) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, s.set.Server, err)
}

// connect makes a connection and publishes by it what this session has published.
func (s *Session) connect(ctx context.Context) error {
	nc, err := s.set.Dial(ctx, "tcp", s.set.Server)
	if err != nil {
		return s.unreachable(ctx, err)
	}
	c, err := greet(ctx, nc, s.set.Auth)
	if err == nil {
		err = s.renew(ctx, c)
	}
	switch {
	case errors.Is(err, ErrDenied):
		nc.Close()
		return fmt.Errorf("%w (%s)", err, s.set.Server)
	case err != nil:
		nc.Close()
		return s.unreachable(ctx, err)
	}
	s.conn = c
	return nil
}

// renew publishes again. A name that another job has taken meanwhile is lost.
func (s *Session) renew(ctx context.Context, c *conn) error {
	for n, port := range s.mine {
		a, err := c.ask(ctx, &Request{Op: OpRenew, Owner: s.set.Owner, Scope: n.scope, Service: n.service, Port: port})
		if err != nil {
			return err
		}
		if err := a.err(); err != nil {
			delete(s.mine, n)
			s.set.Logger.Warn("a name is lost", "service", n.service, "scope", n.scope, "reason", err)
		}
	}
	return nil
}

// greet is a client's side of the beginning.
func greet(ctx context.Context, nc net.Conn, auth startup.Auth) (*conn, error) {
	tc := tls.Client(nc, clientTLS())
	if err := tc.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	secret, err := secretOf(tc)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: tc, in: bufio.NewReaderSize(tc, maxFrame)}
	answer, err := c.say(ctx, hello(auth, secret))
	if err != nil {
		return nil, err
	}
	return c, believe(auth, answer, secret)
}

func (c *conn) ask(ctx context.Context, r *Request) (Answer, error) {
	return c.say(ctx, r.Append(nil))
}

// say sends bytes and reads the answer, until ctx ends.
func (c *conn) say(ctx context.Context, b []byte) (a Answer, err error) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.NetConn().SetDeadline(time.Unix(1, 0))
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended
			c.NetConn().SetDeadline(time.Time{}) // the answer may have come all the same
		}
	}()
	if _, err := c.Write(b); err != nil {
		return a, err
	}
	if b, err = readFrame(c.in, &c.buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return a, err
	}
	return ParseAnswer(b)
}

// err is what an answer means.
func (a *Answer) err() error {
	var kind error
	switch a.Code {
	case CodeOK:
		return nil
	case CodePublished:
		kind = ErrPublished
	case CodeUnknown:
		kind = ErrUnknown
	case CodeNotFound:
		kind = ErrNotFound
	case CodeFull:
		kind = ErrFull
	case CodeDenied:
		kind = ErrDenied
	default:
		kind = ErrMessage
	}
	return fmt.Errorf("%w: %s", kind, a.Text)
}
