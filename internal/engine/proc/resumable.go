package proc

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/internal/zstd"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	// lendResumable is the least number of bytes that are lent to a link that keeps a copy of what
	// it does not borrow; lendBlocking is the same where the program waits until it has the memory
	// back: copying takes less time then than the peer's acknowledgement.
	lendResumable = 16 << 10
	lendBlocking  = 128 << 10
	// patience is how many steps without progress a blocking call makes before it has the links
	// copy what they have borrowed, keepChunk bytes at a time: until then the peer may still read
	// and acknowledge it.
	patience  = 32
	keepChunk = 128 << 10
)

// addResumable makes the endpoint of a link that resumes. away is that of Endpoint.
func (es *endpoints) addResumable(d *LinkMessage, peer message.Peer, away *wireup.Message) (*Endpoint, error) {
	t := d.Msg.Resumable
	if len(t.Session) != len(resume.ResumableID{}) || t.Window < 0 || t.Window > resume.MaxWindow {
		return nil, fmt.Errorf("%w: a resumable link with a session of %d bytes and a window of %d", ErrNode, len(t.Session), t.Window)
	}
	q := &Endpoint{p: es.p, Peer: peer, terms: t, away: away}
	r := es.p.Driver.NewResumable(&q.Endpoint, resume.ResumableID(t.Session), t.Window, drive.ResumeRules{Dialler: t.Dialler, ReportsLoss: true, Limit: t.Limit}, q)
	l, err := q.packed(r, d.Msg.Compress)
	if err != nil {
		return nil, err
	}
	if away == nil {
		q.Link = es.p.Trace.Traced(l, fmt.Sprintf("%s to %d", d.Msg.Transport, peer), peer)
	} else {
		q.Link = es.p.Trace.Traced(l, fmt.Sprintf("%s to %s", d.Msg.Transport, q.who()), message.NoPeer)
	}
	if w, ok := es.p.Machine.(machine.Watcher); ok {
		q.Link = w.Watch(q.Link, t.Session)
	}
	if q.Link == link.Link(r) {
		q.frames = r.Link
	}
	if err := es.add(q); err != nil {
		return nil, err
	}
	es.p.Eng.RaiseOutputLimit(q.ID, t.Window)
	es.resumables = append(es.resumables, q)
	r.Begin(d.L)
	return q, nil
}

func (q *Endpoint) packed(l link.Link, c *wireup.Compress) (link.Link, error) {
	if c == nil {
		return l, nil
	}
	if c.Algorithm != wireup.Zstd {
		return nil, fmt.Errorf("%w: a link that is compressed by %q", ErrNode, c.Algorithm)
	}
	codec, err := zstd.New(c.Level)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNode, err)
	}
	return q.Compress(l, compress.Config{Codec: codec, Min: c.Min}), nil
}

func (q *Endpoint) setLent(lent bool) {
	p := q.p
	if q.lent == lent {
		return
	}
	q.lent = lent
	if lent {
		p.Endpoints.lent++
	} else {
		p.Endpoints.lent--
	}
}

// keepLent has resumable links copy some of what they have borrowed, so that the program gets its
// memory back; with all, also bytes that were not written yet. It reports whether any did.
func (es *endpoints) keepLent(all bool) (progress bool) {
	for _, q := range es.resumables {
		if !q.lent || es.List[q.ID] != q || !es.p.Eng.HasOutput(q.ID) || !all && q.Resumable.HasUnsent() {
			continue
		}
		out := es.p.Eng.Output(q.ID)
		es.front = link.Front(es.front, out, keepChunk)
		n, err := q.Link.Send(es.front)
		clear(es.front)
		if n > 0 {
			progress = true
			es.p.Eng.Sent(q.ID, n)
			q.setLent(q.Resumable.Lending())
		}
		if err != nil {
			q.Drop(err)
			progress = true
		}
	}
	return progress
}

// again handles a further connection of a resumable link, or the message that there is none.
func (es *endpoints) again(d *LinkMessage) {
	t := d.Msg.Resumable
	q := es.resumable(&d.Msg)
	switch {
	case q == nil:
		d.close()
		if d.L != nil && d.Msg.Meeting == nil && es.p.Node.Control != nil { // otherwise the peer dials again at once
			over := wireup.Resumable{Session: t.Session, Again: true, Over: true}
			_ = es.p.Node.Control.Send(wireup.Message{Kind: wireup.KindOpen, Peer: d.Msg.Peer, Resumable: &over, Reason: "the link has ended here"})
		}
	case d.L != nil:
		q.Resumable.SetLink(d.L)
	case t.Lost:
		q.Resumable.PeerLost(t.Epoch)
	case t.Over && q.Resumable.PeerFinished():
	default:
		q.Resumable.GiveUp(d.Msg.Reason)
	}
	es.p.Driver.Mend()
}

// resumable returns the endpoint that a message about a further connection is for. Another world
// knows the sessions of links that it has seen, so the peer must be the same, too.
func (es *endpoints) resumable(m *wireup.Message) *Endpoint {
	i := slices.IndexFunc(es.resumables, func(q *Endpoint) bool { return q.isOf(m) })
	if i < 0 {
		return nil
	}
	return es.resumables[i]
}

func (q *Endpoint) isOf(m *wireup.Message) bool {
	switch {
	case string(q.terms.Session) != string(m.Resumable.Session):
		return false
	case q.away == nil:
		return m.Meeting == nil && rank(q.Peer) == m.Peer
	}
	return m.Meeting != nil && q.away.Peer == m.Peer && string(q.away.Meeting.World) == string(m.Meeting.World)
}

// Ask makes the node make a further connection of the link, or makes the peer's node make one.
func (q *Endpoint) Ask(why error, epoch uint64) bool {
	return q.p.Node.Control.Send(q.repair(why, wireup.Resumable{Epoch: epoch})) == nil
}

// repair returns a message to the node about the lost connection of the link.
func (q *Endpoint) repair(why error, r wireup.Resumable) wireup.Message {
	m := wireup.Message{Kind: wireup.KindOpen, Peer: rank(q.Peer)}
	if q.away != nil {
		m = *q.away
	}
	r.Session, r.Again = q.terms.Session, true
	m.Resumable = &r
	if why != nil {
		m.Reason = why.Error()
	}
	return m
}

// Resumed wakes goroutines that wait for room.
func (q *Endpoint) Resumed() { q.p.WakeAll() }

// Ended removes the link. If it has failed, the node refuses further connections, so that the peer
// learns of it instead of making one after the other.
func (q *Endpoint) Ended(why error) {
	p := q.p
	if i := slices.Index(p.Endpoints.resumables, q); i >= 0 {
		p.Endpoints.resumables = slices.Delete(slices.Clone(p.Endpoints.resumables), i, i+1) // others may be ranging over the old slice
	}
	if why != nil {
		if p.Node.Control != nil {
			_ = p.Node.Control.Send(q.repair(why, wireup.Resumable{Over: true})) // without a node there is no receiver
		}
		if errors.Is(why, resume.ErrNotResumed) {
			why = fmt.Errorf("%w: %w", ErrPeerGone, why)
		}
		q.Drop(why)
	} else {
		q.Drop(io.EOF) // unless the user has done that before
	}
	p.WakeAll()
}

// TimerFired calls Driver.OnTimer in the timer's goroutine. If the process is locked, the goroutine
// that makes progress does that work.
func (p *Process) TimerFired() {
	if !p.Mu.TryLock() {
		p.Driver.RetryTimer()
		return
	}
	defer p.Unlock()
	if LifeState(p.State.Load()) != Ended {
		p.Driver.OnTimer(p.Driving)
	}
}
