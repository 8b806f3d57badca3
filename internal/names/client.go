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
	"github.com/openimpi/impi/internal/rpc/proto"
)

// Times after which an unused connection is closed, and pauses before a broken one is made
// again.
const (
	idlePause  = 5 * time.Second
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

const maxAnswer = 4 << 10 // bytes

// Settings say how to reach a server.
type Settings struct {
	Server string // "host:port"
	Auth   startup.Auth
	Owner  names.Owner

	// Dial makes the connection; nil means TCP.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Logger hclog.Logger // nil for silence
}

// Client is a node's end: it connects when it is first used, and keeps the connection
// while it has published names. A connection that breaks is made again, and the names are
// published again.
type Client struct {
	set  Settings
	ctx  context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once     // of Close
	turn chan struct{} // holds one element, taken to use the fields below

	conn    *conn // nil if there is none
	mine    names.Client
	keeping bool // the goroutine of look runs
}

type conn struct {
	proto.NamesClient
	rpc *grpc.ClientConn
	net *rpc.Conn
}

// NewClient makes a client without a connection.
func NewClient(set Settings) *Client {
	if set.Logger == nil {
		set.Logger = hclog.NewNullLogger()
	}
	if set.Dial == nil {
		set.Dial = (&net.Dialer{}).DialContext
	}
	s := &Client{set: set, turn: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.turn <- struct{}{}
	return s
}

// Close ends the connection, and with it the names. Pending requests fail.
func (s *Client) Close() {
	s.end()
	s.once.Do(func() {
		<-s.turn // never returned: later requests fail
		s.hangUp()
	})
	s.wg.Wait()
}

// Publish publishes port under the name service, until Unpublish or Close: after a connection has
// broken, the next one publishes it again (MPI-4.1, 11.9.4).
func (s *Client) Publish(ctx context.Context, scope, service, port string) error {
	n := names.Name{Scope: scope, Service: service}
	return s.do(ctx, n, port, func(ctx context.Context, again bool) error { return s.publish(ctx, s.mine.Request(n, port, again)) })
}

func (s *Client) publish(ctx context.Context, r names.Request) error {
	_, err := s.conn.Publish(ctx, &proto.PublishRequest{Name: messageOf(r.Name), Port: []byte(r.Port), Owner: s.set.Owner[:], Renew: r.Renew})
	reason, answered := fromStatus(err)
	if answered && s.mine.TakeAnswer(r, reason) {
		s.set.Logger.Warn("a name is lost", "service", r.Name.Service, "scope", r.Name.Scope, "reason", reason)
	}
	return err
}

// Unpublish removes a name. Any site of the job may do that.
func (s *Client) Unpublish(ctx context.Context, scope, service string) error {
	n := names.Name{Scope: scope, Service: service}
	return s.do(ctx, n, "", func(ctx context.Context, _ bool) error {
		_, err := s.conn.Unpublish(ctx, &proto.UnpublishRequest{Name: messageOf(n), Owner: s.set.Owner[:]})
		if err == nil {
			s.mine.Unpublished(n)
		}
		return err
	})
}

// Lookup returns the port that is published under the name service.
func (s *Client) Lookup(ctx context.Context, scope, service string) (port string, err error) {
	n := names.Name{Scope: scope, Service: service}
	err = s.do(ctx, n, "", func(ctx context.Context, _ bool) error {
		r, err := s.conn.Lookup(ctx, messageOf(n))
		port = string(r.GetPort())
		return err
	})
	return port, err
}

func messageOf(n names.Name) *proto.ServiceName {
	return &proto.ServiceName{Scope: []byte(n.Scope), Service: []byte(n.Service)}
}

// do makes a request, perhaps twice; again is set the second time.
func (s *Client) do(ctx context.Context, n names.Name, port string, request func(_ context.Context, again bool) error) error {
	if err := n.Check(port); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(net.ErrClosed) })()
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
	if s.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, net.ErrClosed)
	}
	err := s.carryOut(ctx, s.mine.Begin(), request)
	if s.conn != nil && !s.keeping {
		s.keeping = true
		lost := s.conn.net.Done()
		s.wg.Go(func() { s.look(lost) })
	}
	return err
}

// carryOut does what an exchange wants. The caller has taken turn. Without an answer the connection
// is closed, since it is unknown what the server did.
func (s *Client) carryOut(ctx context.Context, e *names.PendingRequest, request func(_ context.Context, again bool) error) (err error) {
	for {
		answered := false
		switch step := e.Next(); step.Action {
		case names.Finished:
			return err
		case names.Connect:
			if err = s.connect(ctx); err == nil {
				e.Connected()
				continue
			}
			e.Unanswered(ctx.Err() != nil || errors.Is(err, ErrDenied))
			continue
		case names.Renew:
			if err, answered = fromStatus(s.publish(ctx, step.Request)); answered {
				err = nil // if the name is lost the operator was told
			}
		case names.Ask:
			err, answered = fromStatus(request(ctx, step.Resent))
		}
		if answered {
			e.TakeAnswer()
			continue
		}
		s.hangUp()
		err = s.unreachable(ctx, err)
		e.Unanswered(ctx.Err() != nil)
	}
}

func (s *Client) hangUp() {
	if s.conn != nil {
		_ = s.conn.rpc.Close()
		_ = s.conn.net.Close() // gRPC may not have taken the connection yet
		s.conn = nil
	}
}

func (s *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, s.set.Server, err)
}

func (s *Client) connect(ctx context.Context) error {
	nc, err := s.set.Dial(ctx, "tcp", s.set.Server)
	if err != nil {
		return s.unreachable(ctx, err)
	}
	safe, err := kind.Connect(ctx, nc, keysOf(s.set.Auth))
	if err != nil {
		_ = nc.Close()
		if errors.Is(err, ErrDenied) {
			return fmt.Errorf("%w (%s)", err, s.set.Server)
		}
		return s.unreachable(ctx, err)
	}
	c := rpc.NewConn(safe, nil)
	made, err := rpc.Client(c, maxAnswer)
	if err != nil {
		_ = c.Close()
		return s.unreachable(ctx, err)
	}
	s.conn = &conn{proto.NewNamesClient(made), made, c}
	return nil
}

// look closes the connection if it is not needed, and connects again if it broke and there
// are names. lost is closed when the connection of the last look ends.
func (s *Client) look(lost <-chan struct{}) {
	pause, failed := idlePause, false
	for {
		select {
		case <-time.After(pause):
		case <-lost:
		case <-s.ctx.Done():
			return
		}
		select {
		case <-s.turn:
		case <-s.ctx.Done():
			return
		}
		err := s.tend()
		if lost = nil; s.conn != nil {
			lost = s.conn.net.Done()
		}
		s.keeping = s.mine.NeedsTick()
		more := s.keeping
		s.turn <- struct{}{}
		switch {
		case !more:
			return
		case err == nil:
			pause, failed = idlePause, false
		case failed:
			pause = min(2*pause, lastPause)
		default:
			s.set.Logger.Warn("lost the server for names; the job's names are published again when it is back", "names", s.mine.Len(), "reason", err)
			pause, failed = firstPause, true
		}
	}
}

// tend is one step of look. The caller has taken turn.
func (s *Client) tend() error {
	if s.conn != nil {
		select {
		case <-s.conn.net.Done():
			s.hangUp()
			s.mine.ConnectionLost()
		default:
		}
	}
	hangUp, e := s.mine.Tick()
	if hangUp {
		s.hangUp()
	}
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, lastPause)
	defer cancel()
	return s.carryOut(ctx, e, nil)
}
