package startup

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// ServerConfig describes the job that a server serves.
type ServerConfig struct {
	Clients int // 1 to wire.MaxClients
	Auth    Auth

	Limit     time.Duration // for all clients to come, and then for all to send DONE; 0 means DefaultLimit
	ConnLimit time.Duration // for a connection to name its client rank; 0 means 10 s

	// SurvivesLoss is set if the server is no part of a site, so that own clients continue without it,
	// and it continues without one of them, too.
	SurvivesLoss bool

	// Spares is the maximum number of spare sites at a time: sites without procs, which receive all
	// data that clients have of the job and may come at any time before its end. If it is not 0,
	// connections are accepted until then. At most MaxSpares.
	Spares int

	// WaitingThere and Waiting bound the number of open connections that have not named their rank,
	// from one address and in all. 0 means 64 and 256: all clients of a job may be at one address
	// and come at once.
	WaitingThere, Waiting int
}

// MaxSpares is the most spare sites of a job.
const MaxSpares = 32

func (c ServerConfig) withDefaults() ServerConfig {
	if c.Limit <= 0 {
		c.Limit = DefaultLimit
	}
	if c.ConnLimit <= 0 {
		c.ConnLimit = 10 * time.Second
	}
	if c.WaitingThere <= 0 {
		c.WaitingThere = 2 * wire.MaxClients
	}
	if c.Waiting <= 0 {
		c.Waiting = 8 * wire.MaxClients
	}
	return c
}

type connState uint8

const (
	connAuth connState = iota
	connKey
	connIMPI
	connColl // a client of the job from here on
	connDone
	connFini
	connSpare // a spare site, whose end does not affect the job
)

type conn struct {
	id    ConnID
	peer  string
	from  unproved.Source
	state connState
	rank  wire.ClientRank // valid from connColl on
	since time.Time
	gone  bool // the connection has ended: nothing can be sent
	in    reader

	wrong  error // set if the connection is to be refused at the time answer; until then its input is ignored
	answer time.Time
}

type serverState uint8

const (
	serverJoining serverState = iota
	serverCollecting
	serverRunning
	serverEnded
)

// Server is the rendezvous of one job (IMPI ch.2, Startup). Its owner tells it of
// connections by Accept, Receive and Closed and of the time by Tick, and does what Next
// returns.
//
// A connection that has not named its client rank cannot harm the job: it alone is refused,
// and may have to make room for others. After that, any error of the connection ends the
// job for all, since no job can go on without one of its clients.
type Server struct {
	cfg      ServerConfig
	state    serverState
	err      error
	deadline time.Time             // for joining and collecting
	conns    []*conn               // in the order of Accept
	clients  []*conn               // by rank; nil while it has not come
	left     []bool                // by rank: the client has sent FINI, so its connection may end, or is lost
	hears    wire.ClientMask       // clients that list wire.LostVersion
	refused  []string              // what happened to the first few refused connections
	unknown  *unproved.Set[ConnID] // connections that have not named their rank
	slow     unproved.Slow         // sources of wrong keys
	coll     collection
	said     [][]byte // messages to all clients since all have come, for spare sites that come later
	actions  []Action
}

// NewServer makes a server whose time limit begins now.
func NewServer(cfg ServerConfig, now time.Time) (*Server, error) {
	switch {
	case cfg.Clients < 1 || cfg.Clients > wire.MaxClients:
		return nil, fmt.Errorf("startup: server: %w: %d clients; 1 to %d are possible", ErrConfig, cfg.Clients, wire.MaxClients)
	case cfg.Auth.Mask() == 0:
		return nil, fmt.Errorf("startup: server: %w: no authentication mechanism is enabled", ErrConfig)
	case cfg.Spares < 0 || cfg.Spares > MaxSpares:
		return nil, fmt.Errorf("startup: server: %w: %d spare sites; 0 to %d are possible", ErrConfig, cfg.Spares, MaxSpares)
	}
	cfg = cfg.withDefaults()
	return &Server{
		cfg:      cfg,
		deadline: now.Add(cfg.Limit),
		clients:  make([]*conn, cfg.Clients),
		left:     make([]bool, cfg.Clients),
		unknown:  unproved.NewSet[ConnID](unproved.Limits{PerSource: cfg.WaitingThere, Total: cfg.Waiting}),
		coll:     newCollection(cfg.Clients),
	}, nil
}

// Next removes and returns the next action; ok is false until another call makes one.
func (s *Server) Next() (Action, bool) {
	if len(s.actions) == 0 {
		return Action{}, false
	}
	a := s.actions[0]
	s.actions[0] = Action{}
	s.actions = s.actions[1:]
	return a, true
}

// Ended reports whether the job is over, and the error with which it has ended. The owner must
// still carry out the actions that Next returns.
func (s *Server) Ended() (bool, error) { return s.state == serverEnded, s.err }

// Deadline returns the time at which Tick must be called, if there is one.
func (s *Server) Deadline() (at time.Time, ok bool) {
	if s.state == serverJoining || s.state == serverCollecting {
		at, ok = s.deadline, true
	}
	for _, c := range s.conns {
		if d := c.deadline(s.cfg.ConnLimit); c.state < connColl && (!ok || d.Before(at)) {
			at, ok = d, true
		}
	}
	return at, ok
}

