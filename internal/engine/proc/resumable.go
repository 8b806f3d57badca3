package proc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

const (
	// lendResumable is how many bytes are lent, at least, to a link that keeps a copy
	// of what it is not lent; lendBlocking where the program waits until they are its own
	// again: then the copy is made sooner than the peer has them.
	lendResumable = 16 << 10
	lendBlocking  = 128 << 10
	// patience is how many steps that bring nothing a blocking call makes before it
	// has the links copy what they are lent, keepChunk bytes at a time: the peer may
	// still be reading them, and say so soon.
	patience  = 32
	keepChunk = 128 << 10
)

// addResumable makes a port of the first link below one that resumes.
func (p *Process) addResumable(d *Delivery, peer message.Peer) (*Port, error) {
	t := d.Msg.Resumable
	if len(t.Session) != len(resume.Session{}) || t.Window < 0 || t.Window > resume.MaxWindow {
		return nil, fmt.Errorf("%w: a resumable link with a session of %d bytes and a window of %d", ErrNode, len(t.Session), t.Window)
	}
	q := &Port{p: p, Peer: peer, terms: t}
	r := p.Links.NewResumable(&q.Port, resume.Session(t.Session), t.Window, drive.Terms{Dialler: t.Dialler, Tells: true, Limit: t.Limit}, q)
	q.Link = p.Traced(r, fmt.Sprintf("%s to %d", d.Msg.Transport, peer), peer)
	if w, ok := p.Machine.(machine.Watcher); ok {
		q.Link = w.Watch(q.Link, t.Session)
	}
	if q.Link == link.Link(r) {
		q.frames = r.Link
	}
	if err := p.add(q); err != nil {
		return nil, err
	}
	p.Eng.Keeps(q.ID, t.Window)
	p.resumables = append(p.resumables, q)
	r.Begin(d.L)
	return q, nil
}

func (p *Process) setLent(q *Port, lent bool) {
	if q.lent == lent {
		return
	}
	q.lent = lent
	if lent {
		p.lent++
	} else {
		p.lent--
	}
}

// keepLent makes links that resume copy some of what they are lent, so that it is sent
// as far as the program is concerned: of bytes that were not written, too, if all is
// set. It tells whether any did.
func (p *Process) keepLent(all bool) (progress bool) {
	for _, q := range p.resumables {
		if !q.lent || p.Ports[q.ID] != q || !p.Eng.HasOutput(q.ID) || !all && q.Resumable.Behind() {
			continue
		}
		out := p.Eng.Output(q.ID)
		p.front = link.Front(p.front, out, keepChunk)
		n, err := q.Link.Send(p.front)
		clear(p.front)
		if n > 0 {
			progress = true
			p.Eng.Sent(q.ID, n)
			p.setLent(q, q.Resumable.Lending())
		}
		if err != nil {
			q.Drop(err)
			progress = true
		}
	}
	return progress
}

// again takes a further connection for a link that resumes, or the word that there is
// none.
func (p *Process) again(d *Delivery, peer message.Peer) {
	t := d.Msg.Resumable
	q := p.resumableTo(peer, t.Session)
	switch {
	case q == nil:
		d.close()
	case d.L != nil:
		q.Resumable.Take(d.L)
	case t.Lost:
		q.Resumable.PeerLost(t.Epoch)
	case t.Over && q.Resumable.PeerOver():
	default:
		q.Resumable.GiveUp(d.Msg.Reason)
	}
	p.Links.Mend()
}

func (p *Process) resumableTo(peer message.Peer, session []byte) *Port {
	i := slices.IndexFunc(p.resumables, func(q *Port) bool { return q.Peer == peer && string(q.terms.Session) == string(session) })
	if i < 0 {
		return nil
	}
	return p.resumables[i]
}

// Ask has the node make a further link below, or have the peer's make one.
func (q *Port) Ask(why error, epoch uint64) bool {
	m := wireup.Message{Kind: wireup.KindOpen, Peer: rank(q.Peer), Resumable: &wireup.Resumable{Session: q.terms.Session, Again: true, Epoch: epoch}}
	if why != nil {
		m.Reason = why.Error()
	}
	return q.p.Control.Send(m) == nil
}

// Resumed has those look who wait for room.
func (q *Port) Resumed() { q.p.Rouse() }

// Ended forgets the link. If it has failed, the node refuses further connections, so that the peer
// learns of it instead of making one after the other.
func (q *Port) Ended(why error) {
	p := q.p
	if i := slices.Index(p.resumables, q); i >= 0 {
		p.resumables = slices.Delete(slices.Clone(p.resumables), i, i+1) // somebody may be going through it
	}
	if why != nil {
		m := wireup.Message{Kind: wireup.KindOpen, Peer: rank(q.Peer), Resumable: &wireup.Resumable{Session: q.terms.Session, Again: true, Over: true}}
		m.Reason = why.Error()
		if p.Control != nil {
			_ = p.Control.Send(m) // it may be gone
		}
		if errors.Is(why, drive.ErrNotResumed) {
			why = fmt.Errorf("%w: %w", ErrPeerGone, why)
		}
		q.Drop(why)
	}
	p.Rouse()
}

// Tend looks after links that resume in the timer's goroutine. Where somebody makes
// progress, it is they who do.
func (p *Process) Tend() {
	if !p.Mu.TryLock() {
		p.Links.TendLater()
		return
	}
	defer p.Unlock()
	if Phase(p.State.Load()) != Ended {
		p.Links.Tend(p.Driving)
	}
}
