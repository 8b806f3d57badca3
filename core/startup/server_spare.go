package startup

import (
	"fmt"
	"iter"

	"github.com/openimpi/impi/core/wire"
)

// A spare site proves itself as a client does (IMPI ch.2, Authentication) and then sends SPAR in
// the place of its client rank (IMPI ch.2, IMPI command). It has no procs in the job. It is sent
// all messages that clients have been sent before, and from then on all further ones, so that it
// has the same data of the job as a client, whenever it comes. Its loss, and any error that it
// makes, ends only its own connection.

// ErrSpares is the error of a server that accepts no spare site, or no further one.
var ErrSpares = fmt.Errorf("spare sites: %w", ErrFull)

func spareConns(s *Server) iter.Seq[*conn] {
	return func(yield func(*conn) bool) {
		for _, c := range s.conns {
			if c.state == connSpare && !yield(c) {
				return
			}
		}
	}
}

func takeSpare(s *Server, c *conn, payload []byte) error {
	version, err := wire.ParseSpare(payload)
	n := 0
	for range spareConns(s) {
		n++
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	case version != wire.SpareVersion:
		return fmt.Errorf("%w: SPAR of version %d, and only %d is known", ErrProtocol, version, wire.SpareVersion)
	case s.cfg.Spares == 0:
		return fmt.Errorf("%w: this server expects none: write the site with spare = true into the file of the site that embeds the server, or start impi-server with -spares 1", ErrSpares)
	case n >= s.cfg.Spares:
		return fmt.Errorf("%w: it has %d already: write all of them into the file of the site that embeds the server, or start impi-server with more -spares", ErrSpares, n)
	}
	c.state = connSpare
	s.unknown.Leave(c.id)
	s.tell(Event{Kind: EventSpare, Conn: c.id, Peer: c.peer})
	for _, b := range s.said {
		s.do(Action{Kind: ActSend, Conn: c.id, Bytes: b})
	}
	return nil
}

// letSpareGo ends the connection of a spare site, which has said why, or has done something wrong.
func letSpareGo(s *Server, c *conn, err error) {
	s.do(Action{Kind: ActClose, Conn: c.id, Reason: err})
	s.drop(c)
	s.tell(Event{Kind: EventSpareGone, Conn: c.id, Peer: c.peer, Err: err})
}

func endSpares(s *Server) {
	for c := range spareConns(s) {
		s.do(Action{Kind: ActSend, Conn: c.id, Bytes: wire.AppendCommand(nil, wire.CmdFini, 0)})
	}
}
