package mpi

import "github.com/openimpi/impi/core/message"

// Send sends b to rank dst and blocks until its memory can be used again, which
// may be before the message is received. MPI standard mode.
func (c *Comm) Send(b Buffer, dst, tag int) error {
	return c.failed("Send", c.sendItems(message.Standard, b, dst, tag))
}

// Ssend is Send in synchronous mode: it also waits until the receive has begun.
func (c *Comm) Ssend(b Buffer, dst, tag int) error {
	return c.failed("Ssend", c.sendItems(message.Synchronous, b, dst, tag))
}

// Bsend is Send in buffered mode: it copies b to the memory that BufferAttach
// announced and returns at once. message.ErrBuffer means that it did not fit.
func (c *Comm) Bsend(b Buffer, dst, tag int) error {
	return c.failed("Bsend", c.sendItems(message.Buffered, b, dst, tag))
}

// Rsend is Send in ready mode: the program promises that the receive has been
// posted. The promise is not needed here.
func (c *Comm) Rsend(b Buffer, dst, tag int) error {
	return c.failed("Rsend", c.sendItems(message.Ready, b, dst, tag))
}

// Isend begins a Send. b must not be changed until the request is complete.
func (c *Comm) Isend(b Buffer, dst, tag int) (Request, error) {
	q, err := c.isendItems(byIsend, message.Standard, b, dst, tag)
	return q, c.failed("Isend", err)
}

// Issend begins an Ssend. b must not be changed until the request is complete.
func (c *Comm) Issend(b Buffer, dst, tag int) (Request, error) {
	q, err := c.isendItems(byIssend, message.Synchronous, b, dst, tag)
	return q, c.failed("Issend", err)
}

// Ibsend begins a Bsend. b can be used again at once.
func (c *Comm) Ibsend(b Buffer, dst, tag int) (Request, error) {
	q, err := c.isendItems(byIbsend, message.Buffered, b, dst, tag)
	return q, c.failed("Ibsend", err)
}

// Irsend begins an Rsend. b must not be changed until the request is complete.
func (c *Comm) Irsend(b Buffer, dst, tag int) (Request, error) {
	q, err := c.isendItems(byIrsend, message.Ready, b, dst, tag)
	return q, c.failed("Irsend", err)
}

// sendItems is send for Buffers.
func (c *Comm) sendItems(mode message.Mode, b Buffer, dst, tag int) error {
	if mem, k, ok := b.plain(); ok {
		return c.send(mode, mem, k, dst, tag)
	}
	if err := c.fits(&b); err != nil {
		return err
	}
	peer, none, err := c.partner(dst, tag)
	if none || err != nil {
		return err
	}
	p := c.p
	p.lock()
	defer p.unlock()
	out := p.items(peer, b)
	return p.deliver(peer, c.envelope(tag), mode, &out)
}

// isendItems is isend for Buffers.
func (c *Comm) isendItems(fn maker, mode message.Mode, b Buffer, dst, tag int) (Request, error) {
	if err := c.fits(&b); err != nil {
		return Request{}, err
	}
	return c.startSend(fn, mode, b, dst, tag)
}

// fits refuses a Buffer that no message on c can be made of.
func (c *Comm) fits(b *Buffer) error {
	if c == nil {
		return noComm()
	}
	return b.check()
}

// startSend begins to send a Buffer that has been checked.
func (c *Comm) startSend(fn maker, mode message.Mode, b Buffer, dst, tag int) (Request, error) {
	peer, none, err := c.partner(dst, tag)
	switch {
	case err != nil:
		return Request{}, err
	case none:
		return Request{c: c, standing: standing{state: procNull, fn: fn}}, nil
	}
	p := c.p
	p.lock()
	defer p.unlock()
	out := p.items(peer, b)
	return c.active(fn, p.post(peer, c.envelope(tag), mode, &out, false), out.items), nil
}
