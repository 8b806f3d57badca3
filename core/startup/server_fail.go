package startup

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// maxNotes is how many refused connections are remembered for the message of a
// job that fails for want of clients.
const maxNotes = 4

// blameOrRefuse ends the job if the connection is a client's, and only the
// connection if not.
func (s *Server) blameOrRefuse(c *conn, err error) {
	if c.state >= connColl {
		s.fail(s.blame(c, err))
	} else {
		s.refuse(c, err)
	}
}

// blame names the client in front of its error.
func (s *Server) blame(c *conn, err error) error {
	return fmt.Errorf("client %d (%s): %w", c.rank, c.peer, err)
}

// refuse ends a connection that is no client's, and tells it why.
func (s *Server) refuse(c *conn, err error) {
	s.sendReason(c, err)
	s.do(Action{Kind: ActClose, Conn: c.id, Reason: err})
	s.drop(c)
	s.note(c, err)
}

// Refuse ends a connection that is no client's, for a reason of the owner's. A client's
// it leaves as it is.
func (s *Server) Refuse(id ConnID, why error) {
	if c := s.conn(id); c != nil && c.state < connColl {
		s.refuse(c, why)
	}
}

// WrongKey tells that a connection was to prove, in a way that the owner knows, that it has
// the key, and could not. It is as bad as one that was sent, and its source is slowed.
func (s *Server) WrongKey(id ConnID, now time.Time) {
	if c := s.conn(id); c != nil && c.state < connColl {
		s.takeKey(c, nil, now) // which no key is
	}
}

// Forget tells that a connection is not for startup.
func (s *Server) Forget(id ConnID) {
	if c := s.conn(id); c != nil && c.state < connColl {
		s.drop(c)
	}
}

// note remembers a connection that came to nothing.
func (s *Server) note(c *conn, err error) {
	if len(s.refused) < maxNotes {
		s.refused = append(s.refused, fmt.Sprintf("%s: %v", c.peer, err))
	}
	s.tell(Event{Kind: EventRefused, Conn: c.id, Peer: c.peer, Err: err})
}

func (s *Server) sendReason(c *conn, err error) {
	s.do(Action{Kind: ActSend, Conn: c.id, Bytes: wire.AppendFail(nil, err.Error())})
}

// failBy ends the job because of a connection that has shown that it belongs
// to it, and is told the reason like a client.
func (s *Server) failBy(c *conn, err error) {
	s.sendReason(c, err)
	s.do(Action{Kind: ActClose, Conn: c.id, Reason: err})
	s.drop(c)
	s.fail(err)
}

// fail ends the job and tells all clients why. Connections that may be anybody's
// learn no more than that.
func (s *Server) fail(err error) {
	if s.state == serverEnded {
		return
	}
	s.toAll(wire.AppendFail(nil, err.Error()))
	for _, c := range s.conns {
		if c.state < connColl {
			s.sendReason(c, errNotYours)
		}
	}
	err = fmt.Errorf("startup: server: %w", err)
	s.tell(Event{Kind: EventFailed, Err: err})
	s.end(err)
}

// errNotYours is what a connection hears that has not named its client rank.
var errNotYours = errors.New("the job failed before this client had joined; the server's log says why")

// missing lists the clients that have not come.
func (s *Server) missing() string {
	var mask wire.ClientMask
	for r, c := range s.clients {
		if c == nil {
			mask = mask.With(wire.ClientRank(r))
		}
	}
	return fmt.Sprintf("clients %v of %d", mask, s.cfg.Clients)
}

// strangers tells of the refused connections, which may be the missing ones.
func (s *Server) strangers() string {
	if len(s.refused) == 0 {
		return ""
	}
	return "; refused were: " + strings.Join(s.refused, "; ")
}

// laggards lists the clients that are not DONE, and how far each came.
func (s *Server) laggards() string {
	var list []string
	for r, c := range s.clients {
		if c.state == connColl {
			list = append(list, fmt.Sprintf("client %d (%s; the last it sent was %s)", r, c.peer, s.progress(c)))
		}
	}
	return strings.Join(list, ", ")
}

// progress says what a client sent last.
func (s *Server) progress(c *conn) string {
	switch {
	case c.state == connDone:
		return "DONE"
	case s.coll.clients[c.rank].count == 0:
		return "IMPI"
	}
	return "COLL " + s.coll.clients[c.rank].last.String()
}
