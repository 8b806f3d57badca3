package direct

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/node/accept"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

func newSession() (s dynamic.Session) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// enrol keeps a new resumable link, which is none without an ID.
func (d *Links) enrol(x Pair, id dynamic.Session, dialled bool) *dynamic.SessionState {
	if id == (dynamic.Session{}) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions.Enrol(x, id, dialled)
}

// dismiss takes enrol back: the proc was not given the link. It returns nil.
func (d *Links) dismiss(x Pair, s *dynamic.SessionState) *dynamic.SessionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s != nil {
		d.sessions.Dismiss(x, s)
	}
	return nil
}

// Resumes is how often a pair's link was resumed.
func (d *Links) Resumes(x Pair) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions.Get(x); s != nil {
		return s.Resumes
	}
	return 0
}

// Session is that of a pair's resumable link, and whether its proc's end dialled it.
func (d *Links) Session(x Pair) (id dynamic.Session, dialled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions.Get(x); s != nil {
		return s.ID, s.Dialled
	}
	return id, false
}

// Reopen is for a proc that asks for a further connection of its link to a peer.
func (d *Links) Reopen(p *procs.Proc, m wireup.Message) {
	x := Pair{p.Rank(), m.Peer}
	if d.Tasks.Closed() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s := d.sessions.Get(x); d.sessions.Want(x, m.Resumable.Session, m.Resumable.Over) {
	case dynamic.NoSuchLink:
		d.Log.Warn("a proc asks for a link again that it does not have", "rank", x.Local, "peer", m.Peer)
	case dynamic.Nothing:
		if m.Resumable.Over {
			d.Log.Warn("a direct link is given up", "rank", x.Local, "peer", x.Peer, "reason", m.Reason)
		}
	case dynamic.HaveTold:
		d.Tasks.Go(func() { d.complain(p, x, s, m.Resumable.Epoch) })
	case dynamic.Redial:
		d.Log.Warn("a direct link is lost and dialled again", "from", x.Local, "to", x.Peer, "reason", m.Reason)
		d.Tasks.Go(func() { d.resume(p, x, s) })
	}
}

// complain has the other end told that its link is lost here, for it may not have
// noticed: a connection can die without a word.
func (d *Links) complain(p *procs.Proc, x Pair, s *dynamic.SessionState, epoch uint64) {
	ctx, cancel := context.WithTimeout(d.Tasks, routes.Resume(d.Routes.Job))
	defer cancel()
	d.mu.Lock()
	d.hush[s] = cancel
	d.mu.Unlock()
	hello := dynamic.Hello{Src: x.Local, Dst: x.Peer, Session: s.ID, Lost: true, Epoch: epoch}
	l, _, why := d.dialAgain(ctx, x, hello)
	d.mu.Lock()
	s.Busy = false
	delete(d.hush, s)
	d.mu.Unlock()
	if l != nil {
		_ = l.Close()
		d.Log.Debug("a direct link is lost, and its other end was told", "rank", x.Local, "peer", x.Peer)
		return
	}
	if d.Tasks.Err() == nil && why.final {
		m := wireup.Message{Kind: wireup.KindLink, Peer: x.Peer, Reason: why.text}
		m.Resumable = &wireup.Resumable{Session: s.ID[:], Again: true, Over: why.over}
		_ = p.Tell(m) // it may be gone
	}
}

// resume dials until there is a connection, or none can be had.
func (d *Links) resume(p *procs.Proc, x Pair, s *dynamic.SessionState) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(d.Tasks, routes.Resume(d.Routes.Job))
	defer cancel()
	l, by, why := d.dialAgain(ctx, x, dynamic.Hello{Src: x.Local, Dst: x.Peer, Session: s.ID, Again: true})
	m := wireup.Message{Kind: wireup.KindLink, Peer: x.Peer, Transport: by, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true}}
	d.mu.Lock()
	s.Busy = false
	d.mu.Unlock()
	switch {
	case l != nil:
		d.handAgain(p, x, s, l, m)
		d.Log.Info("a direct link is resumed", "from", x.Local, "to", x.Peer, "transport", by, "after", time.Since(began).Round(time.Millisecond))
	case d.Tasks.Err() == nil:
		m.Reason, m.Resumable.Over = why.text, why.over
		if !why.over {
			d.Log.Warn("a direct link cannot be resumed", "from", x.Local, "to", x.Peer, "reason", why.text)
		}
		_ = p.Tell(m) // it may be gone
	}
}

