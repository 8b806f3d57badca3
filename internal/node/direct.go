package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/meet"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/site"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

// linkFiles is how many file descriptors a link has at most: one whose data plane is
// "grpc" has a pair of sockets and a pipe.
const linkFiles = 4

// pair is a local proc and another, perhaps on the same node.
type pair struct{ local, peer wire.WorldRank }

// directLinks makes the links between procs that pass the agents by.
//
// Both ends may want one at the same time: then the lower rank is prior.
type directLinks struct {
	n        *node
	ctx      context.Context
	token    dynamic.Token // zero: no direct link is possible
	channels channelTokens
	wg       sync.WaitGroup
	past     history
	meet     *meet.Meetings
	service  probeServer
	waiting  *socket.Waiting // links at all listeners that have not greeted

	mu       sync.Mutex
	ties     dynamic.Ties[pair]
	sessions dynamic.Sessions[pair]                       // of resumable links
	hush     map[*dynamic.SessionState]context.CancelFunc // of who is being told that a link is lost, when that is not needed any more
	closed   bool                                         // nothing is begun any more
}

func newDirectLinks(ctx context.Context, n *node) *directLinks {
	d := &directLinks{
		n: n, ctx: ctx, token: n.job.Token, channels: newChannelTokens(n),
		waiting: socket.NewWaiting(linkFiles),
		hush:    make(map[*dynamic.SessionState]context.CancelFunc),
	}
	d.meet = newMeetings(d)
	return d
}

// decide asks the ties about a pair, with what they are to be told.
func (d *directLinks) decide(what func(*dynamic.Ties[pair], pair) bool, x pair) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return what(&d.ties, x)
}

// open is a proc's wish for a link to a peer.
func (d *directLinks) open(p *procs.Proc, peer wire.WorldRank) {
	x := pair{p.Rank(), peer}
	if peer < 0 || int(peer) >= len(d.n.job.Procs) || peer == x.local {
		d.n.log.Warn("a proc asks for a link to a rank that is none", "rank", x.local, "peer", peer)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && d.ties.Want(x) {
		d.wg.Go(func() { d.connect(p, x) })
	}
}

// close waits for everything that is under way. The context has ended.
func (d *directLinks) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wg.Wait()
	d.meet.Close()
}

// begin runs f until close at the latest, which it is to notice by the context.
// False: close came first.
func (d *directLinks) begin(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.wg.Go(f)
	}
	return !d.closed
}

// connect makes a link, or waits for the other end's, or gives up.
func (d *directLinks) connect(p *procs.Proc, x pair) {
	var hello dynamic.Hello
	var making *dynamic.SessionState // not nil once the peer's node may have the link
	limit := time.Duration(0)
	if d.n.routes.Resumable(x.local, x.peer) {
		limit = routes.Resume(d.n.opt.Job)
	}
	ways := d.n.ways(x)
	s := dial.Search{
		Search: dynamic.DirectSearch(len(ways), &d.ties, x, limit), Lock: &d.mu, Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, step dynamic.SearchStep) (link.Link, error) {
			if step.Fresh {
				hello, making = dynamic.Hello{Src: x.local, Dst: x.peer}, d.dismiss(x, making)
				if limit > 0 {
					hello.Session = newSession()
				}
			}
			hello.Again = step.Again
			l, err := d.dialFor(ctx, &hello, w)
			if errors.Is(err, dial.ErrUncertain) && making == nil {
				d.mu.Lock()
				defer d.mu.Unlock()
				making = d.sessions.Begin(x, hello.Session, &d.ties)
			}
			return l, err
		},
		Failed: func(w routes.Way, err error) {
			d.past.failed(x, w, err)
			d.n.log.Debug("direct link failed", "from", x.local, "to", x.peer, "transport", w.T.Name, "error", err)
		},
	}
	l, w, last := s.Run(d.ctx)
	if last.Action != dynamic.KeepLink {
		d.dismiss(x, making)
	}
	switch {
	case last.Action == dynamic.KeepLink:
		d.n.fallBacks.Warn("direct link", d.n.job.Procs[x.peer].Client, w, &s)
		d.past.tried(x, w, links.Chosen, "", "the first of the route's prefer that works")
		d.give(p, x.peer, l, w.T.Name, d.enrol(x, hello.Session, true), true)
	case last.Action != dynamic.GiveUp || d.ctx.Err() != nil:
	case last.Yielded:
		d.fallBack(p, x, fmt.Sprintf("rank %d was about to connect and did not within %v", x.peer, dynamic.MaxYields*dynamic.YieldTime))
	default:
		d.fallBack(p, x, cmp.Or(s.Reasons(), dial.NoWay))
	}
}

