package startup

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// maxNotes is how many refused connections the server remembers, to name them when the job
// fails because clients are missing.
const maxNotes = 4

// blameOrRefuse ends the job if the connection is a client's; otherwise it ends only the
// connection.
func (s *Server) blameOrRefuse(c *conn, err error) {
	switch {
	case c.state == connSpare:
		letSpareGo(s, c, err)
	case c.state >= connColl:
		s.fail(s.blame(c, err))
	default:
		s.refuse(c, err)
	}
}

func (s *Server) blame(c *conn, err error) error {
	return fmt.Errorf("client %d (%s): %w", c.rank, c.peer, err)
}

// refuse ends a connection that is not a client's, and tells the peer why.
func (s *Server) refuse(c *conn, err error) {
	s.sendReason(c, err)
	s.do(Action{Kind: ActClose, Conn: c.id, Reason: err})
	s.drop(c)
	s.note(c, err)
}

// Refuse ends a connection for a reason that the owner gives, unless it is a client's.
func (s *Server) Refuse(id ConnID, why error) {
	if c := s.conn(id); c != nil && c.state < connColl {
		s.refuse(c, why)
	}
}

// WrongKey reports to the server that a connection has failed a proof of the key that the owner
// ran. It counts like a wrong key: later answers to its source are delayed.
func (s *Server) WrongKey(id ConnID, now time.Time) {
	if c := s.conn(id); c != nil && c.state < connColl {
		s.takeKey(c, nil, now) // nil is never the key
	}
}

// Forget removes a connection that is not for startup, such as one for the name service.
func (s *Server) Forget(id ConnID) {
	if c := s.conn(id); c != nil && c.state < connColl {
		s.drop(c)
	}
}

// note keeps what happened to a refused connection, for the message if clients are missing.
func (s *Server) note(c *conn, err error) {
	if len(s.refused) < maxNotes {
		s.refused = append(s.refused, fmt.Sprintf("%s: %v", c.peer, err))
	}
	s.tell(Event{Kind: EventRefused, Conn: c.id, Peer: c.peer, Err: err})
}

func (s *Server) sendReason(c *conn, err error) {
	s.do(Action{Kind: ActSend, Conn: c.id, Bytes: wire.AppendFail(nil, err.Error())})
}

// failBy ends the job because of an error of connection c, which has proven that it belongs to the
// job. Its peer is told the reason, as all clients are.
func (s *Server) failBy(c *conn, err error) {
	s.sendReason(c, err)
	s.do(Action{Kind: ActClose, Conn: c.id, Reason: err})
	s.drop(c)
	s.fail(err)
}

// goesWithout reports whether the server goes on without a client that it has lost: all others hear
// of it, and know by themselves whether the job can go on.
func goesWithout(s *Server, lost *conn) bool {
	others := false
	for _, c := range s.clients {
		if c == nil || !s.hears.Has(c.rank) {
			return false
		}
		others = others || !c.gone
	}
	return s.cfg.SurvivesLoss && s.state == serverRunning && lost.state == connDone && others
}

// spare tells the other clients of one that is lost. Those whose job does not run yet, or shows
// that the client is dead, answer with FAIL; FINI of all others ends the job in order.
func spare(s *Server, lost *conn, err error) {
	s.left[lost.rank] = true
	s.tell(Event{Kind: EventLost, Conn: lost.id, Peer: lost.peer, Client: lost.rank, Err: err})
	said := err.Error()
	said = said[:min(len(said), wire.MaxFail)]
	s.toAll(append(wire.AppendAnswer(nil, wire.LabelLost, wire.ClientMask(0).With(lost.rank), len(said)), said...))
}

// fail ends the job and tells all clients why. A connection that has not become a client
// hears only errNotYours.
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

// errNotYours is what a connection is told that has not named its client rank when the job fails.
var errNotYours = errors.New("the job failed before this client had joined; the server's log says why")

func (s *Server) missing() string {
	var mask wire.ClientMask
	for r, c := range s.clients {
		if c == nil {
			mask = mask.With(wire.ClientRank(r))
		}
	}
	return fmt.Sprintf("clients %v of %d", mask, s.cfg.Clients)
}

func (s *Server) refusedPeers() string {
	if len(s.refused) == 0 {
		return ""
	}
	return "; refused were: " + strings.Join(s.refused, "; ")
}

// laggards lists the clients that have not sent DONE, with the last thing that each has
// sent.
func (s *Server) laggards() string {
	var list []string
	for r, c := range s.clients {
		if c.state == connColl {
			list = append(list, fmt.Sprintf("client %d (%s; the last it sent was %s)", r, c.peer, s.progress(c)))
		}
	}
	return strings.Join(list, ", ")
}

func (s *Server) progress(c *conn) string {
	switch {
	case c.state == connDone:
		return "DONE"
	case s.coll.clients[c.rank].count == 0:
		return "IMPI"
	}
	return "COLL " + s.coll.clients[c.rank].last.String()
}
