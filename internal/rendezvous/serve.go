package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// NameService is the name service of a job (package names).
type NameService interface {
	Handle(net.Conn) // serves a connection until its end, and closes it
	Close()          // ends all connections
}

// Config configures Serve.
type Config struct {
	Server startup.ServerConfig
	Logger hclog.Logger // nil for silence

	// Notify, if not nil, is called with each event. It must not block.
	Notify func(startup.Event)

	// Names, if not nil, is the name service of this job, which is served once all clients
	// have come. Serve closes it.
	Names NameService

	// Identity, if not nil, is shown to clients of ours, which must show their certificates unless
	// Unverified is set. Without one the server makes a certificate for itself, and the key is the
	// only proof.
	Identity   *identity.Identity
	Unverified bool

	// NeedTLS refuses plain IMPI: all clients must be ours.
	NeedTLS bool

	// MaxResume is the maximum time that a client's session is kept without a connection; 0 means
	// the constant MaxResume, a negative value that sessions are not kept.
	MaxResume time.Duration

	// Why, if not nil, returns why a client's connection has ended, if the job fails by that. It
	// may take time to find out, until stop is closed; nil means that the reason is not known. It
	// is called by a goroutine of its own.
	Why func(client wire.ClientRank, stop <-chan struct{}) error
}

// Serve runs the server of one job. It returns nil when every client has finished, and otherwise an
// error, which all clients of ours have received by then. It owns ln and closes it. The end of ctx
// ends the job with the context's cause; but if that wraps ErrLeave and the job runs, only the
// server ends, with an error that wraps startup.ErrLeft. Serve leaves no goroutine and no
// connection.
func Serve(ctx context.Context, ln net.Listener, cfg Config) error {
	defer ln.Close()
	room := socket.Bounds(2*wire.MaxClients, 8*wire.MaxClients, rooms)
	if cfg.Server.Waiting == 0 {
		cfg.Server.WaitingThere, cfg.Server.Waiting = room.PerSource, room.Total
	}
	m, err := startup.NewServer(cfg.Server, time.Now())
	if err != nil {
		return err
	}
	cfg.Logger = cmp.Or(cfg.Logger, hclog.NewNullLogger())
	g, err := newGreeter(&cfg)
	if err != nil {
		return err
	}
	s := &server{
		m: m, log: cfg.Logger, notify: cfg.Notify,
		greeter: g, needTLS: cfg.NeedTLS, spares: cfg.Server.Spares > 0,
		conns:  make(map[startup.ConnID]*conn),
		events: make(chan event), stop: make(chan struct{}),
		why: cfg.Why, names: cfg.Names, undecided: unproved.NewSet[net.Conn](room), maxLeaving: room.Total,
	}
	s.wg.Go(func() { s.accept(ln) })
	err = s.run(ctx)
	for _, c := range s.conns {
		c.finish()
	}
	s.awaitReturns()
	close(s.stop)
	ln.Close()
	s.endNames()
	s.wg.Wait()
	return err
}

// ErrLeave is the cause of a context whose end makes a server leave a job that runs.
var ErrLeave = errors.New("the server is to leave its job")

// server drives a startup.Server. Everything except accept and the connections' own goroutines runs
// in one goroutine.
type server struct {
	m      *startup.Server
	log    hclog.Logger
	notify func(startup.Event) // may be nil
	why    func(client wire.ClientRank, stop <-chan struct{}) error
	conns  map[startup.ConnID]*conn
	last   startup.ConnID
	events chan event
	stop   chan struct{} // closed when no events are handled any more
	wg     sync.WaitGroup

	leaving    []*conn // connections that startup.Server has closed and whose peers have not, in that order
	maxLeaving int     // if there are more, the oldest is closed without waiting for its peer

	greeter *greeter
	needTLS bool
	spares  bool // sites may join when all clients have come

	names     NameService             // nil: none
	full      bool                    // all clients have come
	undecided *unproved.Set[net.Conn] // connections that have come since then, and whose purpose is not known
}

// event is something that has happened on the listener (conn is nil) or on a connection.
type event struct {
	conn  *conn
	nc    net.Conn // a new connection
	want  purpose  // of nc
	above *greeted // the TLS connection over nc, if it has begun with TLS
	data  []byte   // valid until conn.ack
	err   error    // the end of the connection

	explained bool  // the reason of the end was asked for
	refused   error // why welcome has refused conn
	elsewhere bool  // conn has been taken over by a session
}

func (s *server) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	cancelled := ctx.Done()
	for {
		s.act()
		if ended, err := s.m.Ended(); ended {
			return err
		}
		if at, ok := s.m.Deadline(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop()
		}
		select {
		case e := <-s.events:
			s.take(e)
		case <-timer.C:
			s.m.Tick(time.Now())
		case <-cancelled:
			if errors.Is(context.Cause(ctx), ErrLeave) {
				s.m.Leave(stopped(ctx))
			} else {
				s.m.Abort(stopped(ctx))
			}
		}
	}
}