func (d *directLinks) phase(x pair) dynamic.Phase {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ties.Phase(x)
}

// ways lists how a pair could be linked, best first.
func (n *node) ways(x pair) []routes.Way {
	return n.routes.Ways(x.local, x.peer, n.procs.Of(x.local).Address())
}

// dialFor makes a link to a proc by a way, for any purpose that a greeting can name, and greets the
// other node. It takes the session out of hello for a link that needs none.
func (d *directLinks) dialFor(within context.Context, hello *dynamic.Hello, w routes.Way) (link.Link, error) {
	return dial.Greeted(within, d.token, d.n.routes.Pinned(w.T, hello.Dst), hello, w)
}

// fallBack sends the pair's packets through the agent.
func (d *directLinks) fallBack(p *procs.Proc, x pair, reason string) {
	d.past.refused(x, reason)
	d.n.fallBacks.ByAgents(x.local, x.peer, reason)
	if err := p.Tell(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason}); err != nil {
		d.n.log.Debug("cannot tell", "proc", p.Who(), "error", err)
	}
}

// serve accepts links at a listener until it is closed. Who says nothing makes room
// for others: procs greet at once.
func (d *directLinks) serve(l *site.Listener) {
	for {
		x, err := l.Accept(d.ctx)
		if err != nil {
			if d.ctx.Err() == nil {
				d.n.log.Warn("direct links cannot arrive any more", "transport", l.Transport.Name, "error", err)
			}
			return
		}
		ctx, evict := context.WithCancelCause(d.ctx)
		leave := d.waiting.Enter(socket.SourceOf(x), func() { evict(errCrowded) })
		d.wg.Go(func() {
			defer evict(nil)
			if err := d.accept(ctx, leave, x, l); err != nil {
				_ = x.Close()
				d.n.log.Debug("refused a direct link", "transport", l.Transport.Name, "error", err)
			}
		})
	}
}

// errCrowded is why a greeting ends that made room for another one.
var errCrowded = errors.New("it had not greeted when there were too many others")

// identify has who has connected prove who it is, within ctx, and calls leave then.
func (d *directLinks) identify(ctx context.Context, leave func(), l link.Link, at *site.Listener) (*dynamic.Acceptor, error) {
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, dial.GreetLimit)
	defer cancel()
	g := dynamic.NewAcceptor(d.keysAt(at), dial.Nonce())
	known := func() bool { _, ok := g.Peer(); return ok }
	return g, dial.Greet(ctx, l, g, known)
}

// accept greets who has connected and gives the link to its proc.
func (d *directLinks) accept(within context.Context, leave func(), l link.Link, at *site.Listener) error {
	t := at.Transport
	g, err := d.identify(within, leave, l, at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(d.ctx, dial.GreetLimit)
	defer cancel()
	hello, _ := g.Peer()
	switch {
	case at.Plain && !hello.Hosts:
		return dial.Answer(ctx, l, g, dynamic.NotAllowed)
	case hello.Hosts:
		return d.acceptChannel(ctx, l, g, hello, at)
	case !d.awaitReady(ctx):
		return context.Cause(ctx)
	case hello.Spawn:
		return d.acceptSpawn(ctx, l, g, hello, t)
	case hello.Call:
		return d.meet.AcceptConnect(ctx, l, g, hello, t)
	case hello.World != dynamic.World{}:
		return d.meet.AcceptLink(ctx, l, g, hello, t)
	case hello.Probe:
		return d.answerProbe(ctx, l, g, hello, t)
	case hello.Again, hello.Lost:
		return d.acceptAgain(ctx, l, g, hello, t)
	}
	var p *procs.Proc
	verdict := dynamic.NotAllowed
	if d.n.routes.AllowsPlane(hello.Src, l) {
		p, verdict = d.judge(hello, t)
	}
	x := pair{hello.Dst, hello.Src}
	var s *dynamic.SessionState
	if verdict == dynamic.Accepted {
		s = d.enrol(x, hello.Session, false) // before anybody can ask for it again
	}
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		if verdict == dynamic.Accepted {
			d.dismiss(x, s)
			d.decide((*dynamic.Ties[pair]).Drop, x)
		}
		return err
	}
	d.give(p, hello.Src, l, t.Name, s, false)
	return nil
}