// futile is why it is of no use to dial again.
type futile struct {
	text  string
	final bool // the peer's node says so
	over  bool // the peer has finished in order
}

// dialAgain tries all ways again and again, until ctx ends or the peer's node says that there is
// nothing to resume.
func (d *Links) dialAgain(ctx context.Context, x Pair, hello dynamic.Hello) (l link.Link, by string, why futile) {
	ways := d.Ways(x)
	s := dial.Search{
		Search: dynamic.ResumeSearch(len(ways), routes.Resume(d.Routes.Job)), Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
			return d.Dial(ctx, &hello, w)
		},
	}
	s.Rests = func() {
		d.Log.Debug("cannot resume yet", "from", x.Local, "to", x.Peer, "reasons", s.Reasons())
	}
	l, w, last := s.Run(ctx)
	switch {
	case l != nil:
		d.FallBacks.Warn("direct link", d.Routes.World.Procs.At(x.Peer).Client, w, &s)
		return l, w.T.Name, why
	case last.Verdict != dynamic.Accepted:
		return nil, "", futile{text: fmt.Sprintf("the node of rank %d says: %v", x.Peer, last.Verdict), final: true, over: last.Verdict == dynamic.Leaving}
	}
	return nil, "", futile{text: fmt.Sprintf("dialled %d times within %v, at last: %s", s.Rounds(), routes.Resume(d.Routes.Job), s.Reasons())}
}

// handAgain gives a further connection to its proc.
func (d *Links) handAgain(p *procs.Proc, x Pair, s *dynamic.SessionState, l link.Link, m wireup.Message) {
	d.mu.Lock()
	s.Resumes++
	d.mu.Unlock()
	reason := dial.OriginOf(l).Reason
	if err := p.Hand(l, &m); err != nil {
		d.Log.Debug("a further connection is lost", "proc", p.Who(), "peer", x.Peer, "error", err)
		return
	}
	d.past.given(x, &m, reason, s.Dialled)
}

// acceptAgain takes a further connection that a peer's node has made, or its
// complaint that we should make one.
func (d *Links) acceptAgain(ctx context.Context, a *accept.Arrival) error {
	l, h, t := a.Link, a.Hello, a.At.Transport
	x := Pair{h.Dst, h.Src}
	p, s, verdict := d.JudgeAgain(h, t)
	if verdict == dynamic.Accepted && h.Lost && !s.Making {
		// Before the answer: who has it tells no more.
		m := wireup.Message{Kind: wireup.KindLink, Peer: x.Peer, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true, Lost: true, Epoch: h.Epoch}}
		if p.Tell(m) != nil {
			verdict = dynamic.UnknownLink // the proc is gone
		}
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	if h.Lost {
		return l.Close()
	}
	d.mu.Lock()
	if quiet := d.hush[s]; quiet != nil {
		quiet()
	}
	d.mu.Unlock()
	m := wireup.Message{Kind: wireup.KindLink, Peer: x.Peer, Transport: t.Name, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true}}
	d.handAgain(p, x, s, l, m)
	d.Log.Debug("a direct link is resumed by its other end", "rank", x.Local, "peer", x.Peer, "transport", t.Name)
	return nil
}

// JudgeAgain decides about a further connection that a peer's node has made, or its complaint.
func (d *Links) JudgeAgain(h dynamic.Hello, t *routes.Transport) (*procs.Proc, *dynamic.SessionState, dynamic.Verdict) {
	x := Pair{h.Dst, h.Src}
	p := d.Procs.Of(x.Local)
	switch {
	case p == nil || int(x.Peer) >= d.Routes.World.Procs.Len():
		return nil, nil, dynamic.UnknownRank
	case p.Phase() != ending.Finished && !d.Routes.Allows(x.Peer, t):
		return nil, nil, dynamic.NotAllowed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.sessions.Judge(x, h, p.Phase() == ending.Finished)
	if v == dynamic.Accepted && p.Over() {
		v = dynamic.UnknownLink
	}
	return p, d.sessions.Get(x), v
}