// awaitReturns waits, at most for linger, for clients whose connection was lost before they
// had received the last message.
func (s *server) awaitReturns() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for s.greeter.open() {
		select {
		case e := <-s.events:
			s.take(e)
			s.act()
		case <-timer.C:
			return
		}
	}
}

func (s *server) take(e event) {
	switch {
	case e.nc != nil && s.sorted(e):
		return
	case e.nc != nil:
		s.last++
		unpaced(e.nc)
		c := newConn(s.last, e.nc)
		if e.above != nil {
			c.nc, c.how = e.above.Conn, e.above.how()
		}
		s.conns[c.id] = c
		s.m.Accept(c.id, e.nc.RemoteAddr().String(), unproved.FromAddr(e.nc.RemoteAddr()), time.Now())
		s.wg.Go(func() {
			if s.welcomes(c, e.above) {
				c.read(s.events, s.stop)
			}
		})
		s.wg.Go(c.write)
	case e.conn == nil:
		s.m.Abort(fmt.Errorf("the server cannot accept connections any more: %w", e.err))
	case e.refused != nil:
		s.turnAway(e.conn, e.refused)
	case e.elsewhere:
		s.m.Forget(e.conn.id)
		delete(s.conns, e.conn.id)
		s.leaves(e.conn)
	case e.err != nil && s.asks(e):
	case e.err != nil:
		s.greeter.end(e.conn.id)
		s.m.Closed(e.conn.id, cause(e.err))
		e.conn.finish()
		delete(s.conns, e.conn.id)
		s.leaves(e.conn)
	default:
		s.m.Receive(e.conn.id, e.data, time.Now())
		e.conn.ack <- struct{}{}
	}
}

// asks has somebody find out why a connection has ended, before the job fails by that, and reports
// whether there is anybody to ask. The end comes as an event again when there is an answer.
func (s *server) asks(e event) bool {
	client, would := startup.WouldFail(s.m, e.conn.id)
	if s.why == nil || e.explained || !would {
		return false
	}
	s.wg.Go(func() {
		e.explained = true
		if why := s.why(client, s.stop); why != nil {
			e.err = why
		}
		select {
		case s.events <- e:
		case <-s.stop:
		}
	})
	return true
}

func (s *server) act() {
	for {
		a, ok := s.m.Next()
		if !ok {
			return
		}
		switch a.Kind {
		case startup.ActEvent:
			s.tell(a.Event)
		case startup.ActSend:
			if c := s.conns[a.Conn]; c != nil {
				c.send(a.Bytes)
			}
		case startup.ActClose:
			if c := s.conns[a.Conn]; c != nil {
				s.release(c)
			}
		}
	}
}

// rooms is the number of groups of connections that share the file descriptors: those that have not
// named their rank, those that are closing, and those that have come after all clients and whose
// purpose is not known.
const rooms = 3

// release closes a connection once its peer has read everything. The oldest one is closed earlier
// if too many wait.
func (s *server) release(c *conn) {
	c.finish()
	if s.leaving = append(s.leaving, c); len(s.leaving) > s.maxLeaving {
		if nc := s.leaving[0].below(); nc != nil { // nil: it was taken over by a session
			s.wg.Go(func() { nc.Close() }) // closing may take a moment; the connection's reader reports the end
		}
		s.leaving = s.leaving[1:]
	}
}

func (s *server) leaves(x *conn) {
	s.leaving = slices.DeleteFunc(s.leaving, func(c *conn) bool { return c == x })
}

// tell logs an event. The caller of Serve reports the end of the job.
func (s *server) tell(e startup.Event) {
	if s.notify != nil {
		s.notify(e)
	}
	switch e.Kind {
	case startup.EventAllHere:
		s.full = true
		s.log.Info(e.String())
	case startup.EventJoined:
		s.joined(e)
	case startup.EventRefused:
		s.log.Warn("connection refused", "peer", e.Peer, "reason", e.Err)
	case startup.EventLost:
		s.log.Warn(e.String())
	case startup.EventSpare:
		s.log.Info("spare site joined", "peer", e.Peer)
	case startup.EventSpareGone:
		s.log.Info("spare site is gone", "peer", e.Peer, "reason", e.Err)
	case startup.EventFailed:
		s.log.Debug("job failed", "reason", e.Err)
	case startup.EventAnswered, startup.EventDone:
		s.log.Debug(e.String())
	default:
		s.log.Info(e.String())
	}
}

// accept passes new connections to run until the listener is closed. It goes on after
// temporary errors, such as too many open descriptors; if they do not go away the job's
// time limit ends it.
func (s *server) accept(ln net.Listener) {
	for {
		nc, err := ln.Accept()
		if err == nil {
			nc = heeded(nc)
		}
		e := event{nc: nc, err: err}
		var temporary interface{ Temporary() bool }
		if errors.As(err, &temporary) && temporary.Temporary() {
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-s.stop:
				return
			}
		}
		select {
		case s.events <- e:
		case <-s.stop:
			if nc != nil {
				nc.Close()
			}
			return
		}
		if err != nil {
			return
		}
	}
}

func stopped(ctx context.Context) error {
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) {
		return errors.New(startup.Stopped)
	}
	return fmt.Errorf("%s: %w", startup.Stopped, why)
}
