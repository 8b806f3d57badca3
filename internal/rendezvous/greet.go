package rendezvous

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// welcome finds out how a new connection, which the machine knows, goes on. It gives
// false if the connection is none of startup's any more.
func (s *server) welcome(c *conn) bool {
	nc := c.below()
	c.how = "plain"
	if wishOf(nc) != wishOurs {
		if s.needTLS {
			c.give(s.events, s.stop, event{conn: c, refused: errPlain})
		}
		return true
	}
	x, err := s.greeter.receive(nc)
	if x != nil && (err == nil || errors.Is(err, errWrongKey)) {
		c.carriedBy(x.Conn)
		c.how = x.how()
	}
	switch {
	case err != nil:
		c.give(s.events, s.stop, event{conn: c, refused: err})
	case x.hello.flags&flagResume != 0:
		known, err := s.greeter.known(x)
		if err != nil { // it stays in its place among those who have proven nothing
			c.give(s.events, s.stop, event{conn: c, refused: err})
			break
		}
		c.abandon() // before the machine loses its patience with it
		c.give(s.events, s.stop, event{conn: c, elsewhere: true})
		_ = x.SetDeadline(time.Now().Add(linger))
		s.goOn(x, known)
		return false
	default:
		var above net.Conn
		if above, err = s.greeter.admit(x, c.id); err != nil {
			c.give(s.events, s.stop, event{conn: c, refused: err})
			break
		}
		c.carriedBy(above)
	}
	return true
}

// errPlain is what a client hears that should have begun with TLS.
var errPlain = errors.New("this server takes nobody without TLS: a site of impi has it by itself; for another MPI the server needs require_tls = false")

// returning sees to a connection of ours that has come after all clients had. It gives
// what is left to be done with it, if anything: a refusal.
func (s *server) returning(nc net.Conn) net.Conn {
	_ = nc.SetDeadline(time.Now().Add(muteLimit))
	x, err := s.greeter.receive(nc)
	switch {
	case err != nil:
		s.log.Warn("connection refused", "peer", nc.RemoteAddr(), "reason", err)
		if errors.Is(err, errWrongKey) {
			select { // the machine, which slows those who guess, has no part in this any more
			case <-time.After(wrongKeyPause):
			case <-s.stop:
			}
			x.refuse(err)
			return nil
		}
		hangUp(nc)
		return nil
	case x.hello.flags&flagResume != 0:
		known, err := s.greeter.known(x)
		if err != nil {
			s.log.Warn("a session was not resumed", "peer", nc.RemoteAddr(), "reason", err)
			x.refuse(err)
			return nil
		}
		s.goOn(x, known)
		return nil
	}
	_ = nc.SetDeadline(time.Time{})
	return x.Conn
}

func (s *server) goOn(x *greeted, known *session) {
	if err := s.greeter.goOn(x, known); err != nil {
		s.log.Warn("a session was not resumed", "peer", x.RemoteAddr(), "reason", err)
	}
}

// refuse tells a client why it is sent away, and ends its connection.
func (x *greeted) refuse(why error) {
	_ = x.NetConn().SetDeadline(time.Now().Add(linger))
	_, _ = x.Write(wire.AppendFail(nil, why.Error()))
	_ = x.CloseWrite()
	hangUp(x.NetConn())
}

// hangUp ends a connection so that the last words arrive.
func hangUp(nc net.Conn) {
	_ = nc.SetDeadline(time.Now().Add(linger))
	closeWrite(nc)
	_, _ = io.CopyN(io.Discard, nc, maxRefused)
	nc.Close()
}

// maxRefused is how much is read of somebody who was sent away.
const maxRefused = 64 << 10

// wrongKeyPause is how long somebody waits for the answer who has the wrong key when all
// clients have come.
const wrongKeyPause = time.Second

// turnAway tells the machine what welcome found wrong.
func (s *server) turnAway(c *conn, why error) {
	if errors.Is(why, errWrongKey) {
		s.m.WrongKey(c.id, time.Now())
		return
	}
	s.m.Refuse(c.id, why)
}

// joined says how a client that has come is protected.
func (s *server) joined(e startup.Event) {
	c := s.conns[e.Conn]
	if c == nil {
		return
	}
	log := s.log.Info
	if c.how == "plain" && s.greeter.id != nil {
		log = s.log.Warn
	}
	log("client joined", "client", e.Client, "peer", e.Peer, "by", c.how)
}
