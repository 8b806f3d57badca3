package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Recv receives a message from rank src (or AnySource) with tag (or AnyTag) into
// buf and blocks until it is there. A message longer than buf fills buf and is
// ErrTruncate.
func Recv[T Type](c *Comm, buf []T, src, tag int) (Status, error) {
	st, err := c.recv(datatype.Bytes(buf), datatype.KindOf[T](), src, tag)
	return st, c.failed("Recv", err)
}

// Irecv begins a Recv. buf belongs to the library until the request is complete.
func Irecv[T Type](c *Comm, buf []T, src, tag int) (Request, error) {
	q, err := c.irecv("Irecv", datatype.Bytes(buf), datatype.KindOf[T](), src, tag)
	return q, c.failed("Irecv", err)
}

// Sendrecv sends sbuf to dst and receives rbuf from src, both at a time, so that
// neighbours that exchange cannot block each other.
func Sendrecv[T, U Type](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Status, error) {
	st, err := c.sendrecv(datatype.Bytes(sbuf), datatype.KindOf[T](), dst, stag, datatype.Bytes(rbuf), datatype.KindOf[U](), src, rtag)
	return st, c.failed("Sendrecv", err)
}

// SendrecvReplace is Sendrecv with one buffer: what it holds is sent, and what
// is received replaces it.
func SendrecvReplace[T Type](c *Comm, buf []T, dst, stag, src, rtag int) (Status, error) {
	b := datatype.Bytes(buf)
	out := append(make([]byte, 0, len(b)), b...)
	st, err := c.sendrecv(out, datatype.KindOf[T](), dst, stag, b, datatype.KindOf[T](), src, rtag)
	return st, c.failed("SendrecvReplace", err)
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
	in := p.landing(b, k)
	p.lock()
	defer p.unlock()
	r := p.eng.Recv(env, from, in)
	p.began(r)
	p.wait(r)
	return p.received(r, p.landed(b, in, k))
}

func (c *Comm) irecv(fn string, b []byte, k datatype.Kind, src, tag int) (Request, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return Request{}, err
	}
	if none {
		return Request{p: c.p, c: c, state: procNull, recv: true}, nil
	}
	p := c.p
	in := p.landing(b, k)
	p.lock()
	defer p.unlock()
	r := p.eng.Recv(env, from, in)
	p.began(r)
	return Request{p: p, c: c, r: r, gen: r.Generation(), state: active, recv: true, land: p.landed(b, in, k), fn: fn}, nil
}

// received finishes a receive: status, conversion to what this machine
// understands, and the request goes back.
func (p *process) received(r *message.Request, to *landing) (st Status, err error) {
	if !r.Done() {
		return st, p.end(r)
	}
	m := r.Result()
	err = m.Err
	switch {
	case m.Cancelled:
		st = statusOf(m)
	case to == nil:
		st.Source, st.Tag, st.bytes = int(m.Source), int(m.Tag), m.Len
	default:
		st = statusOf(m)
		var bad error
		if st.bytes, bad = p.land(m.Peer, to, m.Len); err == nil {
			err = bad
		}
	}
	p.eng.Release(r)
	return st, err
}

func (c *Comm) sendrecv(out []byte, ok datatype.Kind, dst, stag int, in []byte, ik datatype.Kind, src, rtag int) (Status, error) {
	peer, noDst, err := c.partner(dst, stag)
	if err != nil {
		return Status{}, err
	}
	env, from, noSrc, err := c.wanted(src, rtag)
	if err != nil {
		return Status{}, err
	}
	p := c.p
	if !noDst {
		if out, err = p.pack(peer, ok, out); err != nil {
			return Status{}, err
		}
	}
	landed := p.landing(in, ik)
	p.lock()
	defer p.unlock()
	var s, r *message.Request
	if !noSrc {
		r = p.eng.Recv(env, from, landed)
	}
	if !noDst {
		s = p.post(peer, c.envelope(stag), message.Standard, out, ok, true)
	}
	return p.both(s, r, in, landed, ik)
}

// both waits for a send and a receive, either of which may be missing.
func (p *process) both(s, r *message.Request, in, landed []byte, k datatype.Kind) (st Status, err error) {
	st = procNullStatus
	var serr error
	if s != nil {
		p.wait(s)
		serr = p.end(s)
	}
	if r != nil {
		p.wait(r)
		st, err = p.received(r, p.landed(in, landed, k))
	}
	if err == nil {
		err = serr
	}
	return st, err
}
