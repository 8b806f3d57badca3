package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Probe blocks until a message from src with tag could be received, and tells
// about it without receiving it.
func Probe(c *Comm, src, tag int) (Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if none || err != nil {
		return procNullStatus, failed("Probe", err)
	}
	c.p.lock()
	defer c.p.unlock()
	for {
		if st, ok := c.p.eng.Probe(env); ok {
			return c.p.probed(st), nil
		}
		if err := c.p.hopeless(from); err != nil {
			return Status{}, failed("Probe", err)
		}
		c.p.turn()
	}
}

// hopeless tells why nothing can come any more from a peer, or from anybody for
// NoPeer.
func (p *process) hopeless(from message.Peer) error {
	if p.failure == nil && from != message.NoPeer {
		return p.eng.Down(from)
	}
	return p.failure
}

// Iprobe tells whether a message from src with tag could be received now.
func Iprobe(c *Comm, src, tag int) (found bool, st Status, err error) {
	env, from, none, err := c.wanted(src, tag)
	if none || err != nil {
		return none, procNullStatus, failed("Iprobe", err)
	}
	c.p.lock()
	defer c.p.unlock()
	m, found := c.p.eng.Probe(env)
	if !found {
		c.p.test()
		m, found = c.p.eng.Probe(env)
	}
	if !found {
		return false, Status{}, failed("Iprobe", c.p.hopeless(from))
	}
	return true, c.p.probed(m), nil
}

// Message is a message that Mprobe or Improbe has taken out of the queue: only
// Mrecv or Imrecv with it can receive it.
type Message struct {
	p *process
	m *message.Message // nil: from ProcNull
}

// Mprobe blocks until a message from src with tag could be received, and
// reserves it for the caller.
func Mprobe(c *Comm, src, tag int) (*Message, Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return nil, Status{}, failed("Mprobe", err)
	}
	if none {
		return &Message{p: c.p}, procNullStatus, nil
	}
	c.p.lock()
	defer c.p.unlock()
	for {
		if m, st, ok := c.p.eng.Take(env); ok {
			return &Message{p: c.p, m: m}, c.p.probed(st), nil
		}
		if err := c.p.hopeless(from); err != nil {
			return nil, Status{}, failed("Mprobe", err)
		}
		c.p.turn()
	}
}

// Improbe is Mprobe without waiting; the message is nil where there is none.
func Improbe(c *Comm, src, tag int) (*Message, Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return nil, Status{}, failed("Improbe", err)
	}
	if none {
		return &Message{p: c.p}, procNullStatus, nil
	}
	c.p.lock()
	defer c.p.unlock()
	m, st, ok := c.p.eng.Take(env)
	if !ok {
		c.p.test()
		m, st, ok = c.p.eng.Take(env)
	}
	if !ok {
		return nil, Status{}, failed("Improbe", c.p.hopeless(from))
	}
	return &Message{p: c.p, m: m}, c.p.probed(st), nil
}

// Mrecv receives the message m, which is used up, into buf.
func Mrecv[T Type](m *Message, buf []T) (Status, error) {
	q, err := Imrecv(m, buf)
	if err != nil {
		return Status{}, err
	}
	st, err := q.Wait()
	return st, failed("Mrecv", err)
}

// Imrecv begins to receive the message m, which is used up, into buf.
func Imrecv[T Type](m *Message, buf []T) (Request, error) {
	if m == nil || m.p == nil {
		return Request{}, failed("Imrecv", ErrMessage)
	}
	p, taken := m.p, m.m
	*m = Message{}
	if taken == nil {
		return Request{p: p, state: procNull, recv: true}, nil
	}
	b, k := datatype.Bytes(buf), datatype.KindOf[T]()
	in := p.landing(b, k)
	p.lock()
	defer p.unlock()
	r := p.eng.RecvMessage(taken, in)
	p.began(r)
	return Request{p: p, r: r, gen: r.Generation(), state: active, recv: true, land: p.landed(b, in, k), fn: "Imrecv"}, nil
}
