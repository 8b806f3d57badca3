package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
)

// Probe blocks until a message from src with tag could be received, and tells
// about it without receiving it.
func Probe(c *Comm, src, tag int) (Status, error) {
	st, err := c.probe(src, tag)
	return st, c.failed("Probe", err)
}

func (c *Comm) probe(src, tag int) (Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if none || err != nil {
		return procNullStatus, err
	}
	c.p.lock()
	defer c.p.unlock()
	for {
		if st, ok := c.p.eng.Probe(env, from); ok {
			return c.p.probed(st), nil
		}
		if err := c.p.hopeless(from); err != nil {
			return Status{}, err
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
	found, st, err = c.iprobe(src, tag)
	return found, st, c.failed("Iprobe", err)
}

func (c *Comm) iprobe(src, tag int) (found bool, st Status, err error) {
	env, from, none, err := c.wanted(src, tag)
	if none || err != nil {
		return none, procNullStatus, err
	}
	c.p.lock()
	defer c.p.unlock()
	m, found := c.p.eng.Probe(env, from)
	if !found {
		c.p.test()
		m, found = c.p.eng.Probe(env, from)
	}
	if !found {
		return false, Status{}, c.p.hopeless(from)
	}
	return true, c.p.probed(m), nil
}

// Message is a message that Mprobe or Improbe has taken out of the queue: only
// Mrecv or Imrecv with it can receive it.
type Message struct {
	c *Comm
	m *message.Message // nil: from ProcNull
}

// Mprobe blocks until a message from src with tag could be received, and
// reserves it for the caller.
func Mprobe(c *Comm, src, tag int) (*Message, Status, error) {
	m, st, err := c.mprobe(src, tag)
	return m, st, c.failed("Mprobe", err)
}

func (c *Comm) mprobe(src, tag int) (*Message, Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return nil, Status{}, err
	}
	if none {
		return &Message{c: c}, procNullStatus, nil
	}
	c.p.lock()
	defer c.p.unlock()
	for {
		if m, st, ok := c.p.eng.Take(env, from); ok {
			return &Message{c: c, m: m}, c.p.probed(st), nil
		}
		if err := c.p.hopeless(from); err != nil {
			return nil, Status{}, err
		}
		c.p.turn()
	}
}

// Improbe is Mprobe without waiting; the message is nil where there is none.
func Improbe(c *Comm, src, tag int) (*Message, Status, error) {
	m, st, err := c.improbe(src, tag)
	return m, st, c.failed("Improbe", err)
}

func (c *Comm) improbe(src, tag int) (*Message, Status, error) {
	env, from, none, err := c.wanted(src, tag)
	if err != nil {
		return nil, Status{}, err
	}
	if none {
		return &Message{c: c}, procNullStatus, nil
	}
	c.p.lock()
	defer c.p.unlock()
	m, st, ok := c.p.eng.Take(env, from)
	if !ok {
		c.p.test()
		m, st, ok = c.p.eng.Take(env, from)
	}
	if !ok {
		return nil, Status{}, c.p.hopeless(from)
	}
	return &Message{c: c, m: m}, c.p.probed(st), nil
}

// Mrecv receives the message m, which is used up, into buf.
func Mrecv[T Type](m *Message, buf []T) (Status, error) { return m.recv("Mrecv", Of(buf)) }

// Imrecv begins to receive the message m, which is used up, into buf.
func Imrecv[T Type](m *Message, buf []T) (Request, error) { return m.irecv(byImrecv, Of(buf)) }

// Recv receives the message, which is used up, into b.
func (m *Message) Recv(b Buffer) (Status, error) { return m.recv("Message.Recv", b) }

// Irecv begins to receive the message, which is used up, into b.
func (m *Message) Irecv(b Buffer) (Request, error) { return m.irecv(byMessageIrecv, b) }

// NoProc tells whether the message is that from ProcNull, which is received
// without anything being stored (MPI_MESSAGE_NO_PROC).
func (m *Message) NoProc() bool { return m != nil && m.c != nil && m.m == nil }

func (m *Message) recv(fn string, b Buffer) (Status, error) {
	c := m.comm()
	q, err := m.begin(byMrecv, b)
	if err != nil {
		return Status{}, c.failed(fn, err)
	}
	st, err := q.complete()
	return st, c.failed(fn, err)
}

func (m *Message) irecv(fn maker, b Buffer) (Request, error) {
	c := m.comm()
	q, err := m.begin(fn, b)
	return q, c.failed(makers[fn], err)
}

// comm is the communicator of the message, nil if it is none.
func (m *Message) comm() *Comm {
	if m == nil {
		return nil
	}
	return m.c
}

// begin begins to receive the message, unless b is not fit for that.
func (m *Message) begin(fn maker, b Buffer) (Request, error) {
	if m == nil || m.c == nil {
		return Request{}, fmt.Errorf("%w: it has been received, or is MPI_MESSAGE_NULL", ErrMessage)
	}
	if err := b.check(); err != nil {
		return Request{}, err
	}
	c, p, taken := m.c, m.c.p, m.m
	*m = Message{}
	if taken == nil {
		return Request{c: c, standing: standing{state: procNull, fn: fn}}, nil
	}
	p.lock()
	defer p.unlock()
	in := p.items(message.NoPeer, b)
	var r *message.Request
	if in.items != nil {
		r = p.eng.RecvMessageInto(taken, in.items)
	} else {
		r = p.eng.RecvMessage(taken, in.mem)
	}
	p.began(r)
	return c.active(fn, r, in.items), nil
}
