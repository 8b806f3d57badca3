package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/unproved"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/transports/identity"
	"github.com/openimpi/impi/transports/socket"
)

// Config is what Serve needs to know.
type Config struct {
	Server startup.ServerConfig
	Logger hclog.Logger // nil for silence

	// Notify, if any, hears of each event. It must not block.
	Notify func(startup.Event)

	// Names, if any, serves who wants the names of ports of this job once all clients
	// have come. Serve closes it.
	Names *names.Server

	// Identity, if any, is shown to clients of ours, which must show theirs unless
	// Unverified is set. Without one a certificate is made up, and the key is the only proof.
	Identity   *identity.Identity
	Unverified bool

	// NeedTLS turns plain IMPI away: all clients are ours.
	NeedTLS bool

	// MaxResume bounds how long a client's session is kept without a connection; 0 means the
	// constant MaxResume, and less than 0 that none is.
	MaxResume time.Duration
}

// Serve is the server of one job. It returns nil when every client has
// finished, and otherwise what went wrong; all clients of ours have been told
// the same by then. It owns ln and closes it. The end of ctx ends the job with
// the context's cause. No goroutine or connection is left.
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
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	g, err := newGreeter(&cfg)
	if err != nil {
		return err
	}
	s := &server{
		m: m, log: cfg.Logger, notify: cfg.Notify,
		greeter: g, needTLS: cfg.NeedTLS,
		conns:  make(map[startup.ConnID]*conn),
		events: make(chan event), stop: make(chan struct{}),
		names: cfg.Names, mute: unproved.NewRoom[net.Conn](room), maxLeaving: room.Total,
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

// server drives a startup.Server. Everything but accept runs in one goroutine.
type server struct {
	m      *startup.Server
	log    hclog.Logger
	notify func(startup.Event) // may be nil
	conns  map[startup.ConnID]*conn
	last   startup.ConnID
	events chan event
	stop   chan struct{} // closed when nobody takes events any more
	wg     sync.WaitGroup

	leaving    []*conn // that the machine has closed and whose peers have not, in that order
	maxLeaving int     // those of a crowd that says nothing do not read the last words either

	greeter *greeter
	needTLS bool

	names *names.Server            // nil: none
	full  bool                     // all clients have come
	mute  *unproved.Room[net.Conn] // that have come since, and not said what they want
}

// event is something that happened on the listener (conn is nil) or on a connection.
type event struct {
	conn  *conn
	nc    net.Conn // new
	want  wish     // of nc
	above net.Conn // above nc, if it has begun with TLS
	data  []byte   // lent until conn.ack
	err   error    // the end

	refused   error // why welcome turns conn away
	elsewhere bool  // conn has left startup
}

// run feeds the machine until the job is over.
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
			s.m.Abort(stopped(ctx))
		}
	}
}

// awaitReturns lets clients come back whose connection was cut before they had the last
// words, for no longer than any connection may linger.
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

// take tells the machine what happened.
func (s *server) take(e event) {
	switch {
	case e.nc != nil && s.sorted(e):
		return
	case e.nc != nil:
		s.last++
		unpaced(e.nc)
		c := newConn(s.last, e.nc)
		if e.above != nil {
			c.nc = e.above
		}
		s.conns[c.id] = c
		s.m.Accept(c.id, e.nc.RemoteAddr().String(), unproved.FromAddr(e.nc.RemoteAddr()), time.Now())
		s.wg.Go(func() {
			if e.above != nil || s.welcome(c) { // returning has greeted it
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

// act does what the machine says.
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

// rooms share the file descriptors that connections may have that have proved nothing: those
// who have not said who they are, those who are leaving, those who come late, and names.
const rooms = 3

// release lets a connection end when it may.
func (s *server) release(c *conn) {
	c.finish()
	if s.leaving = append(s.leaving, c); len(s.leaving) > s.maxLeaving {
		if nc := s.leaving[0].below(); nc != nil { // else it has gone elsewhere
			s.wg.Go(func() { nc.Close() }) // which may take a moment; its reader tells of it
		}
		s.leaving = s.leaving[1:]
	}
}

// leaves takes a connection out of those that wait for their peers.
func (s *server) leaves(x *conn) {
	s.leaving = slices.DeleteFunc(s.leaving, func(c *conn) bool { return c == x })
}

// tell logs progress. The end is left to whoever called Serve.
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
	case startup.EventFailed:
		s.log.Debug("job failed", "reason", e.Err)
	case startup.EventAnswered, startup.EventDone:
		s.log.Debug(e.String())
	default:
		s.log.Info(e.String())
	}
}

// accept hands new connections to run until the listener is closed. Running out
// of descriptors and the like passes; the time limit ends it if it does not.
func (s *server) accept(ln net.Listener) {
	for {
		nc, err := ln.Accept()
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

// stopped tells clients why the server ends, if whoever stops it has said why.
func stopped(ctx context.Context) error {
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) {
		return errors.New("the server was stopped")
	}
	return fmt.Errorf("the server was stopped: %w", why)
}
