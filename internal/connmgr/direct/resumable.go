package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Resumes returns how often a pair's link was resumed.
func (d *Links) Resumes(x Pair) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.links.Resumable.Get(x); s != nil {
		return s.Resumes
	}
	return 0
}

// ResumableID returns the session of a pair's resumable link, zero if it has none, and whether this
// node has dialled it.
func (d *Links) ResumableID(x Pair) (id dynamic.ResumableID, dialled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.links.Resumable.Get(x); s != nil {
		return s.ID, s.Dialled
	}
	return id, false
}

// Reopen makes a further connection for a resumable link whose proc has lost the last one, or
// forgets the link if the proc has given it up.
func (d *Links) Reopen(p *procs.Proc, m wireup.Message) {
	x := Pair{p.Rank(), m.Peer}
	if d.Tasks.Closed() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	what := d.links.Resumable.Repair(x, m.Resumable.Session, m.Resumable.Epoch, m.Resumable.Over)
	switch {
	case what == dynamic.NoSuchLink:
		d.Log.Warn("a proc wants to resume a link that it does not have", "rank", x.Local, "peer", m.Peer)
	case what == dynamic.NoRepair && m.Resumable.Over:
		d.Log.Warn("a direct link is not resumed any more", "rank", x.Local, "peer", x.Peer, "reason", m.Reason)
	default:
		repair(d, p, x, d.links.Resumable.Get(x), what, m.Resumable.Epoch, m.Reason)
	}
}

// repair begins what is to be done about a lost connection. The caller holds mu.
func repair(d *Links, p *procs.Proc, x Pair, s *dynamic.ResumableLink, what dynamic.Repair, epoch uint64, reason string) {
	switch what {
	case dynamic.TellPeer:
		d.Tasks.Go(func() { d.complain(p, x, s, epoch) })
	case dynamic.Redial:
		moves := isMoving(d, x)
		if !moves {
			d.Log.Warn("a direct link is lost and dialled again", "from", x.Local, "to", x.Peer, "reason", reason)
		}
		d.Tasks.Go(func() { d.resume(p, x, s, moves) })
	case dynamic.NoRepair, dynamic.NoSuchLink:
	}
}

func further(x Pair, s *dynamic.ResumableLink) wireup.Message {
	return wireup.Message{Kind: wireup.KindLink, Peer: x.Peer, Resumable: &wireup.Resumable{Session: s.ID[:], Again: true}}
}

// complain tells the other end's node, which dials, that the link is lost: over there nothing may
// have shown that.
func (d *Links) complain(p *procs.Proc, x Pair, s *dynamic.ResumableLink, epoch uint64) {
	hello := dynamic.Hello{Src: x.Local, Dst: x.Peer, ResumableID: s.ID, Lost: true, Epoch: epoch}
	var tell, over bool
	l, _, why := d.dialAgain(p, x, s, hello, func(made bool, v dynamic.Verdict) { tell, over = s.Repaired(dynamic.TellPeer, made, v) })
	if l != nil {
		_ = l.Close()
		d.Log.Debug("a direct link is lost; told its other end", "rank", x.Local, "peer", x.Peer)
		return
	}
	if tell && d.Tasks.Err() == nil {
		m := further(x, s)
		m.Reason, m.Resumable.Over = why, over
		_ = p.Send(m) // it may be gone
	}
}

// resume dials until there is a connection, or none can be had. With moves, a drain moves the link,
// which is no fault.
func (d *Links) resume(p *procs.Proc, x Pair, s *dynamic.ResumableLink, moves bool) {
	began := time.Now()
	var tell, over bool
	l, by, why := d.dialAgain(p, x, s, dynamic.Hello{Src: x.Local, Dst: x.Peer, ResumableID: s.ID, Resumes: true}, func(made bool, v dynamic.Verdict) {
		tell, over = s.Repaired(dynamic.Redial, made, v)
	})
	switch {
	case l != nil:
		d.handAgain(p, x, s, l, by)
		what := "a direct link is resumed"
		if moves {
			what = "a direct link has left a plugin that is drained"
		}
		d.Log.Info(what, "from", x.Local, "to", x.Peer, "transport", by, "after", time.Since(began).Round(time.Millisecond))
	case tell && d.Tasks.Err() == nil:
		m := further(x, s)
		m.Reason, m.Resumable.Over = why, over
		if !m.Resumable.Over {
			d.Log.Warn("a direct link cannot be resumed", "from", x.Local, "to", x.Peer, "reason", why)
		}
		_ = p.Send(m) // it may be gone
	}
}

