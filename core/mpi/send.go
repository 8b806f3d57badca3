package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
)

// Send sends buf to rank dst of c and blocks until buf can be used again, which
// may be before the message is received. MPI standard mode.
func Send[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.failed("Send", c.send(message.Standard, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Ssend is Send in synchronous mode: it also waits until the receive has begun.
func Ssend[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.failed("Ssend", c.send(message.Synchronous, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Bsend is Send in buffered mode: it copies buf to the memory that BufferAttach
// announced and returns at once. message.ErrBuffer means that it did not fit.
func Bsend[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.failed("Bsend", c.send(message.Buffered, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Rsend is Send in ready mode: the program promises that the receive has been
// posted. The promise is not needed here.
func Rsend[T Type](c *Comm, buf []T, dst, tag int) error {
	return c.failed("Rsend", c.send(message.Ready, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag))
}

// Isend begins a Send. buf must not be changed until the request is complete.
func Isend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.isend(byIsend, message.Standard, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return q, c.failed("Isend", err)
}

// Issend begins an Ssend. buf must not be changed until the request is complete.
func Issend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.isend(byIssend, message.Synchronous, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return q, c.failed("Issend", err)
}

// Ibsend begins a Bsend. buf can be used again at once.
func Ibsend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.isend(byIbsend, message.Buffered, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return q, c.failed("Ibsend", err)
}

// Irsend begins an Rsend. buf must not be changed until the request is complete.
func Irsend[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	q, err := c.isend(byIrsend, message.Ready, datatype.Bytes(buf), datatype.KindOf[T](), dst, tag)
	return q, c.failed("Irsend", err)
}

// send is a blocking send of any mode.
func (c *Comm) send(mode message.Mode, b []byte, k datatype.Kind, dst, tag int) error {
	peer, none, err := c.partner(dst, tag)
	if none || err != nil {
		return err
	}
	p := c.p
	p.lock()
	defer p.unlock()
	if mode == message.Standard && !p.foreign(peer, k) && p.sendNow(peer, c.envelope(tag), b, int64(len(b)/k.Size()), uint64(k)) {
		return nil
	}
	out := p.cargo(peer, b, k)
	return p.sendLater(peer, c.envelope(tag), mode, &out)
}

func (c *Comm) isend(fn maker, mode message.Mode, b []byte, k datatype.Kind, dst, tag int) (Request, error) {
	peer, none, err := c.partner(dst, tag)
	if err != nil {
		return Request{}, err
	}
	if none {
		return Request{c: c, standing: standing{state: procNull, fn: fn}}, nil
	}
	p := c.p
	p.lock()
	defer p.unlock()
	out := p.cargo(peer, b, k)
	return c.active(fn, p.post(peer, c.envelope(tag), mode, &out, false), out.items), nil
}

// active is the request of a message.
func (c *Comm) active(fn maker, r *message.Request, items *stream) Request {
	if items != nil {
		r.User = items
	}
	return Request{c: c, r: r, standing: standing{r.Generation(), active, fn}}
}

// envelope is what a message of ours in c is matched by.
func (c *Comm) envelope(tag int) message.Envelope {
	return message.Envelope{Context: c.Context(), Rank: wire.CommRank(c.Rank()), Tag: wire.Tag(tag)}
}

// deliver sends a message and blocks until out can be used again.
func (p *process) deliver(peer message.Peer, env message.Envelope, mode message.Mode, out *cargo) error {
	if mode == message.Standard && out.items == nil && p.sendNow(peer, env, out.mem, out.count, out.dtype) {
		return nil
	}
	return p.sendLater(peer, env, mode, out)
}

// sendLater is deliver for what has to wait.
func (p *process) sendLater(peer message.Peer, env message.Envelope, mode message.Mode, out *cargo) error {
	r := p.post(peer, env, mode, out, true)
	p.wait(r)
	return p.end(r, out.items)
}

// sendNow sends a message that is short and can leave at once.
func (p *process) sendNow(peer message.Peer, env message.Envelope, b []byte, count int64, dtype uint64) bool {
	l, ok := p.eng.SendNow(peer, env, b, count, dtype)
	if !ok {
		return false
	}
	if l == message.NoLink {
		return true
	}
	if q := p.ports[l]; q != nil {
		q.burst = false
		q.Flush()
	}
	return true
}

// post starts a send and gets it on its way.
func (p *process) post(peer message.Peer, env message.Envelope, mode message.Mode, out *cargo, blocking bool) *message.Request {
	var r *message.Request
	size := len(out.mem)
	if s := out.items; s == nil {
		r = p.eng.Send(peer, env, mode, out.mem, out.count, out.dtype)
	} else {
		n := s.buf.size(s.rep)
		r = p.eng.SendFrom(peer, env, mode, s, n, out.count, out.dtype)
		size = int(min(n, holdBack+1))
	}
	p.send(peer, size, blocking)
	p.own(r)
	return r
}

// end gives r and the stream of its data, if any, back and tells how it ended.
func (p *process) end(r *message.Request, items *stream) error {
	err := r.Err()
	if r.Done() {
		err = items.verdict(err)
		p.retire(items)
	} else {
		err = p.failure
	}
	p.eng.Release(r)
	return err
}
