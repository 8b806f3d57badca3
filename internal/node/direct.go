package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

const (
	dialLimit  = 10 * time.Second // for one transport's dial
	greetLimit = 10 * time.Second // for the greeting behind it
	yieldTime  = time.Second      // for the other end's link after a tie was lost
	maxYields  = 20               // such waits until we give up
	shortPause = time.Millisecond // until a link to another world is tried again, at first
)

// retries are the pauses before dialling again somebody who listens but refuses:
// a plugin that is started again opens its listeners within that time. Or somebody who
// had no room for one that had not greeted yet.
var retries = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

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
	meet     *meetings
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
func (d *directLinks) open(p *proc, peer wire.WorldRank) {
	x := pair{wire.WorldRank(p.rank.Load()), peer}
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
	d.meet.close()
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

// wait waits. False: the context has ended.
func (d *directLinks) wait(t time.Duration) bool {
	select {
	case <-d.ctx.Done():
		return false
	case <-time.After(t):
		return true
	}
}

// connect makes a link, or waits for the other end's, or gives up.
func (d *directLinks) connect(p *proc, x pair) {
	reason := fmt.Sprintf("rank %d was about to connect and did not within %v", x.peer, maxYields*yieldTime)
	for range maxYields {
		lost, why := d.tryWays(p, x)
		if !lost {
			reason = why
			break
		}
		if !d.yield(x) {
			return
		}
	}
	if d.ctx.Err() == nil {
		d.fallBack(p, x, reason)
	}
}

// tryWays tries the transports one after the other. lost tells that the other
// end dials too and that its link is the one to use; reason why there is none.
func (d *directLinks) tryWays(p *proc, x pair) (lost bool, reason string) {
	var reasons []string
	var missed misses
	for _, w := range d.n.ways(x) {
		l, session, err := d.dialPatiently(x, w)
		if err == nil {
			if d.decide((*dynamic.Ties[pair]).Made, x) {
				d.n.fellBack("direct link", d.n.job.Procs[x.peer].Client, w.t, missed)
				d.past.tried(x, w, links.Chosen, "", "the first of the route's prefer that works")
				d.give(p, x.peer, l, w.t.name, d.enrol(x, session, true), true)
			} else {
				_ = l.Close() // the other end's link came, against the rule
			}
			return false, ""
		}
		if refused(err) == dynamic.TieLost {
			d.past.tried(x, w, links.Lost, "", "both ends dialled at once: the link of the lower rank is used")
			return true, ""
		}
		missed.add(w, err)
		d.past.failed(x, w, err)
		d.n.log.Debug("direct link failed", "from", x.local, "to", x.peer, "transport", w.t.name, "error", err)
		reasons = append(reasons, fmt.Sprintf("%s: %v", w.t.name, err))
	}
	if reasons == nil {
		return false, noWay
	}
	return false, strings.Join(reasons, "; ")
}

// dialPatiently dials again while nobody listens where the card says, or there are
// too many at once, there or here.
func (d *directLinks) dialPatiently(x pair, w way) (l link.Link, s dynamic.Session, err error) {
	for _, pause := range retries {
		l, s, err = d.dial(x, w)
		var te *transports.Error
		passes := errors.As(err, &te) && (te.Code == transports.CodeRefused || te.Code == transports.CodeResource) || errors.Is(err, errNoRoom)
		if !passes || d.phase(x) != dynamic.Dialling {
			return l, s, err
		}
		select {
		case <-time.After(pause):
		case <-d.ctx.Done():
			return nil, s, err
		}
	}
	return d.dial(x, w)
}

func (d *directLinks) phase(x pair) dynamic.Phase {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ties.Phase(x)
}

// refused gives the verdict of a peer that proved to be of our job.
func refused(err error) dynamic.Verdict {
	var r *dynamic.RefusedError
	if errors.As(err, &r) && r.Proven {
		return r.Verdict
	}
	return dynamic.Accepted
}

// yield waits for the link that won the tie, which accept will find. True means
// that it did not come: dial again, as the other end may have given up.
func (d *directLinks) yield(x pair) (again bool) {
	return d.decide((*dynamic.Ties[pair]).Lost, x) && d.wait(yieldTime) && d.decide((*dynamic.Ties[pair]).Overdue, x)
}

// fallBack sends the pair's packets through the agent, unless a link has come.
func (d *directLinks) fallBack(p *proc, x pair, reason string) {
	if !d.decide((*dynamic.Ties[pair]).GiveUp, x) {
		return
	}
	d.past.refused(x, reason)
	d.n.goesByAgents(x, reason)
	if err := p.tell(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason}); err != nil {
		d.n.log.Debug("cannot tell", "proc", p.who(), "error", err)
	}
}