// dialAgain dials all candidates again and again, until the limit for that or until the peer's node
// says that there is nothing to resume. ended gets the outcome and that node's verdict, under the
// lock. Without a link, why says the reason.
func (d *Links) dialAgain(p *procs.Proc, x Pair, s *dynamic.ResumableLink, hello dynamic.Hello, ended func(made bool, v dynamic.Verdict)) (l link.Link, by, why string) {
	limit := routes.CurrentResumeLimit(d.Routes)
	ctx, cancel := context.WithTimeout(d.Tasks, limit)
	defer cancel()
	d.mu.Lock()
	d.dialling[s] = cancel
	d.mu.Unlock()
	candidates := routes.ResumeCandidates(d.Routes, x.Local, x.Peer, d.Procs.OfRank(x.Local).Address())
	dialing := dial.Dialing{
		DialPlan: dynamic.ResumePlan(len(candidates), limit), Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, _ dynamic.DialStep) (link.Link, error) {
			return d.Dial(ctx, &hello, w)
		},
	}
	dialing.RoundFailed = func() {
		d.Log.Debug("cannot resume yet", "from", x.Local, "to", x.Peer, "reasons", dialing.Reasons())
	}
	l, w, last := dialing.Run(ctx)
	d.mu.Lock()
	ended(l != nil, last.Verdict)
	delete(d.dialling, s)
	if d.links.Resumable.Get(x) == s { // else nobody wants it any more
		next, epoch := s.Next()
		repair(d, p, x, s, next, epoch, "it was lost again")
	}
	d.mu.Unlock()
	switch {
	case l != nil:
		d.FallBacks.Warn("direct link", d.Routes.World.Procs.At(x.Peer).Client, w, &dialing)
		by = w.Transport.Name
	case last.Verdict != dynamic.Accepted:
		why = fmt.Sprintf("the node of rank %d says: %v", x.Peer, last.Verdict)
	default:
		why = overdue(limit, dialing.Rounds(), dialing.Errors())
	}
	return l, by, why
}

// overdue says what has ended the dialling of a lost link: the limit, or the pause of a plugin that
// died too often, which was longer.
func overdue(limit time.Duration, rounds int, last error) string {
	if errors.Is(last, host.ErrFailed) {
		return fmt.Sprintf("its plugin died too often, and was not started again before limits { resume } was over, %v: dialled %d times, at last: %v", limit, rounds, last)
	}
	return fmt.Sprintf("limits { resume } is over: dialled %d times within %v, at last: %v", rounds, limit, last)
}

func (d *Links) handAgain(p *procs.Proc, x Pair, s *dynamic.ResumableLink, l link.Link, transport string) {
	d.mu.Lock()
	s.Resumes++
	d.mu.Unlock()
	m := further(x, s)
	from := dial.OriginOf(l)
	m.Transport, m.Reason = transport, from.Reason
	if err := p.PassLink(l, &m); err != nil {
		d.Log.Debug("a further connection is lost", "proc", p.ID(), "peer", x.Peer, "error", err)
		return
	}
	d.past.given(x, &m, from.ID, s.Dialled)
}

// acceptAgain takes a further connection that a peer's node has made, or its word that the link is
// lost there, so that this node dials.
func (d *Links) acceptAgain(ctx context.Context, a *accept.Arrival) error {
	l, h, t := a.Link, a.Hello, a.At.Transport
	x := Pair{h.Dst, h.Src}
	p, s, verdict := d.CheckResume(h, t)
	var tell bool
	if verdict == dynamic.Accepted && h.Lost {
		d.locked(func(l *dynamic.DirectLinks[Pair]) { tell = l.LostAtPeer(time.Now(), s, h) })
	}
	if tell { // before the answer
		m := further(x, s)
		m.Resumable.Lost, m.Resumable.Epoch = true, h.Epoch
		if p.Send(m) != nil {
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
	if cancel := d.dialling[s]; cancel != nil {
		cancel() // the peer's node need not be informed any more
	}
	d.mu.Unlock()
	d.handAgain(p, x, s, l, t.Name)
	d.Log.Debug("a direct link is resumed by its other end", "rank", x.Local, "peer", x.Peer, "transport", t.Name)
	return nil
}

// CheckResume decides about a further connection that a peer's node has made, or about its message
// that the link is lost there.
func (d *Links) CheckResume(h dynamic.Hello, t *routes.Transport) (p *procs.Proc, s *dynamic.ResumableLink, v dynamic.Verdict) {
	x := Pair{h.Dst, h.Src}
	p, to := receiver(d, h)
	if to.Known {
		to.Allowed = routes.AllowsResume(d.Routes, x.Peer, t)
		to.Leaves = d.Routes.Drained.Has(t.Name) && len(d.Candidates(x)) > 0
	}
	d.locked(func(l *dynamic.DirectLinks[Pair]) {
		s, v = l.ArriveAgain(time.Now(), x, h, to, routes.CurrentResumeLimit(d.Routes))
	})
	return p, s, v
}
