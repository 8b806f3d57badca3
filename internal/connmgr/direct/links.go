// Package direct makes the links between procs that pass the agents by, resumes them, and knows
// what was tried for whoever asks why a pair is linked as it is.
package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Pair is a local proc and another, perhaps on the same node.
type Pair struct{ Local, Peer wire.WorldRank }

// Settings are what links between procs need of a node.
type Settings struct {
	Routes    *routes.Table
	Procs     *procs.Set
	Token     dynamic.Token // zero: no direct link is possible
	Tasks     *lifetime.Group
	FallBacks *dial.FallBacks
	Log       hclog.Logger
}

// Links are the direct links of a site's procs. If both ends dial at the same time, the link of the
// lower rank is used.
type Links struct {
	Settings
	past history

	mu       sync.Mutex
	links    dynamic.DirectLinks[Pair]
	dialling map[*dynamic.ResumableLink]context.CancelFunc // dial plans of links that are lost
	proofs   map[leg]dynamic.ListenerState
}

// New returns Links without any link.
func New(s Settings) *Links {
	return &Links{Settings: s, dialling: make(map[*dynamic.ResumableLink]context.CancelFunc), proofs: make(map[leg]dynamic.ListenerState)}
}

func (d *Links) locked(f func(*dynamic.DirectLinks[Pair])) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.links)
}

// Open makes a link for a proc that asks for one.
func (d *Links) Open(p *procs.Proc, peer wire.WorldRank) {
	x := Pair{p.Rank(), peer}
	if peer < 0 || int(peer) >= d.Routes.World.Procs.Len() || peer == x.Local {
		d.Log.Warn("a proc asks for a link to a rank that does not exist", "rank", x.Local, "peer", peer)
		return
	}
	var dials bool
	if d.locked(func(l *dynamic.DirectLinks[Pair]) { dials = l.Request(x) }); dials {
		d.Tasks.Go(func() { d.connect(p, x) })
	}
}

// connect dials for a link. If the other end dials at the same time, it may be the other end's link
// that the proc gets.
func (d *Links) connect(p *procs.Proc, x Pair) {
	var hello dynamic.Hello
	limit := time.Duration(0)
	if d.Routes.Resumable(x.Local, x.Peer) {
		limit = routes.CurrentResumeLimit(d.Routes)
	}
	candidates := d.Candidates(x)
	s := dial.Dialing{
		DialPlan: dynamic.DirectLinkPlan(len(candidates), &d.links.Pairs, x, limit), Lock: &d.mu, Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, step dynamic.DialStep) (link.Link, error) {
			if step.Fresh {
				d.locked(func(l *dynamic.DirectLinks[Pair]) { l.Abandon(x, hello.ResumableID) })
				hello = dynamic.Hello{Src: x.Local, Dst: x.Peer}
				if limit > 0 {
					hello.ResumableID = dial.NewSession()
				}
			}
			hello.Resumes = step.Resumes
			l, err := d.dial(ctx, &hello, w, d.limit(w))
			if errors.Is(err, dial.ErrUncertain) {
				d.locked(func(l *dynamic.DirectLinks[Pair]) { l.Uncertain(x, hello.ResumableID) })
			}
			return l, err
		},
		Failed: func(w routes.Candidate, err error) {
			d.past.failed(x, w, err)
			d.Log.Debug("direct link failed", "from", x.Local, "to", x.Peer, "transport", w.Transport.Name, "error", err)
		},
	}
	l, w, last := s.Run(d.Tasks)
	d.locked(func(l *dynamic.DirectLinks[Pair]) {
		if last.Action == dynamic.KeepLink {
			l.Made(x, hello.ResumableID)
		} else {
			l.Abandon(x, hello.ResumableID)
		}
	})
	switch {
	case last.Action == dynamic.KeepLink:
		d.FallBacks.Warn("direct link", d.Routes.World.Procs.At(x.Peer).Client, w, &s)
		d.past.tried(x, w, links.Chosen, "", "the first of the route's prefer that works")
		d.give(p, x.Peer, l, w.Transport.Name, hello.ResumableID, true)
	case last.Action != dynamic.GiveUp || d.Tasks.Err() != nil:
	case last.Yielded:
		d.fallBack(p, x, fmt.Sprintf("rank %d was about to connect and did not within %v", x.Peer, dynamic.MaxYields*dynamic.YieldTime), "")
	default:
		d.fallBack(p, x, cmp.Or(s.Reasons(), dial.NoCandidate), d.remedy(x, &s))
	}
}

// PairState returns how far a pair is from having a link.
func (d *Links) PairState(x Pair) dynamic.PairState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.links.Pairs.State(x)
}

// Candidates lists how a pair could be linked, best first.
func (d *Links) Candidates(x Pair) []routes.Candidate {
	return d.Routes.Candidates(x.Local, x.Peer, d.Procs.OfRank(x.Local).Address())
}

// Dial makes a link to a proc by a candidate, for any purpose that a greeting can name, and greets
// the other node. It takes the session out of hello for a link that needs none.
func (d *Links) Dial(within context.Context, hello *dynamic.Hello, w routes.Candidate) (link.Link, error) {
	return d.dial(within, hello, w, dynamic.DialLimit)
}

