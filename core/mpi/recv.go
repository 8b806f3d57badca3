package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/poll"
)

// hasteMax is how many receives in a row need not look at anything but what they receive.
const hasteMax = 64

// Recv receives a message from rank src (or AnySource) with tag (or AnyTag) into
// buf and blocks until it is there. A message longer than buf fills buf and is
// ErrTruncate.
func Recv[T Type](c *Comm, buf []T, src, tag int) (Status, error) {
	st, err := c.recv(datatype.Bytes(buf), datatype.KindOf[T](), src, tag)
	return st, c.failed("Recv", err)
}

// Irecv begins a Recv. buf belongs to the library until the request is complete.
func Irecv[T Type](c *Comm, buf []T, src, tag int) (Request, error) {
	q, err := c.irecv(byIrecv, datatype.Bytes(buf), datatype.KindOf[T](), src, tag)
	return q, c.failed("Irecv", err)
}

func (c *Comm) recv(b []byte, k datatype.Kind, src, tag int) (Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return Status{}, err
	}
	if none {
		return procNullStatus, nil
	}
	p := c.p
	p.lock()
	defer p.unlock()
	if p.foreign(from, k) {
		in := p.cargo(from, b, k)
		return p.receiveNow(env, from, &in)
	}
	if st, ok := p.recvNow(&env, from, b); ok {
		return st, nil
	}
	r := p.eng.Recv(env, from, b)
	p.began(r)
	p.wait(r)
	return p.received(r, nil)
}

// recvNow receives a fast-box message that comes next, and soon, from a proc of this host, without
// a request.
func (p *process) recvNow(env *message.Envelope, from message.Peer, b []byte) (st Status, ok bool) {
	haste := &p.haste
	if p.express != nil {
		haste = &p.express.Haste
	}
	if *haste++; *haste%hasteMax == 0 {
		p.links.Everywhere() // it looks everywhere
		p.eng.Review()
		return st, false
	}
	if !p.calm() {
		return st, false
	}
	l, ok := p.eng.Hasty(from)
	if !ok {
		return st, false
	}
	q := p.ports[l]
	if q == nil { // its link broke, and the node has not said why yet
		return st, false
	}
	something := false
	for i := p.spin.Eager(); ; i-- {
		if m, ok := p.eng.RecvNow(l, env, b); ok {
			return Status{Source: int(m.Source), Tag: int(m.Tag), bytes: m.Len}, true
		}
		if i <= 0 || something || p.links.Wanted.Load() != 0 {
			return st, false
		}
		poll.Pause()
		something = q.InPlace.Ready() // or it is the fast-box message, which has come just now
	}
}

// calm tells whether nobody and nothing but the caller needs progress.
func (p *process) calm() bool {
	return !p.driving && p.waiters == 0 && len(p.background) == 0 && !p.deferred && !p.news.Load() && p.failure == nil
}

func (c *Comm) irecv(fn maker, b []byte, k datatype.Kind, src, tag int) (Request, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return Request{}, err
	}
	if none {
		return Request{c: c, standing: standing{state: procNull, fn: fn}}, nil
	}
	p := c.p
	p.lock()
	defer p.unlock()
	in := p.cargo(from, b, k)
	r := p.accept(env, from, &in)
	p.began(r)
	return c.active(fn, r, in.items), nil
}

// receiveNow receives a message and blocks until it is there.
func (p *process) receiveNow(env message.Envelope, from message.Peer, in *cargo) (Status, error) {
	r := p.accept(env, from, in)
	p.began(r)
	p.wait(r)
	return p.received(r, in.items)
}

// accept posts a receive.
func (p *process) accept(env message.Envelope, from message.Peer, in *cargo) *message.Request {
	if in.items != nil {
		return p.eng.RecvInto(env, from, in.items)
	}
	return p.eng.Recv(env, from, in.mem)
}

// received finishes a receive and gives its request and stream back.
func (p *process) received(r *message.Request, items *stream) (st Status, err error) {
	if !r.Done() {
		return st, p.end(r, items)
	}
	if m := r.Result(); items == nil && !m.Cancelled { // quickest
		st.Source, st.Tag, st.bytes = int(m.Source), int(m.Tag), m.Len
		err = r.Err()
	} else {
		st = p.arrived(r, items)
		if err = items.verdict(r.Err()); err == nil {
			err = p.compared(r, items)
		}
		p.retire(items)
	}
	p.eng.Release(r)
	return st, err
}

// arrived is the status of a receive that is done.
func (p *process) arrived(r *message.Request, items *stream) (st Status) {
	m := r.Result()
	if m.Cancelled {
		return cancelledStatus
	}
	st.Source, st.Tag, st.bytes = int(m.Source), int(m.Tag), m.Len
	if items != nil && m.Len > 0 {
		st.bytes, st.rep = items.came(m.Len)
	}
	return st
}
