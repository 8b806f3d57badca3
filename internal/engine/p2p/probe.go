package p2p

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Probe waits for a message without receiving it (MPI-4.1, 3.8.1).
func Probe(c *proc.Comm, src, tag int) (proc.Status, error) {
	env, from, none, err := c.RecvEnvelope(src, tag)
	if none || err != nil {
		return proc.ProcNullStatus, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	if st, ok := p.Eng.Probe(env, from); ok {
		return p.Data.Probed(st), nil
	}
	p.Probing.Begin(env, from)
	defer p.Probing.End()
	for {
		if st, ok := p.Eng.Probe(env, from); ok {
			return p.Data.Probed(st), nil
		}
		if err := hopeless(p, env, from); err != nil {
			return proc.Status{}, err
		}
		p.Account.AwaitFor(proc.ForRecv, from)
	}
}

// hopeless returns why nothing can come any more from a peer, or from any peer for NoPeer; nil if
// something can.
func hopeless(p *proc.Process, env message.Envelope, from message.Peer) error {
	if p.Failure != nil {
		return p.Failure
	}
	if err := p.Eng.Failed(env.Context); err != nil {
		return err
	}
	if from != message.NoPeer {
		return p.Eng.Unreachable(from)
	}
	return p.Survival.Unacknowledged(env.Context)
}

// Iprobe is Probe without waiting (MPI-4.1, 3.8.1). It makes progress.
func Iprobe(c *proc.Comm, src, tag int) (found bool, st proc.Status, err error) {
	env, from, none, err := c.RecvEnvelope(src, tag)
	if none || err != nil {
		return none, proc.ProcNullStatus, err
	}
	c.Process().Lock()
	defer c.Process().Unlock()
	m, found := c.Process().Eng.Probe(env, from)
	if !found {
		c.Process().Test()
		m, found = c.Process().Eng.Probe(env, from)
	}
	if !found {
		return false, proc.Status{}, hopeless(c.Process(), env, from)
	}
	return true, c.Process().Data.Probed(m), nil
}

// Message is a message that Mprobe or Improbe has taken out of the queue (MPI-4.1, 3.8.2): only
// Mrecv or Imrecv with it can receive it.
type Message struct {
	c *proc.Comm
	m *message.Message // nil: no message, from ProcNull
}

// TakeMessage takes a message out of the queue. If there is none it waits for one, or returns nil
// without wait.
func TakeMessage(c *proc.Comm, src, tag int, wait bool) (*Message, proc.Status, error) {
	env, from, none, err := c.RecvEnvelope(src, tag)
	if err != nil {
		return nil, proc.Status{}, err
	}
	if none {
		return &Message{c: c}, proc.ProcNullStatus, nil
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	m, st, ok := p.Eng.Take(env, from)
	if !ok && wait {
		p.Probing.Begin(env, from)
		defer p.Probing.End()
	}
	for !ok && wait {
		if err := hopeless(p, env, from); err != nil {
			return nil, proc.Status{}, err
		}
		p.Account.AwaitFor(proc.ForRecv, from)
		m, st, ok = p.Eng.Take(env, from)
	}
	if !ok {
		p.Test()
		m, st, ok = p.Eng.Take(env, from)
	}
	if !ok {
		return nil, proc.Status{}, hopeless(p, env, from)
	}
	return &Message{c: c, m: m}, p.Data.Probed(st), nil
}

func (m *Message) NoProc() bool { return m != nil && m.c != nil && m.m == nil }

func (m *Message) Recv(b proc.Buffer) (proc.Status, error) {
	q, err := m.Irecv(proc.ByMrecv, b)
	if err != nil {
		return proc.Status{}, err
	}
	return q.Complete()
}

// Comm returns the communicator of the message, nil if m is nil or was received.
func (m *Message) Comm() *proc.Comm {
	if m == nil {
		return nil
	}
	return m.c
}

// Irecv begins to receive the message into b. fn is the function of MPI that was called.
func (m *Message) Irecv(fn proc.RequestFunc, b proc.Buffer) (proc.Request, error) {
	if m == nil || m.c == nil {
		return proc.Request{}, fmt.Errorf("%w: it has been received, or is MPI_MESSAGE_NULL", proc.ErrMessage)
	}
	if err := b.Check(); err != nil {
		return proc.Request{}, err
	}
	c, p, taken := m.c, m.c.Process(), m.m
	*m = Message{}
	if taken == nil {
		return proc.NoPartner(c, fn), nil
	}
	p.Lock()
	defer p.Unlock()
	in := p.Data.Items(message.NoPeer, b)
	var r *message.Request
	if in.Items != nil {
		r = p.Eng.RecvMessageInto(taken, in.Items)
	} else {
		r = p.Eng.RecvMessage(taken, in.Mem)
	}
	p.Endpoints.ReceivePosted(r)
	return c.Active(fn, r, in.Items), nil
}