// deadline returns when a connection that has not become a client is refused.
func (c *conn) deadline(limit time.Duration) time.Time {
	if d := c.since.Add(limit); c.wrong == nil || d.Before(c.answer) {
		return d
	}
	return c.answer
}

// Tick passes the time. Connections that are late are refused, and clients that are late end the
// job.
func (s *Server) Tick(now time.Time) {
	for _, c := range slices.Clone(s.conns) {
		switch {
		case c.state >= connColl || now.Before(c.deadline(s.cfg.ConnLimit)):
		case c.wrong != nil:
			s.refuse(c, c.wrong)
		default:
			s.refuse(c, fmt.Errorf("%w: no client rank within %v", ErrTimeout, s.cfg.ConnLimit))
		}
	}
	if now.Before(s.deadline) {
		return
	}
	switch s.state {
	case serverJoining:
		s.fail(fmt.Errorf("%w: %s did not come within %v%s", ErrTimeout, s.missing(), s.cfg.Limit, s.refusedPeers()))
	case serverCollecting:
		s.fail(fmt.Errorf("%w: %s not DONE %v after all had come", ErrTimeout, s.laggards(), s.cfg.Limit))
	case serverRunning, serverEnded: // no time limit
	}
}

// Accept adds a new connection. The id must be new; peer names the connection in messages, and
// limits count connections by from. If there are too many connections that have not named their
// rank, the oldest is closed: real clients name it at once.
func (s *Server) Accept(id ConnID, peer string, from unproved.Source, now time.Time) {
	c := &conn{id: id, peer: peer, from: from, since: now}
	s.conns = append(s.conns, c)
	if s.state != serverJoining && s.cfg.Spares == 0 {
		s.refuse(c, fmt.Errorf("%w: it has %d already", ErrFull, s.cfg.Clients))
		return
	}
	waiting := s.unknown.Len()
	if out, evicted := s.unknown.Enter(id, from); evicted {
		s.refuse(s.conn(out), fmt.Errorf("%w: %d others have not named their client rank yet", ErrBusy, waiting))
	}
}

// WouldFail returns the client with a connection, and would reports whether the job would fail if
// that connection ended.
func WouldFail(s *Server, id ConnID) (client wire.ClientRank, would bool) {
	c := s.conn(id)
	if s.state == serverEnded || c == nil || c.wrong != nil || c.state < connColl || c.state >= connFini {
		return 0, false
	}
	return c.rank, true
}

// Closed reports to the server that a connection has ended; cause is nil for an orderly end. An end
// of the peer's sending half counts too: a peer that cannot send cannot take part.
func (s *Server) Closed(id ConnID, cause error) {
	c := s.conn(id)
	if c == nil {
		return
	}
	s.drop(c)
	switch {
	case c.wrong != nil:
		s.note(c, c.wrong)
	case c.state < connColl:
		s.note(c, lost(cause, "before it named its client rank"))
	case c.state == connSpare:
		s.tell(Event{Kind: EventSpareGone, Conn: c.id, Peer: c.peer, Err: lost(cause, "before the end of the job")})
	case c.state < connFini:
		err := s.blame(c, lost(cause, fmt.Sprintf("before FINI (the last it sent was %s)", s.progress(c))))
		if goesWithout(s, c) {
			spare(s, c, err)
			return
		}
		s.fail(err)
	}
}

// Abort ends the job for a reason that the owner gives.
func (s *Server) Abort(reason error) { s.fail(reason) }

// Leave ends the server for a reason that the owner gives. A running job continues at own sites, to
// which this is the loss of the server; before the job runs, Leave is Abort.
func (s *Server) Leave(reason error) {
	if s.state != serverRunning {
		s.fail(reason)
		return
	}
	s.end(fmt.Errorf("startup: server: %w: %w", ErrLeft, reason))
}

// Receive handles bytes of a connection. It does not keep b.
func (s *Server) Receive(id ConnID, b []byte, now time.Time) {
	c := s.conn(id)
	if c == nil || c.wrong != nil {
		return
	}
	c.in.feed(b)
	defer c.in.rest()
	for s.state != serverEnded && s.conn(id) != nil && c.wrong == nil {
		more, err := s.step(c, now)
		if err != nil {
			s.blameOrRefuse(c, err)
		}
		if !more {
			return
		}
	}
}

// conn returns the connection if it is open, or nil.
func (s *Server) conn(id ConnID) *conn {
	for _, c := range s.conns {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (s *Server) drop(c *conn) {
	c.gone = true
	s.unknown.Leave(c.id)
	s.conns = slices.DeleteFunc(s.conns, func(o *conn) bool { return o == c })
}

func (s *Server) do(a Action) { s.actions = append(s.actions, a) }

func (s *Server) tell(e Event) { s.do(Action{Kind: ActEvent, Conn: e.Conn, Event: e}) }

// toAll sends b to every client that has joined and not finished, and to spare sites.
func (s *Server) toAll(b []byte) {
	for _, c := range s.clients {
		if c != nil && !c.gone {
			s.do(Action{Kind: ActSend, Conn: c.id, Bytes: b})
		}
	}
	if s.cfg.Spares == 0 {
		return
	}
	s.said = append(s.said, b)
	for c := range spareConns(s) {
		s.do(Action{Kind: ActSend, Conn: c.id, Bytes: b})
	}
}
