package job

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

type server struct {
	w     *Simulation
	m     *startup.Server
	conns map[startup.ConnID]*conn
	last  startup.ConnID
	timer *kernel.Timer
	dead  bool
	ended bool
	lost  wire.ClientMask // sites without which the job continues
	named wire.ClientMask // sites that have named their rank

	silent map[startup.ConnID]unproved.Source // connections that belong to no site
	err    error
}

func newServer(w *Simulation) (*server, error) {
	c := startup.ServerConfig{Clients: len(w.cfg.Sites), Auth: w.cfg.Auth, Limit: w.cfg.Limit, SurvivesLoss: w.spawned == nil, Spares: len(w.cfg.Spares)}
	if w.cfg.Silent > 0 {
		c.WaitingThere, c.Waiting = mostThere, mostWaiting
	}
	m, err := startup.NewServer(c, w.time())
	if err != nil {
		return nil, err
	}
	s := &server{w: w, m: m, conns: make(map[startup.ConnID]*conn), silent: make(map[startup.ConnID]unproved.Source)}
	s.timer = w.k.After(0, s.tick)
	for range w.cfg.Silent {
		w.k.After(w.k.Between(0, 8*(w.cfg.Links.Server.Delay+time.Millisecond)), s.connectSilently)
	}
	return s, nil
}

// Of connections to a server to which silent connections are made, so many may be open that have not named
// their rank, from one address and in all. All sites are at addresses of their own.
const (
	mostThere   = 3
	mostWaiting = 8
)

// connectSilently connects to the server from one of a few addresses, or from that of a site that has
// named its rank, and says nothing.
func (s *server) connectSilently() {
	l := s.w.k.NewLink(s.w.cfg.Links.Server, nil)
	newConn(l.Ends[0], s.w.buf, func([]byte) {}, func(error) {})
	peer := fmt.Sprintf("10.100.%d.1:4000", s.w.k.Rand().IntN(3))
	if i := s.w.k.Rand().IntN(2 * len(s.w.sites)); i < len(s.w.sites) && s.named.Has(wire.ClientRank(i)) {
		peer = clientPeer(i)
	}
	s.silent[s.last+1] = sourceOf(peer)
	s.connect(l.Ends[1], peer)
	there := make(map[unproved.Source]int)
	all := 0
	for id, from := range s.silent {
		if c := s.conns[id]; c != nil && !c.closing {
			there[from]++
			all++
		}
	}
	if there[sourceOf(peer)] > mostThere || all > mostWaiting {
		disorder(s.w, "the server keeps %d silent connections, %d of them from %s", all, there[sourceOf(peer)], peer)
	}
}

func sourceOf(peer string) unproved.Source {
	return unproved.From(netip.MustParseAddrPort(peer).Addr())
}

func (s *server) connect(e *kernel.End, peer string) {
	if s.dead || s.ended {
		_ = e.Close() // the server has refused it
		return
	}
	s.last++
	id := s.last
	s.m.Accept(id, peer, sourceOf(peer), s.w.time())
	s.conns[id] = newConn(e, s.w.buf,
		func(b []byte) {
			s.m.Receive(id, b, s.w.time())
			s.act()
		},
		func(cause error) {
			if s.conns[id] != nil {
				delete(s.conns, id)
				s.m.Closed(id, cause)
				s.act()
			}
		})
	s.act()
}

func (s *server) tick() {
	if !s.dead {
		s.m.Tick(s.w.time())
		s.act()
	}
}

func (s *server) act() {
	for {
		a, ok := s.m.Next()
		if !ok {
			break
		}
		c := s.conns[a.Conn]
		switch {
		case a.Kind == startup.ActEvent:
			switch a.Event.Kind {
			case startup.EventLost:
				s.lost = s.lost.With(a.Event.Client)
			case startup.EventJoined:
				s.named = s.named.With(a.Event.Client)
			default:
			}
			if s.w.k.Tracing() {
				s.w.k.Tracef("server: %v", a.Event)
			}
		case c == nil:
		case a.Kind == startup.ActSend:
			c.send(a.Bytes)
		case a.Kind == startup.ActClose:
			c.finish()
		}
	}
	if ended, err := s.m.Ended(); ended && !s.ended {
		s.ended, s.err = true, err
		if err != nil && endsWithServer(s.w, errors.Is(err, startup.ErrLost) && !slices.ContainsFunc(s.w.sites, tied)) {
			s.w.broken()
		}
		s.timer.Stop()
		for _, id := range slices.Sorted(maps.Keys(s.conns)) {
			s.conns[id].finish()
		}
		if err != nil {
			ownServerEnded(s.w)
		}
		s.gone()
		return
	}
	if at, ok := s.m.Deadline(); ok && !s.ended {
		s.timer.Reset(at.Sub(s.w.time()))
	}
}

func (s *server) crash() {
	if s.dead {
		return
	}
	s.dead, s.ended = true, true
	s.err = errors.New("the server has crashed")
	s.timer.Stop()
	for _, id := range slices.Sorted(maps.Keys(s.conns)) {
		s.conns[id].close()
	}
	s.w.crashed(Endpoint{AtServer, 0})
	s.gone()
}

func (s *server) gone() {
	if w := s.w.spawned; w != nil {
		w.a.after(200*time.Microsecond, w.check)
	}
}

var epoch = time.Unix(1_000_000, 0)

func (w *Simulation) time() time.Time { return epoch.Add(w.k.Now()) }

func clientPeer(c int) string { return fmt.Sprintf("10.0.%d.1:4000", c) }
