package proc

import (
	"time"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/calls"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/poll"
)

// StreakMax is the maximum number of receives in a row that poll only the link that they receive
// from.
const StreakMax = fastpath.ReceivesPerLook

// RecvElements is a blocking receive. If measured is set it is MPI_Recv, whose time is measured if
// measuring is on: as far as possible before the message comes.
func (c *Comm) RecvElements(b []byte, k datatype.Kind, src, tag int, measured bool) (Status, error) {
	begun, r := int64(0), calls.MeasuredRecv{}
	if measured {
		begun = calls.BeginUntimed()
	}
	env, from, none, err := c.RecvEnvelope(src, tag)
	if none || err != nil {
		if begun != 0 {
			calls.End(calls.Recv, begun, src, tag, int64(len(b)), ContextOf(c))
		}
		if err != nil {
			return Status{}, err
		}
		return ProcNullStatus, nil
	}
	p := c.p
	p.Lock()
	defer p.Unlock()
	if begun != 0 {
		run := p.Account.run
		if run != nil && calls.IsUntimed(begun) && !looksAtAllNext(p) && run.Count(calls.Receives, src, tag, len(b), ContextOf(c)) {
			r.Counted()
		} else {
			r.Begin(run != nil, begun, src, tag, int64(len(b)), ContextOf(c))
		}
	}
	var st Status
	soon := false
	if p.Data.foreign(from, k) {
		r.Waits()
		in := p.Data.payload(from, b, k)
		st, err = p.Recv(env, from, &in)
	} else if st, soon = p.recvEager(&env, from, b, &r); !soon {
		r.Waits()
		q := p.Endpoints.IrecvBytes(env, from, b)
		p.Wait(q)
		st, err = p.FinishRecv(q, nil)
	}
	if !r.TryEnd() {
		r.End(src, tag, int64(len(b)), ContextOf(c))
	}
	return st, err
}

// receives is the number of receives that were tried without a request.
func receives(p *Process) *uint32 {
	if p.FastPath != nil {
		return &p.FastPath.Streak
	}
	return &p.streak
}

// looksAtAllNext reports whether the next receive looks at all links before it waits for its
// message. It is one that waits, so its time is measured from the start.
func looksAtAllNext(p *Process) bool { return (*receives(p)+1)%StreakMax == 0 }

// recvEager receives without a request, if the message comes soon, is a fast-box message from a
// proc of this host, and can match nothing else. r is told if it does not come very soon.
func (p *Process) recvEager(env *message.Envelope, from message.Peer, b []byte, r *calls.MeasuredRecv) (st Status, ok bool) {
	streak := receives(p)
	if *streak++; *streak%StreakMax == 0 {
		p.Driver.PollAll() // the next step looks at all links
		p.Eng.RaiseAllowances()
		return st, false
	}
	if !p.calm() {
		return st, false
	}
	l, ok := p.Eng.EagerLink(from)
	if !ok {
		return st, false
	}
	q := p.Endpoints.List[l]
	if q == nil { // the link has broken, and the node has not reported why yet
		return st, false
	}
	something := false
	var begun time.Time // when the wait began, if it is counted
	polls := p.spin.PollsBeforeYield()
	for i := polls; ; i-- {
		m, ok := p.Eng.RecvEager(l, env, b)
		over := ok || i <= 0 || something || p.Driver.Wanted.Load() != 0
		if over && !begun.IsZero() {
			p.Account.waited(ForRecv, from, begun)
		}
		if ok {
			return Status{Source: int(m.Source), Tag: int(m.Tag), bytes: m.Len}, true
		}
		if over {
			return st, false
		}
		if polls-i == calls.MaxLooks {
			r.Waits()
		}
		if p.Account.on() && begun.IsZero() {
			begun = time.Now()
		}
		something = q.ahead() // or the fast-box message has come just now
	}
}

// receiveSoon is AwaitProgress for a goroutine that waits for a receive from a proc of this host,
// if something comes soon from there, and reports whether it did. It looks at nothing else, so only
// a limited number of receives in a row may use it.
func receiveSoon(p *Process, r *message.Request) bool {
	receives, from := r.Side()
	if !receives || from == message.NoPeer || !p.calm() || p.Driver.PollsAll() {
		return false
	}
	if p.streak++; p.streak%StreakMax == 0 {
		p.Driver.PollAll()
		return false
	}
	id, ok := p.Eng.Route(from)
	if !ok {
		return false
	}
	q := p.Endpoints.List[id]
	if q == nil || !q.fastBoxes || q.native || q.InPlace == nil {
		return false
	}
	for i := p.spin.PollsBeforeYield(); i > 0 && p.Driver.Wanted.Load() == 0; i-- {
		if !q.InPlace.Ready() {
			poll.Pause()
			continue
		}
		p.Driving = true
		progress := q.Receive()
		if progress {
			p.output()
			p.Background.carryOn()
		}
		p.Driving = false
		return progress
	}
	return false
}

// calm reports whether nothing but the calling goroutine needs progress.
func (p *Process) calm() bool { return composed(p) && !p.Background.busy() }

// composed is calm without the check for background operations.
func composed(p *Process) bool {
	return !p.Driving && p.Waiters == 0 && !p.Endpoints.deferred && !p.Node.news.Load() && p.Failure == nil
}

func (c *Comm) IrecvElements(fn RequestFunc, b []byte, k datatype.Kind, src, tag int) (Request, error) {
	env, from, none, err := c.RecvEnvelope(src, tag)
	switch {
	case err != nil:
		return Request{}, err
	case none:
		return NoPartner(c, fn), nil
	}
	p := c.p
	p.Lock()
	defer p.Unlock()
	if !p.Data.foreign(from, k) {
		return c.Active(fn, p.Endpoints.IrecvBytes(env, from, b), nil), nil
	}
	in := p.Data.payload(from, b, k)
	return c.Active(fn, p.Irecv(env, from, &in), in.Items), nil
}

// Recv receives a message and blocks until it has come.
func (p *Process) Recv(env message.Envelope, from message.Peer, in *Payload) (Status, error) {
	r := p.Irecv(env, from, in)
	p.Wait(r)
	return p.FinishRecv(r, in.Items)
}

// Irecv posts a receive.
func (p *Process) Irecv(env message.Envelope, from message.Peer, in *Payload) *message.Request {
	if in.Items == nil {
		return p.Endpoints.IrecvBytes(env, from, in.Mem)
	}
	r := p.Eng.RecvInto(env, from, in.Items)
	p.Endpoints.ReceivePosted(r)
	return r
}

// FinishRecv ends a receive that is done, and releases its request and stream.
func (p *Process) FinishRecv(r *message.Request, items *Stream) (st Status, err error) {
	if !r.Done() {
		return st, p.End(r, items)
	}
	if m := r.Result(); items == nil && !m.Cancelled { // the quickest way
		st.Source, st.Tag, st.bytes = int(m.Source), int(m.Tag), m.Len
		err = r.Err()
	} else {
		st = p.RecvStatus(r, items)
		if err = items.verdict(r.Err()); err == nil {
			err = p.Data.compared(r, items)
		}
		p.Data.Retire(items)
	}
	p.Eng.Release(r)
	return st, err
}

// RecvStatus returns the status of a receive that is done.
func (p *Process) RecvStatus(r *message.Request, items *Stream) (st Status) {
	m := r.Result()
	if m.Cancelled {
		return cancelledStatus
	}
	st.Source, st.Tag, st.bytes = int(m.Source), int(m.Tag), m.Len
	if items != nil && m.Len > 0 {
		st.bytes, st.rep = items.receivedSize(m.Len)
	}
	return st
}