// keysAt are what diallers may greet a listener with.
func (d *directLinks) keysAt(at *site.Listener) dynamic.Keys {
	others := d.meet.Keys()
	return func(name dynamic.World, of dynamic.Purpose) (dynamic.Token, bool) {
		if of == dynamic.OfChannel {
			return d.channels.at(at.Host, name)
		}
		return others(name, of)
	}
}

// awaitReady waits until the procs have their links to the agents, and the agents
// their channels: other nodes may be faster than this one. False: it took too long.
func (d *directLinks) awaitReady(ctx context.Context) bool {
	select {
	case <-d.n.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// judge decides about a link that a peer has made.
func (d *directLinks) judge(h dynamic.Hello, t *routes.Transport) (*procs.Proc, dynamic.Verdict) {
	p := d.n.procs.Of(h.Dst)
	switch {
	case p == nil || int(h.Src) >= len(d.n.job.Procs):
		return nil, dynamic.UnknownRank
	case p.Phase() != procs.InMPI:
		return nil, dynamic.Leaving
	case !d.n.routes.Allows(h.Src, t) || h.Session != (dynamic.Session{}) && !d.n.routes.Resumable(h.Dst, h.Src):
		return nil, dynamic.NotAllowed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch v := d.ties.Arrive(pair{h.Dst, h.Src}, h.Src < h.Dst); v {
	case dynamic.Accepted:
		return p, v
	case dynamic.StillLinked: // by the link of the lower rank, which this node knows of first
		return nil, dynamic.TieLost
	default:
		return nil, v
	}
}

// give hands a link to its proc; s is nil for one that does not last.
func (d *directLinks) give(p *procs.Proc, peer wire.WorldRank, l link.Link, transport string, s *dynamic.SessionState, dialled bool) {
	x := pair{p.Rank(), peer}
	reason := dial.OriginOf(l).Reason
	m := wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: transport, Reason: reason}
	if s != nil {
		m.Resumable = d.n.terms(s)
	}
	fds, err := dial.Pack(l, &m)
	if err == nil {
		err = p.Tell(m, fds...)
		wireup.CloseAll(fds)
	}
	if err != nil {
		d.past.refused(x, "the link could not be given to the proc: "+err.Error())
		d.n.log.Debug("direct link is lost", "proc", p.Who(), "peer", peer, "error", err)
		return
	}
	d.past.given(x, &m, reason, dialled)
	d.n.log.Debug("direct link", "rank", p.Rank(), "peer", peer, "transport", transport, "data_plane", m.DataPlane, "reason", m.Reason)
}

// through counts the links whose bytes pass through a transport's plugin: those that
// last, and others.
func (d *directLinks) through(transport string) (resumable, others int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for x, phase := range d.ties.All() {
		if phase != dynamic.Linked {
			continue
		}
		r := d.past.of(x.local, x.peer)
		if p := transports.DataPlane(r.plane); p == transports.PlaneFD || p == transports.PlanePeerSHM {
			continue
		}
		switch {
		case r.transport != transport || d.n.procs.Of(x.local).Phase() == procs.Finished:
		case d.sessions.Get(x) != nil:
			resumable++
		default:
			others++
		}
	}
	return resumable, others
}
