package rendezvous

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// welcome finds out how a new connection continues. It returns false if the connection has
// been taken over by a session and does not belong to startup any more.
func (s *server) welcome(c *conn) bool {
	nc := c.below()
	c.how = "plain"
	if purposeOf(nc) != purposeOwn {
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
		if err != nil { // it counts as an unproved connection until then
			c.give(s.events, s.stop, event{conn: c, refused: err})
			break
		}
		c.abandon() // before startup.Server gives up waiting for it
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

// welcomes is welcome for a connection whose hello returning may already have read, as all clients
// had come. A spare site is then still to be answered; startup.Server refuses everybody else.
func (s *server) welcomes(c *conn, above *greeted) bool {
	switch {
	case above == nil:
		return s.welcome(c)
	case !s.spares:
		return true
	}
	_ = above.SetDeadline(time.Now().Add(purposeLimit))
	nc, err := s.greeter.admit(above, c.id)
	if err != nil {
		c.give(s.events, s.stop, event{conn: c, refused: err})
		return true
	}
	_ = above.NetConn().SetDeadline(time.Time{})
	c.carriedBy(nc)
	return true
}

var errPlain = errors.New("this server accepts only TLS, which sites of impi use by themselves; to accept another MPI, start it with require_tls = false")

// returning handles a connection that has begun as one of ours after all clients had come. It
// returns nil if the connection was resumed or refused, or the TLS connection if it is a spare
// site's, or startup.Server has to refuse the client.
func (s *server) returning(nc net.Conn) *greeted {
	_ = nc.SetDeadline(time.Now().Add(purposeLimit))
	x, err := s.greeter.receive(nc)
	switch {
	case err != nil:
		s.log.Warn("connection refused", "peer", nc.RemoteAddr(), "reason", err)
		if errors.Is(err, errWrongKey) {
			select { // startup.Server, which delays answers to wrong keys otherwise, does not see this connection
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
	return x
}

func (s *server) goOn(x *greeted, known *session) {
	if err := s.greeter.goOn(x, known); err != nil {
		s.log.Warn("a session was not resumed", "peer", x.RemoteAddr(), "reason", err)
	}
}

func (x *greeted) refuse(why error) {
	_ = x.NetConn().SetDeadline(time.Now().Add(linger))
	_, _ = x.Write(wire.AppendFail(nil, why.Error()))
	_ = x.CloseWrite()
	hangUp(x.NetConn())
}

// hangUp closes a connection in such a way that the last message arrives.
func hangUp(nc net.Conn) {
	_ = nc.SetDeadline(time.Now().Add(linger))
	closeWrite(nc)
	_, _ = io.CopyN(io.Discard, nc, maxRefused)
	nc.Close()
}

// maxRefused is how many bytes are read from a client that was refused.
const maxRefused = 64 << 10

// wrongKeyPause is how long the answer to a wrong key is delayed once all clients have
// come.
const wrongKeyPause = time.Second

func (s *server) turnAway(c *conn, why error) {
	if errors.Is(why, errWrongKey) {
		s.m.WrongKey(c.id, time.Now())
		return
	}
	s.m.Refuse(c.id, why)
}

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
