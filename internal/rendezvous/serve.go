package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/names"
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
}

// Serve is the server of one job. It returns nil when every client has
// finished, and otherwise what went wrong; all clients of ours have been told
// the same by then. It owns ln and closes it. The end of ctx ends the job with
// the context's cause. No goroutine or connection is left.
func Serve(ctx context.Context, ln net.Listener, cfg Config) error {
	defer ln.Close()
	m, err := startup.NewServer(cfg.Server, time.Now())
	if err != nil {
		return err
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	s := &server{
		m: m, log: cfg.Logger, notify: cfg.Notify,
		conns:  make(map[startup.ConnID]*conn),
		events: make(chan event), stop: make(chan struct{}),
		names: cfg.Names,
	}
	s.wg.Go(func() { s.accept(ln) })
	err = s.run(ctx)
	close(s.stop)
	ln.Close()
	for _, c := range s.conns {
		c.finish()
	}
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

	names *names.Server // nil: none
	full  bool          // all clients have come
	mute  []net.Conn    // that have come since, and not said what they want, in their order
}

// event is something that happened on the listener (conn is nil) or on a connection.
type event struct {
	conn *conn
	nc   net.Conn // new
	want wish     // of nc
	data []byte   // lent until conn.ack
	err  error    // the end
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
			s.m.Abort(fmt.Errorf("the server was stopped: %w", context.Cause(ctx)))
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
		s.conns[c.id] = c
		s.m.Accept(c.id, e.nc.RemoteAddr().String(), time.Now())
		s.wg.Go(func() { c.read(s.events, s.stop) })
		s.wg.Go(c.write)
	case e.conn == nil:
		s.m.Abort(fmt.Errorf("the server cannot accept connections any more: %w", e.err))
	case e.err != nil:
		s.m.Closed(e.conn.id, cause(e.err))
		e.conn.finish()
		delete(s.conns, e.conn.id)
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
				c.finish()
			}
		}
	}
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
		s.log.Info("client joined", "client", e.Client, "peer", e.Peer)
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