// dial is Dial with a limit for the connection below the greeting.
func (d *Links) dial(within context.Context, hello *dynamic.Hello, w routes.Candidate, limit time.Duration) (link.Link, error) {
	return dial.DialAndGreet(within, d.Token, dial.WithLimit(d.Routes.Pinned(w.Transport, hello.Dst), limit), hello, w)
}

func (d *Links) fallBack(p *procs.Proc, x Pair, reason, remedy string) {
	d.past.refused(x, reason)
	d.FallBacks.ByAgents(x.Local, x.Peer, reason, remedy)
	if err := p.Send(wireup.Message{Kind: wireup.KindLink, Peer: x.Peer, Reason: reason}); err != nil {
		d.Log.Debug("cannot send to a proc", "proc", p.ID(), "error", err)
	}
}

// Accept passes a link that has arrived to its proc.
func (d *Links) Accept(ctx context.Context, a *accept.Arrival) error {
	hello, l, t := a.Hello, a.Link, a.At.Transport
	if hello.Resumes || hello.Lost {
		return d.acceptAgain(ctx, a)
	}
	x := Pair{hello.Dst, hello.Src}
	var p *procs.Proc
	verdict := dynamic.NotAllowed
	if d.Routes.AllowsPlane(hello.Src, l) {
		p, verdict = d.judge(hello, t)
	}
	if err := a.Answer(ctx, verdict); err != nil {
		var again bool
		if verdict == dynamic.Accepted {
			d.locked(func(l *dynamic.DirectLinks[Pair]) { again = l.LostBeforeUse(x) })
		}
		if again {
			d.Tasks.Go(func() { d.connect(p, x) })
		}
		return err
	}
	d.locked(func(l *dynamic.DirectLinks[Pair]) { l.Given(x) })
	d.give(p, hello.Src, l, t.Name, hello.ResumableID, false)
	return nil
}

// judge decides whether a link that a peer has made is accepted, and gives the proc that it is for,
// or nil if it is not.
func (d *Links) judge(h dynamic.Hello, t *routes.Transport) (p *procs.Proc, v dynamic.Verdict) {
	p, to := receiver(d, h)
	to.Allowed = to.Known && d.Routes.Allows(h.Src, t) && (h.ResumableID == (dynamic.ResumableID{}) || d.Routes.Resumable(h.Dst, h.Src))
	d.locked(func(l *dynamic.DirectLinks[Pair]) { v = l.Arrive(Pair{h.Dst, h.Src}, h, to, h.Src < h.Dst) })
	if v != dynamic.Accepted {
		return nil, v
	}
	return p, v
}

// receiver returns the proc that a link or a connection is for, nil if this node has none, and what
// is known of it beside the routes.
func receiver(d *Links, h dynamic.Hello) (p *procs.Proc, to dynamic.Receiver) {
	p = d.Procs.OfRank(h.Dst)
	if p == nil || int(h.Src) >= d.Routes.World.Procs.Len() {
		return p, to
	}
	state := p.State()
	return p, dynamic.Receiver{Known: true, InMPI: state == ending.InMPI, Finished: state == ending.Finished, Ended: p.Over()}
}

// give gives a link to its proc; id is zero for a link that is not resumable.
func (d *Links) give(p *procs.Proc, peer wire.WorldRank, l link.Link, transport string, id dynamic.ResumableID, dialled bool) {
	x := Pair{p.Rank(), peer}
	m := wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: transport, Compress: routes.Compress(d.Routes, p.Rank(), peer, d.Routes.Transport(transport))}
	if id != (dynamic.ResumableID{}) {
		m.Resumable = &wireup.Resumable{Session: id[:], Dialler: dialled, Window: resumable.Window, Limit: routes.CurrentResumeLimit(d.Routes)}
	}
	from := dial.OriginOf(l)
	m.Reason = from.Reason
	if err := p.PassLink(l, &m); err != nil {
		d.past.refused(x, "the link could not be given to the proc: "+err.Error())
		d.Log.Debug("direct link is lost", "proc", p.ID(), "peer", peer, "error", err)
		return
	}
	d.past.given(x, &m, from.ID, dialled)
	d.Log.Debug("direct link", "rank", p.Rank(), "peer", peer, "transport", transport, "data_plane", m.DataPlane, "reason", m.Reason)
}

// CountThroughPlugin counts the links whose bytes pass through a transport's plugin: resumable
// ones, and others.
func (d *Links) CountThroughPlugin(transport string) (resumable, others int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for x, state := range d.links.Pairs.All() {
		if state != dynamic.Linked {
			continue
		}
		r := d.past.of(x)
		if !PassesPlugin(r.plane) {
			continue
		}
		switch {
		case r.transport != transport || d.Procs.OfRank(x.Local).State() == ending.Finished:
		case d.links.Resumable.Get(x) != nil:
			resumable++
		default:
			others++
		}
	}
	return resumable, others
}
