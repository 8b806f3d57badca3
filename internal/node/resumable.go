package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/wireup"
)

func newSession() (s dynamic.Session) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// terms are what a proc is told of a new resumable link.
func (n *node) terms(s *dynamic.SessionState) *wireup.Resumable {
	return &wireup.Resumable{Session: s.ID[:], Dialler: s.Dialled, Window: resumable.Window, Limit: routes.Resume(n.opt.Job)}
}

// enrol notes a new resumable link, or that a link is none.
func (d *directLinks) enrol(x pair, id dynamic.Session, dialled bool) *dynamic.SessionState {
	if id == (dynamic.Session{}) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions.Enrol(x, id, dialled)
}

// dismiss takes enrol back: the proc was not given the link. It returns nil.
func (d *directLinks) dismiss(x pair, s *dynamic.SessionState) *dynamic.SessionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s != nil {
		d.sessions.Dismiss(x, s)
	}
	return nil
}

// resumes is how often a pair's link was resumed.
func (d *directLinks) resumes(x pair) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions.Get(x); s != nil {
		return s.Resumes
	}
	return 0
}

// reopen is a proc's wish for a further connection of its link to a peer.
func (d *directLinks) reopen(p *procs.Proc, m wireup.Message) {
	x := pair{p.Rank(), m.Peer}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	switch s := d.sessions.Get(x); d.sessions.Want(x, m.Resumable.Session, m.Resumable.Over) {
	case dynamic.NoSuchLink:
		d.n.log.Warn("a proc asks for a link again that it does not have", "rank", x.local, "peer", m.Peer)
	case dynamic.Nothing:
		if m.Resumable.Over {
			d.n.log.Warn("a direct link is given up", "rank", x.local, "peer", x.peer, "reason", m.Reason)
		}
	case dynamic.HaveTold:
		d.wg.Go(func() { d.complain(p, x, s, m.Resumable.Epoch) })
	case dynamic.Redial:
		d.n.log.Warn("a direct link is lost and dialled again", "from", x.local, "to", x.peer, "reason", m.Reason)
		d.wg.Go(func() { d.resume(p, x, s) })
	}
}

// complain has the other end told that its link is lost here, for it may not have
// noticed: a connection can die without a word.
func (d *directLinks) complain(p *procs.Proc, x pair, s *dynamic.SessionState, epoch uint64) {
	ctx, cancel := context.WithTimeout(d.ctx, routes.Resume(d.n.opt.Job))
	defer cancel()
	d.mu.Lock()
	d.hush[s] = cancel
	d.mu.Unlock()
	hello := dynamic.Hello{Src: x.local, Dst: x.peer, Session: s.ID, Lost: true, Epoch: epoch}
	l, _, why := d.dialAgain(ctx, x, hello)
	d.mu.Lock()
	s.Busy = false
	delete(d.hush, s)
	d.mu.Unlock()
	if l != nil {
		_ = l.Close()
		d.n.log.Debug("a direct link is lost, and its other end was told", "rank", x.local, "peer", x.peer)
		return
	}
	if d.ctx.Err() == nil && why.final {
		m := wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: why.text}
		m.Resumable = &wireup.Resumable{Session: s.ID[:], Again: true, Over: why.over}
		_ = p.Tell(m) // it may be gone
	}
}

// resume dials until there is a connection, or none can be had.
func (d *directLinks) resume(p *procs.Proc, x pair, s *dynamic.SessionState) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(d.ctx, routes.Resume(d.n.opt.Job))
	defer cancel()
	l, by, why := d.dialAgain(ctx, x, dynamic.Hello{Src: x.local, Dst: x.peer, Session: s.ID, Again: true})
	m := wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Transport: by, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true}}
	d.mu.Lock()
	s.Busy = false
	d.mu.Unlock()
	switch {
	case l != nil:
		d.handAgain(p, x, s, l, m)
		d.n.log.Info("a direct link is resumed", "from", x.local, "to", x.peer, "transport", by, "after", time.Since(began).Round(time.Millisecond))
	case d.ctx.Err() == nil:
		m.Reason, m.Resumable.Over = why.text, why.over
		if !why.over {
			d.n.log.Warn("a direct link cannot be resumed", "from", x.local, "to", x.peer, "reason", why.text)
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
func (d *directLinks) dialAgain(ctx context.Context, x pair, hello dynamic.Hello) (l link.Link, by string, why futile) {
	ways := d.n.ways(x)
	s := dial.Search{
		Search: dynamic.ResumeSearch(len(ways), routes.Resume(d.n.opt.Job)), Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
			return d.dialFor(ctx, &hello, w)
		},
	}
	s.Rests = func() {
		d.n.log.Debug("cannot resume yet", "from", x.local, "to", x.peer, "reasons", s.Reasons())
	}
	l, w, last := s.Run(ctx)
	switch {
	case l != nil:
		d.n.fallBacks.Warn("direct link", d.n.job.Procs[x.peer].Client, w, &s)
		return l, w.T.Name, why
	case last.Verdict != dynamic.Accepted:
		return nil, "", futile{text: fmt.Sprintf("the node of rank %d says: %v", x.peer, last.Verdict), final: true, over: last.Verdict == dynamic.Leaving}
	}
	return nil, "", futile{text: fmt.Sprintf("dialled %d times within %v, at last: %s", s.Rounds(), routes.Resume(d.n.opt.Job), s.Reasons())}
}

// handAgain gives a further connection to its proc.
func (d *directLinks) handAgain(p *procs.Proc, x pair, s *dynamic.SessionState, l link.Link, m wireup.Message) {
	d.mu.Lock()
	s.Resumes++
	d.mu.Unlock()
	reason := dial.OriginOf(l).Reason
	fds, err := dial.Pack(l, &m)
	if err == nil {
		err = p.Tell(m, fds...)
		wireup.CloseAll(fds)
	}
	if err != nil {
		d.n.log.Debug("a further connection is lost", "proc", p.Who(), "peer", x.peer, "error", err)
		return
	}
	d.past.given(x, &m, reason, s.Dialled)
}

// acceptAgain takes a further connection that a peer's node has made, or its
// complaint that we should make one.
func (d *directLinks) acceptAgain(ctx context.Context, l link.Link, g *dynamic.Acceptor, h dynamic.Hello, t *routes.Transport) error {
	x := pair{h.Dst, h.Src}
	p, s, verdict := d.judgeAgain(x, h, t)
	if verdict == dynamic.Accepted && h.Lost && !s.Making {
		// Before the answer: who has it tells no more.
		m := wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true, Lost: true, Epoch: h.Epoch}}
		if p.Tell(m) != nil {
			verdict = dynamic.UnknownLink // the proc is gone
		}
	}
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
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
	m := wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Transport: t.Name, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true}}
	d.handAgain(p, x, s, l, m)
	d.n.log.Debug("a direct link is resumed by its other end", "rank", x.local, "peer", x.peer, "transport", t.Name)
	return nil
}

func (d *directLinks) judgeAgain(x pair, h dynamic.Hello, t *routes.Transport) (*procs.Proc, *dynamic.SessionState, dynamic.Verdict) {
	p := d.n.procs.Of(x.local)
	switch {
	case p == nil || int(x.peer) >= len(d.n.job.Procs):
		return nil, nil, dynamic.UnknownRank
	case p.Phase() != procs.Finished && !d.n.routes.Allows(x.peer, t):
		return nil, nil, dynamic.NotAllowed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.sessions.Judge(x, h, p.Phase() == procs.Finished)
	if v == dynamic.Accepted && p.Over() {
		v = dynamic.UnknownLink
	}
	return p, d.sessions.Get(x), v
}
