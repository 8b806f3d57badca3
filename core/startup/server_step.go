package startup

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/wire"
)

func (s *Server) step(c *conn, now time.Time) (more bool, err error) {
	if c.state == connKey {
		b, ok := c.in.raw(wire.KeySize)
		if !ok {
			return false, nil
		}
		s.takeKey(c, b, now)
		return true, nil
	}
	// IMPI ch.2, Authentication: nothing may come before AUTH. Four bytes are enough to
	// refuse a peer that is not an IMPI client.
	if b, ok := c.in.peek(wire.CommandSize); ok && c.state == connAuth {
		if cmd, _ := wire.ParseCommand(b); cmd != wire.CmdAuth && cmd != wire.CmdFail {
			return false, fmt.Errorf("%w: %v where AUTH should be", ErrProtocol, cmd)
		}
	}
	limit := MaxSubmission
	if c.state < connColl || c.state == connSpare {
		limit = maxUnknown
	}
	f, ok, err := c.in.next(limit, knownToServer)
	if err != nil || !ok {
		return false, err
	}
	return true, s.command(c, f, now)
}

func knownToServer(cmd wire.Command) bool {
	switch cmd {
	case wire.CmdAuth, wire.CmdIMPI, wire.CmdColl, wire.CmdDone, wire.CmdFini, wire.CmdFiniReversed, wire.CmdFail, wire.CmdSpare:
		return true
	}
	return false
}

// command handles one command. A client may send everything up to FINI without waiting for
// answers.
func (s *Server) command(c *conn, f frame, now time.Time) error {
	switch {
	case f.cmd == wire.CmdFail && c.state == connSpare:
		return fmt.Errorf("%w: %s", ErrFailed, Printable(f.payload))
	case f.cmd == wire.CmdFail && letGo(s, c, string(f.payload)):
		return nil
	case f.cmd == wire.CmdFail:
		return fmt.Errorf("%w: %s", ErrFailed, Printable(f.payload))
	case f.cmd == wire.CmdAuth && c.state == connAuth:
		return s.takeAuth(c, f.payload, now)
	case f.cmd == wire.CmdIMPI && c.state == connIMPI:
		return s.takeRank(c, f.payload, now)
	case f.cmd == wire.CmdSpare && c.state == connIMPI:
		return takeSpare(s, c, f.payload)
	case f.cmd == wire.CmdColl && c.state == connColl:
		return s.takeLabel(c, f.payload)
	case f.cmd == wire.CmdDone && c.state == connColl:
		return s.takeDone(c)
	case (f.cmd == wire.CmdFini || f.cmd == wire.CmdFiniReversed) && c.state == connDone:
		return s.takeFini(c)
	}
	return fmt.Errorf("%w: %v where %s should be", ErrProtocol, f.cmd, c.expected())
}

// letGo lets a client leave for another server of its list, if not all have come. Once they have
// met at another one this server has nothing more to do.
func letGo(s *Server, c *conn, why string) bool {
	var reason error
	switch {
	case s.state != serverJoining || c.state < connColl:
	case why == ErrMoved.Error():
		reason = ErrMoved
	case why == ErrMet.Error():
		reason = ErrMet
	}
	if reason == nil {
		return false
	}
	s.clients[c.rank] = nil
	s.tell(Event{Kind: EventMoved, Conn: c.id, Peer: c.peer, Client: c.rank, Err: reason})
	s.do(Action{Kind: ActClose, Conn: c.id, Reason: reason})
	s.drop(c)
	if reason == ErrMet {
		s.tell(Event{Kind: EventEnded})
		s.end(nil)
	}
	return true
}

// expected names the commands that the connection may send, as the subject of a sentence.
func (c *conn) expected() string {
	return [...]string{"AUTH", "the key", "IMPI", "COLL or DONE", "FINI", "nothing more", "FAIL"}[c.state]
}

// takeAuth chooses a mechanism (IMPI ch.2, Authentication). The draft of March 1999 has two
// versions of that section: this one, and an older one in which AUTH carries the key itself
// and is not answered.
func (s *Server) takeAuth(c *conn, payload []byte, now time.Time) error {
	if len(payload) == wire.KeySize && s.cfg.Auth.HasKey {
		s.takeKey(c, payload, now)
		return nil
	}
	mask, err := wire.ParseAuth(payload)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	mech, ok := s.cfg.Auth.choose(mask)
	if !ok {
		return fmt.Errorf("%w: it offers %v, this server takes %v", ErrAuth, mask, s.cfg.Auth)
	}
	s.do(Action{Kind: ActSend, Conn: c.id, Bytes: wire.AppendAuthChoice(nil, mech)})
	c.state = connIMPI
	if mech == wire.MechKey {
		c.state = connKey
	}
	return nil
}