// dial makes a link by one way and greets the other node. It is to last if there
// is a session.
func (d *directLinks) dial(x pair, w way) (link.Link, dynamic.Session, error) {
	hello := dynamic.Hello{Src: x.local, Dst: x.peer}
	if d.n.resumable(x.local, x.peer) {
		hello.Session = newSession()
	}
	l, err := d.dialFor(d.ctx, &hello, w)
	if errors.Is(err, errUncertain) && hello.Session != (dynamic.Session{}) {
		l, err = d.dialOver(hello, w)
	}
	return l, hello.Session, err
}

// dialFor is dial for any purpose that a greeting can name. It takes the session
// out of hello for a link that needs none.
func (d *directLinks) dialFor(within context.Context, hello *dynamic.Hello, w way) (link.Link, error) {
	return d.dialBy(within, d.n.pinned(w.t, hello.Dst), hello, w)
}

// dialBy is dialFor by a transport with what is pinned.
func (d *directLinks) dialBy(within context.Context, t transports.Transport, hello *dynamic.Hello, w way) (link.Link, error) {
	return d.dialWith(within, d.token, t, hello, w)
}

// dialWith is dialBy with a greeting that another token keys than the job's.
func (d *directLinks) dialWith(within context.Context, token dynamic.Token, t transports.Transport, hello *dynamic.Hello, w way) (link.Link, error) {
	ctx, cancel := context.WithTimeout(within, dialLimit)
	defer cancel()
	l, err := t.Dial(ctx, transports.DialSpec{Address: w.address, From: w.from})
	if err != nil {
		return nil, err
	}
	if !hello.Again && !hello.Lost && !breakable(l) {
		hello.Session = dynamic.Session{}
	}
	ctx, stop := context.WithTimeout(within, greetLimit)
	defer stop()
	g := dynamic.NewDialler(token, nonce(), *hello)
	if err := converse(ctx, l, g, g.Done); err != nil {
		_ = l.Close()
		switch {
		case refused(err) != dynamic.Accepted:
		case !g.Proved() && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, link.ErrBroken)): // it cannot have accepted
			err = fmt.Errorf("%w: %w", errNoRoom, err)
			fallthrough
		default: // no word of the peer's
			err = fmt.Errorf("%w: %w", errUncertain, err)
		}
		return nil, err
	}
	return l, nil
}

// errNoRoom is wrapped when the acceptor hung up before it had heard who we are.
var errNoRoom = errors.New("the peer had no room for a greeting")

// serve accepts links at a listener until it is closed. Who says nothing makes room
// for others: procs greet at once.
func (d *directLinks) serve(l directListener) {
	for {
		x, err := l.Accept(d.ctx)
		if err != nil {
			if d.ctx.Err() == nil {
				d.n.log.Warn("direct links cannot arrive any more", "transport", l.t.name, "error", err)
			}
			return
		}
		ctx, evict := context.WithCancelCause(d.ctx)
		leave := d.waiting.Enter(socket.SourceOf(x), func() { evict(errCrowded) })
		d.wg.Go(func() {
			defer evict(nil)
			if err := d.accept(ctx, leave, x, l); err != nil {
				_ = x.Close()
				d.n.log.Debug("refused a direct link", "transport", l.t.name, "error", err)
			}
		})
	}
}

// errCrowded is why a greeting ends that made room for another one.
var errCrowded = errors.New("it had not greeted when there were too many others")

// identify has who has connected prove who it is, within ctx, and calls leave then.
func (d *directLinks) identify(ctx context.Context, leave func(), l link.Link, at directListener) (*dynamic.Acceptor, error) {
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	g := dynamic.NewAcceptor(d.keysAt(at), nonce())
	known := func() bool { _, ok := g.Peer(); return ok }
	return g, converse(ctx, l, g, known)
}