// takeKey checks a key. A wrong key ends its connection only, with an answer that comes
// later each time: somebody is guessing, or has the key of another job. It does not end the
// job, or anybody could end one by ten connections.
func (s *Server) takeKey(c *conn, key []byte, now time.Time) {
	if s.cfg.Auth.keyIs(key) {
		c.state = connIMPI
		return
	}
	err := fmt.Errorf("%w: wrong key", ErrAuth)
	pause := s.slow.Wrong(c.from, now)
	if pause == 0 {
		s.refuse(c, err)
		return
	}
	if n := s.slow.Times(c.from); n > 2 {
		err = fmt.Errorf("%w (%d from %s lately)", err, n, c.from)
	}
	c.in, c.wrong, c.answer = reader{}, err, now.Add(pause)
}

// takeRank makes a connection a client (IMPI ch.2, IMPI command). A rank that is taken or
// too high means that two sites were set up wrongly and the missing client will not come,
// so the job ends for all.
func (s *Server) takeRank(c *conn, payload []byte, now time.Time) error {
	r, err := wire.ParseIMPI(payload)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	case s.state != serverJoining:
		return fmt.Errorf("%w: it has %d already", ErrFull, s.cfg.Clients)
	case r < 0 || int(r) >= s.cfg.Clients:
		s.failBy(c, fmt.Errorf("%w: %s says it is client %d, in a job of %d clients", ErrRank, c.peer, r, s.cfg.Clients))
		return nil
	case s.clients[r] != nil:
		s.failBy(c, fmt.Errorf("%w: %s and %s both say they are client %d", ErrRank, s.clients[r].peer, c.peer, r))
		return nil
	}
	c.rank, c.state = wire.ClientRank(r), connColl
	s.unknown.Leave(c.id)
	s.clients[r] = c
	s.tell(Event{Kind: EventJoined, Conn: c.id, Peer: c.peer, Client: c.rank})
	for _, o := range s.clients {
		if o == nil {
			return nil
		}
	}
	s.begin(now)
	return nil
}

// begin starts the collection of labels: all clients have joined. Labels that some have
// sent early are kept until the last client has sent its own.
func (s *Server) begin(now time.Time) {
	s.state = serverCollecting
	s.deadline = now.Add(s.cfg.Limit)
	s.tell(Event{Kind: EventAllHere})
	s.toAll(wire.AppendIMPI(nil, int32(s.cfg.Clients)))
	for _, c := range append([]*conn(nil), s.conns...) {
		switch {
		case c.state >= connColl:
		case c.wrong != nil:
			s.refuse(c, c.wrong)
		case s.cfg.Spares > 0: // it may be a spare site
		default:
			s.refuse(c, fmt.Errorf("%w: it has %d already", ErrFull, s.cfg.Clients))
		}
	}
}

func (s *Server) takeLabel(c *conn, payload []byte) error {
	l, data, err := wire.ParseColl(payload)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := s.coll.submit(c.rank, l, data); err != nil {
		return err
	}
	for ; l == wire.LabelVersion && len(data) >= wire.VersionSize; data = data[wire.VersionSize:] {
		if wire.ParseVersion(data) == wire.LostVersion {
			s.hears = s.hears.With(c.rank)
		}
	}
	s.answer()
	return nil
}

func (s *Server) takeDone(c *conn) error {
	c.state = connDone
	s.coll.done(c.rank)
	s.tell(Event{Kind: EventDone, Client: c.rank})
	s.answer()
	return nil
}

// answer sends the answers to all complete labels, and DONE when every client has said so.
func (s *Server) answer() {
	if s.state != serverCollecting {
		return
	}
	for {
		l, mask, b, ok := s.coll.next()
		if !ok {
			break
		}
		s.toAll(b)
		s.tell(Event{Kind: EventAnswered, Label: l, Mask: mask})
	}
	if s.coll.allDone() {
		s.state = serverRunning
		s.toAll(wire.AppendCommand(nil, wire.CmdDone, 0))
		s.tell(Event{Kind: EventRunning})
		s.endIfAllLeft()
	}
}

// takeFini marks a client as finished (IMPI ch.2, FINI command). A client that sends FINI
// before the others are DONE gets no more answers; it does not wait for any.
func (s *Server) takeFini(c *conn) error {
	c.state = connFini
	s.left[c.rank] = true
	s.tell(Event{Kind: EventFinished, Client: c.rank})
	s.do(Action{Kind: ActClose, Conn: c.id})
	s.drop(c)
	s.endIfAllLeft()
	return nil
}

func (s *Server) endIfAllLeft() {
	if s.state != serverRunning {
		return
	}
	for _, left := range s.left {
		if !left {
			return
		}
	}
	endSpares(s)
	s.tell(Event{Kind: EventEnded})
	s.end(nil)
}

func (s *Server) end(err error) {
	s.state, s.err = serverEnded, err
	for _, c := range s.conns {
		s.do(Action{Kind: ActClose, Conn: c.id, Reason: err})
		s.unknown.Leave(c.id)
	}
	s.conns = nil
}