// accept greets who has connected and gives the link to its proc.
func (d *directLinks) accept(within context.Context, leave func(), l link.Link, at directListener) error {
	t := at.t
	g, err := d.identify(within, leave, l, at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(d.ctx, greetLimit)
	defer cancel()
	hello, _ := g.Peer()
	switch {
	case at.hosts && !hello.Hosts:
		g.Refuse(dynamic.NotAllowed)
		return converse(ctx, l, g, g.Done)
	case hello.Hosts:
		return d.acceptChannel(ctx, l, g, hello, at)
	case !d.awaitReady(ctx):
		return context.Cause(ctx)
	case hello.Spawn:
		return d.acceptSpawn(ctx, l, g, hello, t)
	case hello.Call:
		return d.meet.acceptCall(ctx, l, g, hello, t)
	case hello.World != dynamic.World{}:
		return d.meet.acceptMeet(ctx, l, g, hello, t)
	case hello.Probe:
		return d.answerProbe(ctx, l, g, hello, t)
	case hello.Again, hello.Lost:
		return d.acceptAgain(ctx, l, g, hello, t)
	}
	var p *proc
	verdict := dynamic.NotAllowed
	if d.n.allowsPlane(hello.Src, l) {
		p, verdict = d.judge(hello, t)
	}
	x := pair{hello.Dst, hello.Src}
	var s *dynamic.SessionState
	if verdict == dynamic.Accepted {
		s = d.enrol(x, hello.Session, false) // before anybody can ask for it again
		g.Accept()
	} else {
		g.Refuse(verdict)
	}
	if err := converse(ctx, l, g, g.Done); err != nil {
		if verdict == dynamic.Accepted {
			d.dismiss(x, s)
			d.decide((*dynamic.Ties[pair]).Drop, x)
		}
		return err
	}
	d.give(p, hello.Src, l, t.name, s, false)
	return nil
}

// keysAt are what diallers may greet a listener with.
func (d *directLinks) keysAt(at directListener) dynamic.Keys {
	others := d.meet.keys()
	return func(name dynamic.World, of dynamic.Purpose) (dynamic.Token, bool) {
		if of == dynamic.OfChannel {
			return d.channels.at(at.h, name)
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
func (d *directLinks) judge(h dynamic.Hello, t *transport) (*proc, dynamic.Verdict) {
	p := d.n.procOf(h.Dst)
	switch {
	case p == nil || int(h.Src) >= len(d.n.job.Procs):
		return nil, dynamic.UnknownRank
	case procPhase(p.phase.Load()) != welcomed:
		return nil, dynamic.Leaving
	case !d.n.allows(h.Src, t) || h.Session != (dynamic.Session{}) && !d.n.resumable(h.Dst, h.Src):
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
func (d *directLinks) give(p *proc, peer wire.WorldRank, l link.Link, transport string, s *dynamic.SessionState, dialled bool) {
	x := pair{wire.WorldRank(p.rank.Load()), peer}
	reason := planeReason(l)
	m := wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: transport, Reason: reason}
	if s != nil {
		m.Resumable = d.n.terms(s)
	}
	fds, err := pack(l, &m)
	if err == nil {
		err = p.tell(m, fds...)
		wireup.CloseAll(fds)
	}
	if err != nil {
		d.past.refused(x, "the link could not be given to the proc: "+err.Error())
		d.n.log.Debug("direct link is lost", "proc", p.who(), "peer", peer, "error", err)
		return
	}
	d.past.given(x, &m, reason, dialled)
	d.n.log.Debug("direct link", "rank", p.rank.Load(), "peer", peer, "transport", transport, "data_plane", m.DataPlane, "reason", m.Reason)
}

// pack takes the descriptors out of a link, and describes them in m.
func pack(l link.Link, m *wireup.Message) (fds []int, err error) {
	switch x := l.(type) {
	case transports.Socket:
		m.DataPlane = string(transports.PlaneFD)
		fd, preread, err := x.Detach()
		if err == nil && len(preread) > 0 {
			wireup.CloseAll([]int{fd})
			return nil, fmt.Errorf("%d bytes of packets came with the greeting", len(preread))
		}
		return []int{fd}, err
	case transports.Relayed:
		m.DataPlane = string(x.Plane())
		fds, m.Side, err = x.Detach()
		return fds, err
	case transports.Memory:
		m.DataPlane = string(transports.PlanePeerSHM)
		region, socket, side, err := x.Detach()
		m.Side = side
		return []int{region, socket}, err
	}
	panic(fmt.Sprintf("node: transport %s made a %T, which cannot be handed on", m.Transport, l))
}
